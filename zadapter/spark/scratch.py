"""A session beside the user's: same settings, same catalogs, but safe to set things in."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

SAFE = {
    # with these on, a rewrite would drop the rows of a damaged file and then the file
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # the layout decides where files end
    "spark.sql.files.maxRecordsPerFile": "0",
    # INT96, the other choice, has no bounds
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.databricks.delta.stats.collect": "true",
    # recognises its own commit when a retry finds it there already; off by default
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
}


@contextmanager
def scratch(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Clone *spark*, make the clone the thread's active session, and put things back.

    Args:
        spark: The user's session; its settings stay as they are.
        conf: Settings of the clone, on top of the user's and of ``SAFE``.
    """
    gateway: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    sessions = getattr(gateway.org.apache.spark.sql.classic, "SparkSession$")
    sessions = getattr(sessions, "MODULE$")
    before = sessions.getActiveSession()
    clone = spark._jsparkSession.cloneSession()  # noqa: SLF001
    made = SparkSession(spark.sparkContext, clone)
    for key, value in {**SAFE, **conf}.items():
        made.conf.set(key, value)
    sessions.setActiveSession(clone)
    try:
        yield made
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
