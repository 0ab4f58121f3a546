"""Object stores: the packages and settings that a session needs, and a check for them."""

import os
import re
import socket
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from zadapter.base.interrupts import reraise
from zadapter.errors import SessionError, StoreError
from zadapter.spark import settings
from zadapter.spark.compat import s3a
from zadapter.spark.jvm.gateway import hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes

S3 = "s3"
"""The only object store for which zadapter loads packages."""

_S3 = re.compile(r"(?:\A|`)s3a?://")
_WAREHOUSE = re.compile(
    r"(?P<owner>spark\.sql\.catalog\.[^.]+)\.warehouse|spark\.sql\.warehouse\.dir"
)
_ENDPOINT = "spark.hadoop.fs.s3a.endpoint"
_PROXY = "spark.hadoop.fs.s3a.proxy.host"
_WAIT = 20.0
"""Seconds after which a server does not answer."""
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"

_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
)


def find_stores(tables: Iterable[str]) -> list[str]:
    """Return the object stores of the paths among *tables*."""
    return [S3] if any(map(_S3.search, tables)) else []


def find_stated_stores(stated: Mapping[str, str]) -> list[str]:
    """Return the object stores that a session with these settings will need.

    Tables of a catalog are named without their paths, but the catalog names its warehouse. A
    catalog with a FileIO of its own needs no file system of Hadoop.
    """
    warehouses = [
        value
        for key, value in stated.items()
        if (found := _WAREHOUSE.fullmatch(key)) and f"{found['owner']}.io-impl" not in stated
    ]
    is_loaded = settings.has_package(stated, s3a.CONNECTORS[0].packages[0])
    return [S3] if is_loaded else find_stores(warehouses)


def hadoop_of_pyspark() -> str:
    """Return the release of Hadoop of the Spark that a new session will run."""
    return s3a.hadoop_of_jars(path.name for path in settings.jars_folder().glob("*.jar"))


def additions(stated: Mapping[str, str], stores: Iterable[str], hadoop: str) -> dict[str, str]:
    """Return the settings that *stores* require and *stated* lacks.

    No packages are added if the packages or jars already contain Hadoop's S3A.

    Args:
        stated: Settings of the session.
        stores: Object stores.
        hadoop: The session's release of Hadoop. S3A works with the Hadoop of its own release.

    Raises:
        SessionError: The environment names a server without a scheme, for which S3A takes https.
    """
    if S3 not in stores:
        return {}
    added, connector = {}, s3a.connector(hadoop)
    if not settings.has_package(stated, connector.packages[0]):
        lists = {settings.PACKAGES: connector.packages, settings.EXCLUDES: connector.excludes}
        added = {
            key: settings.add_items(stated, key, items) for key, items in lists.items() if items
        }
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    if endpoint and "://" not in endpoint and _ENDPOINT not in stated:
        raise SessionError(
            f"AWS_ENDPOINT_URL is {endpoint}; begin it with http:// or https://, as the server does"
        )
    options = {
        "fs.s3.impl": _FILE_SYSTEM,
        "fs.s3a.aws.credentials.provider": ",".join([*_PROVIDERS, connector.credentials]),
        # other servers than AWS may have no host name per bucket
        **({"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"} if endpoint else {}),
    }
    prefixed = {f"spark.hadoop.{key}": value for key, value in options.items()}
    return added | {key: value for key, value in prefixed.items() if key not in stated}


def check_endpoint(stated: Mapping[str, str]) -> None:
    """Refuse a server that does not answer, for which S3A waits many minutes.

    Args:
        stated: Settings of a session. A session that has a proxy for S3 is not checked.

    Raises:
        StoreError: No connection to the server can be opened.
    """
    endpoint = stated.get(_ENDPOINT, "")
    parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
    if parts.hostname is None or _PROXY in stated:
        return
    try:
        port = parts.port or (80 if parts.scheme == "http" else 443)
        with socket.create_connection((parts.hostname, port), _WAIT):
            pass
    except (OSError, ValueError) as error:  # a port may be no number
        raise StoreError(
            f"the S3 server {endpoint} does not answer; check AWS_ENDPOINT_URL or fs.s3a.endpoint, "
            f"and retry ({getattr(error, 'strerror', None) or error})"
        ) from error


def check(spark: SparkSession, store: str) -> None:
    """Refuse a session that cannot read *store*.

    Raises:
        SessionError: Hadoop has no file system for the store; the message lists missing settings.
    """
    jvm = java_classes(spark)
    conf = hadoop_conf(spark)
    for scheme in (f"{store}a", store):
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
        except Exception as error:  # noqa: BLE001 - no class is named, or it is not there
            reraise(error)
            continue
        return
    stated = {key: str(spark.conf.get(key, "")) for key in (settings.PACKAGES, settings.EXCLUDES)}
    hadoop = s3a.hadoop_of_jvm(jvm)
    raise SessionError(
        f"this Spark session cannot read {store}://: it lacks "
        f"{s3a.connector(hadoop).packages[0]}. Spark loads packages "
        f"at startup: in a new process, call zadapter.spark.session(stores=[{store!r}]) first, or "
        "set in the builder, or with --conf of "
        f"spark-submit,\n{settings.config_lines(additions(stated, [S3], hadoop))}"
    )
