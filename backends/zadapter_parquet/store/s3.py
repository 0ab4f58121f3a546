"""Conversion of a session's S3 settings to options of obstore.

Spark reads and writes a table's rows through Hadoop's S3A, so obstore must use the same server and
user. The settings are read from an initialized S3A file system, which applies settings of one
bucket (``fs.s3a.bucket.<name>.*``) and all credential providers.
"""

import os
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from zadapter.base.interrupts import ignoring_errors
from zadapter.base.java_errors import first_line
from zadapter.errors import SessionError, StoreError
from zadapter.spark.compat.s3a import Credentials, credentials_of, region_of
from zadapter.spark.jvm.gateway import hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes

JavaObject = Any

_SCHEMES = ("s3:", "s3a:")
_VARIABLE = "AWS_ENDPOINT_URL_S3"
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def options(spark: SparkSession, uri: str) -> dict[str, Any]:
    """Return the options of obstore's ``from_url`` for a table.

    Args:
        spark: A session, which provides the Hadoop settings.
        uri: URI of the table's root folder.

    Raises:
        StoreError: S3A finds no credentials, or rejects the session's settings.
        SessionError: The environment names another server.
    """
    if not uri.startswith(_SCHEMES):
        return {}
    jvm = java_classes(spark)
    conf = hadoop_conf(spark)
    try:
        file_system = jvm.org.apache.hadoop.fs.Path(uri).getFileSystem(conf)
        if file_system.getClass().getName() != _S3A:
            return {}  # a vendor's file system: obstore uses the environment
        settings = _connection(file_system) | _identity(file_system)
    except Exception as error:
        raise StoreError(
            f"{uri} cannot be opened with the session's settings: {first_line(error)}; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or fs.s3a.* in the session"
        ) from error
    _refuse_other(settings["config"].get("endpoint"))
    return settings


def _refuse_other(endpoint: str | None) -> None:
    """Check ``AWS_ENDPOINT_URL_S3``, which overrides all options of obstore.

    Raises:
        SessionError: Spark and obstore would use different servers.
    """
    other = os.environ.get(_VARIABLE, "").rstrip("/")
    if other and other != endpoint:
        raise SessionError(
            f"{_VARIABLE} is {other}, but the session's fs.s3a.endpoint and "
            f"fs.s3a.path.style.access set {endpoint or 'AWS'}; unset the variable, or set "
            "fs.s3a.endpoint to the same server and fs.s3a.path.style.access to true"
        )


def _connection(file_system: JavaObject) -> dict[str, Any]:
    """Return the options for the bucket's address, TLS and retries."""
    conf = file_system.getConf()
    config, client = {"region": _region(file_system)}, {}
    if endpoint := conf.getTrimmed("fs.s3a.endpoint", ""):
        url = address(
            endpoint,
            str(file_system.getBucket()),
            secure=conf.getBoolean("fs.s3a.connection.ssl.enabled", True),  # noqa: FBT003
            path_style=conf.getBoolean("fs.s3a.path.style.access", False),  # noqa: FBT003
        )
        config |= url
        client["allow_http"] = str(url["endpoint"].startswith("http:")).lower()
    retries = {"max_retries": conf.getInt("fs.s3a.retry.limit", 7)}
    return {"config": config, "client_options": client, "retry_config": retries}


def address(endpoint: str, bucket: str, *, secure: bool, path_style: bool) -> dict[str, str]:
    """Return obstore's options for the address of a bucket.

    Args:
        endpoint: Server, with or without a scheme.
        bucket: Name of the bucket.
        secure: Whether to use TLS for a server without a scheme.
        path_style: Whether the bucket is part of the path. If not, it is part of the host name,
            unless it contains a dot, which certificates do not cover.
    """
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    scheme = scheme or ("https" if secure else "http")
    virtual = not path_style and "." not in bucket
    url = f"{scheme}://{bucket}.{host}" if virtual else f"{scheme}://{host}"
    return {
        "endpoint": url,
        "virtual_hosted_style_request": str(virtual).lower(),
    }


def _region(file_system: JavaObject) -> str:
    """Return the bucket's region, or the configured one if the bucket does not report it."""
    with ignoring_errors():
        if region := region_of(file_system):
            return region
    return str(file_system.getConf().getTrimmed("fs.s3a.endpoint.region", "us-east-1"))


def _identity(file_system: JavaObject) -> dict[str, Any]:
    """Return the options for credentials, which obstore requests again after they expire."""
    find = credentials_of(file_system)
    return {"skip_signature": "true"} if find().key is None else {"credential_provider": _to(find)}


def _to(find: Callable[[], Credentials]) -> Callable[[], dict[str, Any]]:
    def provide() -> dict[str, Any]:
        found = find()
        return {
            "access_key_id": found.key,
            "secret_access_key": found.secret,
            "token": found.token,
            "expires_at": found.end,
        }

    return provide
