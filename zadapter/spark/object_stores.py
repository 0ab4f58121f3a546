"""Object stores: the packages and settings that a session needs, and a check for them."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from zadapter.errors import SessionError
from zadapter.spark import settings

S3 = "s3"
"""The only object store for which zadapter loads packages."""

HADOOP = "3.4.2"
"""Version of Hadoop that PySpark contains."""
_SDK = "2.29.52"
"""Version of the AWS SDK that this version of Hadoop is built with."""
_S3 = re.compile(r"(?:\A|`)s3a?://")
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"

PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{name}:{_SDK}" for name in ("s3-transfer-manager", "sts")),
    *(f"software.amazon.awssdk:{name}:{_SDK}" for name in ("sso", "ssooidc")),
)
"""Hadoop's S3A with the required parts of the AWS SDK: 13 MB. S3A depends on the whole SDK, which
has 630 MB, and each session copies its jars."""
EXCLUDES = (
    "software.amazon.awssdk:bundle",
    "commons-logging:commons-logging",  # Spark has jcl-over-slf4j
    # Spark has these
    "commons-codec:commons-codec",
    *(f"io.netty:netty-{name}" for name in ("buffer", "codec", "codec-http", "codec-http2")),
    *(f"io.netty:netty-{name}" for name in ("common", "handler", "resolver", "transport")),
    "io.netty:netty-transport-classes-epoll",
    "io.netty:netty-transport-native-unix-common",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
    "org.slf4j:slf4j-api",
)
_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    # environment, profiles, web identities, containers, machines
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)


def named(tables: Iterable[str]) -> list[str]:
    """Return the object stores of the paths among *tables*."""
    return [S3] if any(map(_S3.search, tables)) else []


def additions(stated: Mapping[str, str], stores: Iterable[str]) -> dict[str, str]:
    """Return the settings that *stores* require and *stated* lacks.

    No packages are added if the packages or jars already contain Hadoop's S3A.
    """
    if S3 not in stores:
        return {}
    added = {}
    if not settings.has(stated, PACKAGES[0]):
        lists = {settings.PACKAGES: PACKAGES, settings.EXCLUDES: EXCLUDES}
        added = {key: settings.completed(stated, key, items) for key, items in lists.items()}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    options = {
        "fs.s3.impl": _FILE_SYSTEM,
        "fs.s3a.aws.credentials.provider": ",".join(_PROVIDERS),
        # other servers than AWS may have no host name per bucket
        **({"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"} if endpoint else {}),
    }
    hadoop = {f"spark.hadoop.{key}": value for key, value in options.items()}
    return added | {key: value for key, value in hadoop.items() if key not in stated}


def check(spark: SparkSession, store: str) -> None:
    """Refuse a session that cannot read *store*.

    Raises:
        SessionError: Hadoop has no file system for the store; the message lists missing settings.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    for scheme in (f"{store}a", store):
        try:
            jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, conf)
        except Exception:  # noqa: BLE001, S112 - no class is named, or it is not there
            continue
        return
    stated = {key: str(spark.conf.get(key, "")) for key in (settings.PACKAGES, settings.EXCLUDES)}
    raise SessionError(
        f"this Spark session cannot read {store}://: it lacks {PACKAGES[0]}. Spark loads packages "
        f"at startup: in a new process, call zadapter.spark.session(stores=[{store!r}]) first, or "
        "set in the builder, or with --conf of "
        f"spark-submit,\n{settings.config_lines(additions(stated, [S3]))}"
    )
