"""The cells: releases that are tested together."""

from dataclasses import dataclass

from zadapter.backend.builds import Build, minor
from zadapter.backend.plugins import formats

SUITES = ("contract", "placement", "procedures", "stories")
"""The contract of backends, where rows are placed, procedures of SQL, and users' stories."""
PLAIN = ("placement", "procedures")
"""The suites that need no library: plain Parquet is enough."""


@dataclass(frozen=True)
class Cell:
    """Releases of Spark, of the formats' libraries, and of Python."""

    spark: str
    versions: dict[str, str]
    """Release of each format's library, by the format's name; a format without one is left out."""
    python: str
    where: str
    """Platforms that have these releases."""

    @property
    def name(self):
        """Name of the cell, as the command line and the folder of its environment have it."""
        return "-".join([self.spark, *self.versions.values()])

    @property
    def suites(self):
        """The suites that can run; Spark has procedures since 4.0."""
        can_run = SUITES if self.versions else PLAIN
        is_old = minor(self.spark) < "4.0"
        return tuple(each for each in can_run if not (is_old and each == "procedures"))

    @property
    def builds(self):
        """The builds of the formats' libraries."""
        return [_build(name, self.spark, version) for name, version in self.versions.items()]


def _build(name: str, spark: str, version: str) -> Build:
    builds = formats()[name].library.builds
    return next(b for b in builds if (b.spark, b.version) == (minor(spark), version))


def _cell(spark, delta, iceberg, python, where):
    versions = {"delta": delta, "iceberg": iceberg}
    return Cell(spark, {name: v for name, v in versions.items() if v}, python, where)


CELLS = (
    _cell("4.2.1", "4.4.0", None, "3.12", "newest Spark"),
    _cell("4.1.4", "4.4.0", "1.12.0", "3.11", "the default"),
    _cell("4.1.1", "4.2.0", "1.11.0", "3.11", "Glue 6.0, Dataproc 3.0, Fabric 2.0"),
    _cell("4.0.5", "4.4.0", "1.11.0", "3.11", "newest Spark 4.0"),
    _cell("4.0.2", "4.0.0", "1.10.1", "3.11", "EMR Spark 8.0"),
    _cell("3.5.6", "3.3.2", "1.10.1", "3.10", "Glue 5.1, EMR 7.13"),
)
PATCHES = (
    _cell("4.2.0", None, None, "3.12", "first Spark 4.2"),
    _cell("4.1.3", None, None, "3.11", "Spark 4.1"),
    _cell("4.1.2", None, None, "3.11", "Dataproc 3.0"),
    _cell("3.5.9", None, None, "3.10", "newest Spark 3.5"),
)
"""Cells of Spark alone, which run on request: their libraries are tested with another patch."""
