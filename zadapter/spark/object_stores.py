"""Object stores: what a session needs to read them, and whether it has that."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from zadapter.errors import SessionError
from zadapter.spark import settings

S3 = "s3"
"""The only store for which a session gets packages."""

HADOOP = "3.4.2"
"""The version of Hadoop that PySpark brings."""
_SDK = "2.29.52"
"""The version of the AWS SDK that this Hadoop is built with."""
_S3 = re.compile(r"(?:\A|`)s3a?://")
_FILE_SYSTEM = "org.apache.hadoop.fs.s3a.S3AFileSystem"

PACKAGES = (
    f"org.apache.hadoop:hadoop-aws:{HADOOP}",
    *(f"software.amazon.awssdk:{name}:{_SDK}" for name in ("s3-transfer-manager", "sts")),
    *(f"software.amazon.awssdk:{name}:{_SDK}" for name in ("sso", "ssooidc")),
)
"""Hadoop's S3A with the parts of the AWS SDK that it uses: 13 MB. All of the SDK, which S3A asks
for, are 630 MB, and each session copies its jars."""
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
    """Return the stores that the paths among *tables* lie in."""
    return [S3] if any(map(_S3.search, tables)) else []


def additions(stated: Mapping[str, str], stores: Iterable[str]) -> dict[str, str]:
    """Return the settings that *stores* need and *stated* lacks.

    A session whose packages or jars already have Hadoop's S3A gets no packages.
    """
    if S3 not in stores:
        return {}
    added = {}
    if not settings.has(stated, PACKAGES[0]):
        lists = {settings.PACKAGES: PACKAGES, settings.EXCLUDES: EXCLUDES}
        added = {key: settings.completed(stated, key, more) for key, more in lists.items()}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", os.environ.get("AWS_ENDPOINT_URL"))
    wanted = {
        "fs.s3.impl": _FILE_SYSTEM,
        "fs.s3a.aws.credentials.provider": ",".join(_PROVIDERS),
        # a server of one's own has no name for each bucket
        **({"fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": "true"} if endpoint else {}),
    }
    hadoop = {f"spark.hadoop.{key}": value for key, value in wanted.items()}
    return added | {key: value for key, value in hadoop.items() if key not in stated}


def check(spark: SparkSession, store: str) -> None:
    """Refuse a session that cannot read *store*, and say what to add.

    Raises:
        SessionError: Hadoop has no file system for it.
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
        f"this Spark session cannot read {store}://: it lacks {PACKAGES[0]}. Spark loads it when "
        f"it starts, so in a new process call zadapter.spark.session(stores=[{store!r}]) first, or "
        "add to the builder, or as --conf to spark-submit,\n"
        f"{settings.config_lines(additions(stated, [S3]))}"
    )
