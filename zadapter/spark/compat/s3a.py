"""Hadoop's S3A, which goes with the Hadoop of a Spark and with one release of the AWS SDK."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

JavaObject = Any

_JAR = re.compile(r"hadoop-client-api-([\d.]+)\.jar")
_MINOR = re.compile(r"(\d+)\.(\d+)")
_FIRST_WITH_SDK_2 = 3, 4
_INTERNALS = "getS3AInternals"
"""Method of Hadoop 3.4 and later, whose result has what was public in the file system before."""
_ASKED_AGAIN = timedelta(minutes=15)
"""Time after which credentials with a token are asked for again if their end is unknown."""
_PARTS = {
    True: ("com.amazonaws:aws-java-sdk-", ("s3", "sts", "dynamodb")),
    False: ("software.amazon.awssdk:", ("s3-transfer-manager", "sts", "sso", "ssooidc")),
}
"""Parts of the AWS SDK that S3A requires, by whether it is version 1."""
_OF_SPARK = (
    "commons-logging:commons-logging",  # Spark has jcl-over-slf4j
    "commons-codec:commons-codec",
    "org.apache.httpcomponents:httpclient",
    "org.apache.httpcomponents:httpcore",
)
_EXCLUDES = {
    True: (
        "com.amazonaws:aws-java-sdk-bundle",
        *_OF_SPARK,
        *(f"com.fasterxml.jackson.core:jackson-{n}" for n in ("annotations", "core", "databind")),
        "joda-time:joda-time",
    ),
    False: (
        "software.amazon.awssdk:bundle",
        *_OF_SPARK,
        *(f"io.netty:netty-{name}" for name in ("buffer", "codec", "codec-http", "codec-http2")),
        *(f"io.netty:netty-{name}" for name in ("common", "handler", "resolver", "transport")),
        "io.netty:netty-transport-classes-epoll",
        "io.netty:netty-transport-native-unix-common",
        "org.slf4j:slf4j-api",
    ),
}
"""The whole SDK, then what Spark has, by whether the SDK is version 1."""
_CREDENTIALS = {
    True: "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
    False: "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
}
"""Classes that ask environment, profiles, web identities, containers and machines."""


@dataclass(frozen=True, slots=True)
class Connector:
    """S3A for a release of Hadoop, with the required parts of the AWS SDK: 13 MB.

    S3A depends on the whole SDK, which has up to 630 MB, and each session copies its jars.
    """

    hadoop: str
    sdk: str | None
    """Release of the AWS SDK that S3A is built with. If it is None, the whole SDK is loaded."""

    @property
    def packages(self) -> tuple[str, ...]:
        """Maven coordinates, those of S3A first."""
        connector = f"org.apache.hadoop:hadoop-aws:{self.hadoop}"
        if self.sdk is None:
            return (connector,)
        prefix, names = _PARTS[self._is_sdk_1]
        return (connector, *(f"{prefix}{name}:{self.sdk}" for name in names))

    @property
    def excludes(self) -> tuple[str, ...]:
        """Artifacts that are not needed or that Spark has."""
        return () if self.sdk is None else _EXCLUDES[self._is_sdk_1]

    @property
    def credentials(self) -> str:
        """The SDK's class that finds credentials outside Hadoop's configuration."""
        return _CREDENTIALS[self._is_sdk_1]

    @property
    def _is_sdk_1(self) -> bool:
        minor = _MINOR.match(self.hadoop)
        return minor is not None and (int(minor[1]), int(minor[2])) < _FIRST_WITH_SDK_2


CONNECTORS = (
    Connector("3.4.2", "2.29.52"),  # Spark 4.1
    Connector("3.5.0", "2.35.5"),  # Spark 4.2
    Connector("3.4.1", "2.24.8"),  # Spark 4.0
    Connector("3.3.4", "1.12.262"),  # Spark 3.5
)
"""S3A for Hadoop as the tested releases of Spark have it, the one of the default Spark first."""


def connector(hadoop: str) -> Connector:
    """Return S3A for a release of Hadoop."""
    known = (each for each in CONNECTORS if each.hadoop == hadoop)
    return next(known, Connector(hadoop, None))


def advise_jar(hadoop: str) -> str:
    """Return what to do in a session that has no file system for a path."""
    return (
        "load the file system's jar when the session starts: for S3, by "
        "zadapter.spark.session(stores=['s3']), or by the setting (command line: --conf) "
        f"spark.jars.packages={connector(hadoop).packages[0]}"
    )


def hadoop_of_jars(names: Iterable[str]) -> str:
    """Return the release of Hadoop among the names of Spark's jars, or of the default Spark.

    A Spark without Hadoop has no such jar; its user provides one.
    """
    found = (match[1] for match in map(_JAR.fullmatch, names) if match)
    return next(found, CONNECTORS[0].hadoop)


def hadoop_of_jvm(jvm: JavaObject) -> str:
    """Return the release of Hadoop that a JVM has."""
    return str(jvm.org.apache.hadoop.util.VersionInfo.getVersion())


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials as an S3A file system finds them; all None: requests are not signed."""

    key: str | None
    secret: str | None
    token: str | None = None
    end: datetime | None = None
    """When to ask for them again; None: never."""


def region_of(file_system: JavaObject) -> str | None:
    """Return the region that the bucket of an S3A file system reports."""
    if _INTERNALS in dir(file_system):
        region = file_system.getS3AInternals().getBucketMetadata().bucketRegion()
    else:
        region = file_system.getBucketLocation()
    return None if region is None else str(region)


def credentials_of(file_system: JavaObject) -> Callable[[], Credentials]:
    """Return a function that asks an S3A file system for credentials."""
    purpose = "zadapter"
    if _INTERNALS in dir(file_system):
        shared = file_system.getS3AInternals().shareCredentials(purpose)
        return lambda: _of_sdk_2(shared.resolveCredentials())
    shared = file_system.shareCredentials(purpose)
    return lambda: _of_sdk_1(shared.getCredentials())


def _of_sdk_2(found: JavaObject) -> Credentials:
    temporary = found.getClass().getSimpleName() == "AwsSessionCredentials"
    expiration = found.expirationTime().orElse(None) if temporary else None
    return Credentials(
        key=found.accessKeyId(),
        secret=found.secretAccessKey(),
        token=found.sessionToken() if temporary else None,
        end=expiration and datetime.fromtimestamp(expiration.getEpochSecond(), timezone.utc),
    )


def _of_sdk_1(found: JavaObject) -> Credentials:
    """Return credentials whose end is unknown: version 1 of the SDK does not tell it."""
    temporary = "getSessionToken" in dir(found)
    return Credentials(
        key=found.getAWSAccessKeyId(),
        secret=found.getAWSSecretKey(),
        token=found.getSessionToken() if temporary else None,
        end=datetime.now(timezone.utc) + _ASKED_AGAIN if temporary else None,
    )
