"""A clone of the user's session: same catalogs and resources, but default settings and functions.

Settings of the user's session change neither the rows that are read nor the files that are written.
In the clone, Spark's own settings have their defaults, including those of later versions, unless
they are known to be harmless (``HARMLESS``). Built-in functions are restored too: a user's function
with the name of a built-in one would replace it, even in operators such as ``IS NULL``.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging import Logger
from threading import Lock
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from zadapter.base.interrupts import ignoring_errors
from zadapter.spark.compat import spark_api
from zadapter.spark.compat.spark_api import error_loggers
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.gateway import java_session
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import add_all, java_map, module
from zadapter.spark.jvm.spark_classes import activate, dataset
from zadapter.table.snapshot import Snapshot

SAFE = {
    # with these on, a rewrite would drop the rows of a damaged file and then the file
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # the layout decides where files end
    "spark.sql.files.maxRecordsPerFile": "0",
    # INT96, the other choice, has no bounds
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # footers would hold dates before 1582 in the Julian calendar
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # names of columns in SQL text are no patterns
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # values of CHAR columns stay as they are stored
    "spark.sql.readSideCharPadding": "false",
    # one task per listed file takes 24 s for 5 000 files on 2 cores; fewer tasks take 1.5 s
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "256",
    # Delta recognises its own commit when a retry finds it already committed; off by default
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
}
UNPUSHED = {"spark.sql.parquet.filterPushdown": "false"}
"""Settings under which conditions exclude no row groups."""
BY_BOUNDS = {
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
}
"""Settings under which conditions exclude row groups by bounds only. Dictionaries and bloom filters
compare bits, and distinguish 0.0 from -0.0."""
_OWN = "spark.sql."
"""Prefix of Spark's own settings. Settings of formats, plug-ins and stores are not reset."""
_HARMLESS = (
    # resources
    r"adaptive\..*", r"shuffle.*", r".*\.shuffleDependency\..*", r"leafNodeDefaultParallelism",
    r"autoBroadcastJoinThreshold", r"broadcastTimeout",
    r"files\.(maxPartitionBytes|maxPartitionNum|minPartitionNum|openCostInBytes)",
    r"sources\.(parallelPartitionDiscovery\..*|ignoreDataLocality|useListFilesFileSystemList)",
    # workarounds for generated methods or batches that are too large
    r"codegen\..*", r"columnVector\..*",
    r"parquet\.(columnarReaderBatchSize|enable\w*VectorizedReader)",
    # how files are encoded and committed; Delta needs the ids
    r"parquet\.(compression\.codec|output\.committer\.class|fieldId\.(read|write)\.enabled)",
    r"sources\.(commitProtocolClass|outputCommitterClass)",
    # locations of tables; the zone of timestamps without one
    r"catalog\..*", r"defaultCatalog", r"hive\..*", r"artifact\..*", r"session\.timeZone",
    # display and logging
    r"redaction\..*", r"ui\..*", r"debug\..*", r".*[lL]og\.?[lL]evel", r"planChangeLog\..*",
)  # fmt: skip
HARMLESS = re.compile("|".join(_HARMLESS))
"""Settings that keep the user's values, without the prefix ``_OWN``."""
_OF_NO_EXPRESSION = re.compile(
    r"(legacy\.)?(parquet|files|sources|variant|analyzer|optimizer|execution\.arrow)\..*"
    r"|maxBroadcastTableSize|retainGroupColumns"
)
"""Settings that affect the value of no expression, without the prefix ``_OWN``."""

_silencing = Lock()
_silent = list[Mapping[Logger, bool]]()
"""How the first of the runs that silence loggers has found them, once for each of these runs."""


@contextmanager
def scratch(spark: SparkSession, *, expressions: bool = False) -> Iterator[SparkSession]:
    """Clone *spark*, activate the clone, and restore the active session on exit.

    Args:
        spark: The user's session; its settings do not change.
        expressions: Whether the clone evaluates expressions of the caller. If so, only settings
            that affect no expression are reset.
    """
    gateway = java_classes(spark)
    java_clone = java_session(spark).cloneSession()
    clone = spark_api.to_python_session(spark.sparkContext, java_clone)
    spark_names.follow(spark, clone)  # Spark clones settings and views, but not USE
    user_values = {key: str(spark.conf.get(key)) for key in spark_api.MOVING}
    _reset(clone, expressions=expressions)
    kept = {spark_api.USER_PREFIX + key: value for key, value in user_values.items()}
    set_all(clone, SAFE | kept)
    builtin = module(gateway.org.apache.spark.sql.catalyst.analysis, "FunctionRegistry").builtin()
    registry = java_clone.sessionState().functionRegistry()
    add_all(registry.functionBuilders(), builtin.functionBuilders())
    with activate(clone), silence_errors():
        yield clone


@contextmanager
def silence_errors() -> Iterator[None]:
    """Keep PySpark from printing errors with Java's stack: zadapter raises them as its own."""
    with _silencing:
        before = _silent[-1] if _silent else {each: each.disabled for each in error_loggers()}
        _silent.append(before)
        for logger in before:
            logger.disabled = True
    try:
        yield
    finally:
        with _silencing:
            _silent.pop()
            for logger, disabled in before.items():
                logger.disabled = disabled or bool(_silent)


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Change settings of a cloned session, in one call and without a warning of each new key."""
    properties = java_map(java_classes(spark), settings, "Properties")
    java_session(spark).sessionState().conf().setConf(properties)


def _reset(clone: SparkSession, *, expressions: bool) -> None:
    """Set Spark's own settings back to their defaults."""
    conf: Any = java_session(clone).sessionState().conf()
    for key in conf.getAllConfs().keys().mkString("\n").splitlines():
        name = key.removeprefix(_OWN)
        if name == key or HARMLESS.fullmatch(name):
            continue
        # former names of settings are not registered, but apply if the current name is not set
        resettable = clone.conf.isModifiable(key) or name.startswith("legacy.")
        if resettable and (not expressions or _OF_NO_EXPRESSION.fullmatch(name)):
            conf.unsetConf(key)


def refresh(user_session: SparkSession, changed: Snapshot) -> None:
    """Refresh a table in the user's session, since catalogs cache versions."""
    if changed.identifier is not None:
        with ignoring_errors():
            user_session.sql(f"REFRESH TABLE {changed.identifier}")


def to_rows(spark: SparkSession, plan: Any) -> DataFrame:
    """Return a logical plan as a DataFrame that *spark* plans under its settings."""
    jvm = java_classes(spark)
    return DataFrame(dataset(jvm, java_session(spark), plan), spark)


@contextmanager
def switch_off(spark: SparkSession, key: str) -> Iterator[None]:
    """Temporarily disable a boolean setting."""
    before = spark.conf.get(key) or "false"
    spark.conf.set(key, "false")
    try:
        yield
    finally:
        spark.conf.set(key, before)
