"""Which releases are tested together, and which build of a library goes with a release of Spark."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

SPARK = ("4.1.4", "4.1.1", "4.2.1", "4.0.5", "4.0.2", "3.5.6")
"""Releases of Spark that ``python -m integration.matrix`` runs with, the default first."""
OLDEST = "3.5"
"""Minor version of Spark below which functions are missing."""
LocalSettings = Callable[[Mapping[str, str], int], Mapping[str, str]]
"""Returns settings of a new session on a local master, given those that are set and the number of
cores."""
_RELEASE = re.compile(r"\d+(\.\d+)+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A release of a format's library that is tested with a minor version of Spark."""

    spark: str
    """Minor version of Spark, such as 4.1."""
    version: str
    packages: tuple[str, ...]
    """Maven coordinates."""
    local_settings: LocalSettings | None = None
    """Replaces the format's own settings of a new session on a local master; None: it does not."""

    @property
    def scala(self) -> str:
        """Version of Scala, such as 2.13, that the library is compiled for."""
        return self.packages[0].split(":")[1].rpartition("_")[2]


def minor(version: str) -> str:
    """Return the minor version, such as 4.1, of a version such as 4.1.2."""
    return ".".join(version.split(".")[:2])


def choose_build(builds: Sequence[Build], spark: str, wanted: str | None = None) -> Build | None:
    """Return the build for a release of Spark; None if there is none.

    Args:
        builds: Builds of one library, the preferred ones first.
        spark: The release of Spark.
        wanted: The release of the library that the user has; None: any.
    """
    fitting = [build for build in builds if build.spark == minor(spark)]
    same = [build for build in fitting if wanted and minor(build.version) == minor(wanted)]
    return next(iter(same or fitting), None)


class Standing(Enum):
    """What is known of a release of Spark; all code that depends on the release uses this.

    Before the first write of an application, a self-test commits to a table
    (``zadapter.rewrite.self_test``) unless the release is tested. Before the first rewrite, another
    one narrows rows (``zadapter.spark.narrowing.row_test``) unless the release is listed; of an
    unknown minor version, rows are placed by plain operations.
    """

    LISTED = "listed"
    """The tests run with exactly this release."""
    PATCH = "patch"
    """Another patch of a minor version that is listed."""
    BUILD = "build"
    """A vendor's build of such a minor version, such as 3.5.6-amzn-1."""
    UNKNOWN = "unknown"
    """Of a minor version without any listed release."""

    @property
    def is_tested(self) -> bool:
        """Whether the release commits without a self-test."""
        return self in {Standing.LISTED, Standing.PATCH}


def standing(spark: str) -> Standing:
    """Return what the tests say of a release of Spark."""
    if spark in SPARK:
        return Standing.LISTED
    if minor(spark) not in map(minor, SPARK):
        return Standing.UNKNOWN
    return Standing.PATCH if is_release(spark) else Standing.BUILD


def is_tested(builds: Sequence[Build], spark: str, version: str) -> bool:
    """Return whether a library is tested with a release of Spark; a vendor's build of it is not."""
    tested = (minor(build.version) for build in builds if build.spark == minor(spark))
    return standing(spark).is_tested and is_release(version) and minor(version) in tested


def is_release(version: str) -> bool:
    """Return whether a version is one of the project's own, not a vendor's."""
    return _RELEASE.match(version) is not None


def is_too_old(spark: str) -> bool:
    """Return whether a release of Spark is older than the oldest one that works."""
    return _parse_version(spark) < _parse_version(OLDEST)


def java_for(spark: str) -> range:
    """Return the releases of Java that a release of Spark supports."""
    return range(8, 18) if _parse_version(spark)[0] < 4 else range(17, 22)  # noqa: PLR2004 - Spark 4


def nearest(builds: Sequence[Build], spark: str, version: str) -> tuple[str, str]:
    """Return the tested releases of Spark and of a library that are closest to the given ones."""
    distances = [
        (_distance(release, spark), _distance(build.version, version), release, build.version)
        for build in builds
        for release in SPARK
        if minor(release) == build.spark
    ]
    *_, release, build_version = min(distances)
    return release, build_version


def nearest_spark(spark: str) -> str:
    """Return the tested release of Spark that is closest to *spark*."""
    return min(SPARK, key=lambda release: _distance(release, spark))


def _distance(one: str, other: str) -> list[int]:
    return [abs(a - b) for a, b in zip(_parse_version(one), _parse_version(other), strict=True)]


def _parse_version(version: str) -> list[int]:
    """Return major, minor and patch, 0 where they are missing."""
    return [*map(int, re.findall(r"\d+", version)[:3]), 0, 0, 0][:3]
