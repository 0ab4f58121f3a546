"""A session beside the user's: same settings, same catalogs, but safe to set things in."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from zadapter.table import Snapshot

SAFE = {
    # with these on, a rewrite would drop the rows of a damaged file and then the file
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # the layout decides where files end
    "spark.sql.files.maxRecordsPerFile": "0",
    # INT96, the other choice, has no bounds
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # before 1582, footers would speak of the Julian calendar
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # values of CHAR columns stay as they are stored
    "spark.sql.readSideCharPadding": "false",
    # a task for each file that is looked for: 24 s for 5 000 files on 2 cores, 1.5 s by fewer tasks
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "256",
    # recognises its own commit when a retry finds it there already; off by default
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
}


@contextmanager
def scratch(spark: SparkSession) -> Iterator[SparkSession]:
    """Clone *spark*, make the clone the active session, and put things back.

    Args:
        spark: The user's session; its settings stay as they are. The clone's are the same, but
            for ``SAFE``.
    """
    gateway: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    sessions = getattr(gateway.org.apache.spark.sql.classic, "SparkSession$")
    sessions = getattr(sessions, "MODULE$")
    before = sessions.getActiveSession()
    clone = spark._jsparkSession.cloneSession()  # noqa: SLF001
    made = SparkSession(spark.sparkContext, clone)
    for key, value in SAFE.items():
        made.conf.set(key, value)
    sessions.setActiveSession(clone)
    try:
        yield made
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def refresh(users: SparkSession, changed: Snapshot) -> None:
    """Have the user's session look at a table anew: catalogs hold on to versions for a while."""
    if changed.identifier is not None:
        with suppress(Exception):
            users.sql(f"REFRESH TABLE {changed.identifier}")


def planned(spark: SparkSession, plan: Any) -> DataFrame:
    """Return the rows of a logical plan, under the settings of *spark*."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    datasets = jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001


@contextmanager
def switched_off(spark: SparkSession, key: str) -> Iterator[None]:
    """Have a setting that is true or false be false for a while."""
    before = spark.conf.get(key) or "false"
    spark.conf.set(key, "false")
    try:
        yield
    finally:
        spark.conf.set(key, before)
