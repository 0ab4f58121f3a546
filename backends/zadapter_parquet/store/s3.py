"""The S3 settings of a session, as obstore takes them.

Spark reads and writes a table's rows through Hadoop's S3A, so obstore must reach the same server as
the same user. S3A is asked for what it has made of its settings: those of one bucket
(``fs.s3a.bucket.<name>.*``) and every credential provider count.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from zadapter.base.java_errors import first_line
from zadapter.errors import SessionError, StoreError

JavaObject = Any

_SCHEMES = ("s3:", "s3a:")
_VARIABLE = "AWS_ENDPOINT_URL_S3"
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def options(spark: SparkSession, uri: str) -> dict[str, Any]:
    """Return the options of obstore's ``from_url`` for a table.

    Args:
        spark: A session whose Hadoop settings hold.
        uri: The table's root folder.

    Raises:
        StoreError: The settings of the session name no credentials, or make no sense to S3A.
        SessionError: The environment names another server.
    """
    if not uri.startswith(_SCHEMES):
        return {}
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    try:
        files = jvm.org.apache.hadoop.fs.Path(uri).getFileSystem(conf)
        if files.getClass().getName() != _S3A:
            return {}  # a vendor's own file system: obstore goes by the environment
        found = _connection(files) | _identity(files)
    except Exception as error:
        raise StoreError(
            f"{uri} cannot be opened with the session's settings: {first_line(error)}; set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or fs.s3a.* in the session"
        ) from error
    _refuse_other(found["config"].get("endpoint"))
    return found


def _refuse_other(endpoint: str | None) -> None:
    """Refuse a variable that obstore prefers to all settings.

    Raises:
        SessionError: Spark and obstore would ask different servers.
    """
    other = os.environ.get(_VARIABLE, "").rstrip("/")
    if other and other != endpoint:
        raise SessionError(
            f"{_VARIABLE} is {other}, but by the session's fs.s3a.endpoint and "
            f"fs.s3a.path.style.access the bucket is at {endpoint or 'AWS'}; unset the variable, "
            "or set fs.s3a.endpoint to the same server and fs.s3a.path.style.access to true"
        )


def _connection(files: JavaObject) -> dict[str, Any]:
    """Return where the bucket is."""
    conf = files.getConf()
    config, client = {"region": _region(files)}, {}
    if endpoint := conf.getTrimmed("fs.s3a.endpoint", ""):
        url = address(
            endpoint,
            str(files.getBucket()),
            secure=conf.getBoolean("fs.s3a.connection.ssl.enabled", True),  # noqa: FBT003
            path_style=conf.getBoolean("fs.s3a.path.style.access", False),  # noqa: FBT003
        )
        config |= url
        client["allow_http"] = str(url["endpoint"].startswith("http:")).lower()
    retries = {"max_retries": conf.getInt("fs.s3a.retry.limit", 7)}
    return {"config": config, "client_options": client, "retry_config": retries}


def address(endpoint: str, bucket: str, *, secure: bool, path_style: bool) -> dict[str, str]:
    """Return where requests to a bucket go.

    Args:
        endpoint: The server, with or without a scheme.
        bucket: The bucket.
        secure: Whether a server without a scheme is asked over TLS.
        path_style: Whether the bucket is part of the path. If not, it is part of the host's name,
            unless it has a dot, which certificates do not cover.
    """
    scheme, _, host = endpoint.rstrip("/").rpartition("://")
    scheme = scheme or ("https" if secure else "http")
    virtual = not path_style and "." not in bucket
    url = f"{scheme}://{bucket}.{host}" if virtual else f"{scheme}://{host}"
    return {
        "endpoint": url,
        "virtual_hosted_style_request": str(virtual).lower(),
    }


def _region(files: JavaObject) -> str:
    """Return the bucket's region, or the configured one where the bucket does not tell."""
    with suppress(Exception):
        if region := files.getS3AInternals().getBucketMetadata().bucketRegion():
            return str(region)
    return str(files.getConf().getTrimmed("fs.s3a.endpoint.region", "us-east-1"))


def _identity(files: JavaObject) -> dict[str, Any]:
    """Return who asks: obstore asks for credentials again when they have expired."""
    shared = files.getS3AInternals().shareCredentials("zadapter")
    if shared.resolveCredentials().accessKeyId() is None:
        return {"skip_signature": "true"}
    return {"credential_provider": _provider(shared.resolveCredentials)}


def _provider(resolve: Callable[[], JavaObject]) -> Callable[[], dict[str, Any]]:
    def provide() -> dict[str, Any]:
        found = resolve()
        temporary = found.getClass().getSimpleName() == "AwsSessionCredentials"
        ends = found.expirationTime().orElse(None) if temporary else None
        return {
            "access_key_id": str(found.accessKeyId()),
            "secret_access_key": str(found.secretAccessKey()),
            "token": str(found.sessionToken()) if temporary else None,
            "expires_at": ends and datetime.fromtimestamp(ends.getEpochSecond(), timezone.utc),
        }

    return provide
