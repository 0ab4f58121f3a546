"""A session beside the user's: same catalogs and resources, but files are read as they are stored.

Settings that the user's session has change neither what is read nor what is written. Spark's own
settings are back at their defaults in the clone, those of later versions included, unless they are
known to be harmless (``HARMLESS``). So are Spark's own functions: a function of the user's that has
the name of one of Spark's would be called in its place, even by operators such as ``IS NULL``.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from zadapter.table import rebase_settings
from zadapter.table.snapshot import Snapshot

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
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    # values of CHAR columns stay as they are stored
    "spark.sql.readSideCharPadding": "false",
    # a task for each file that is looked for: 24 s for 5 000 files on 2 cores, 1.5 s by fewer tasks
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "256",
    # recognises its own commit when a retry finds it there already; off by default
    "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
}
UNPUSHED = {"spark.sql.parquet.filterPushdown": "false"}
"""With these, conditions exclude no row groups."""
BY_BOUNDS = {
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
}
"""With these, they do so by bounds alone, and not by the bits of values: 0.0 is -0.0, too."""
_OWN = "spark.sql."
"""Where Spark's own settings begin; those of formats, plug-ins and stores stay as they are."""
_HARMLESS = (
    # resources
    r"adaptive\..*", r"shuffle.*", r".*\.shuffleDependency\..*", r"leafNodeDefaultParallelism",
    r"autoBroadcastJoinThreshold", r"broadcastTimeout",
    r"files\.(maxPartitionBytes|maxPartitionNum|minPartitionNum|openCostInBytes)",
    r"sources\.(parallelPartitionDiscovery\..*|ignoreDataLocality|useListFilesFileSystemList)",
    # ways around a generated method or a batch that is too large
    r"codegen\..*", r"columnVector\..*",
    r"parquet\.(columnarReaderBatchSize|enable\w*VectorizedReader)",
    # how files are encoded and committed; Delta needs the ids
    r"parquet\.(compression\.codec|output\.committer\.class|fieldId\.(read|write)\.enabled)",
    r"sources\.(commitProtocolClass|outputCommitterClass)",
    # where tables are found; the zone that moments without one are in
    r"catalog\..*", r"defaultCatalog", r"hive\..*", r"artifact\..*", r"session\.timeZone",
    # what is shown and logged
    r"redaction\..*", r"ui\..*", r"debug\..*", r".*[lL]og\.?[lL]evel", r"planChangeLog\..*",
)  # fmt: skip
HARMLESS = re.compile("|".join(_HARMLESS))
"""Settings that keep the user's values, without the prefix of Spark's own."""
_OF_NO_EXPRESSION = re.compile(
    r"(legacy\.)?(parquet|files|sources|variant|analyzer|optimizer|execution\.arrow)\..*"
    r"|maxBroadcastTableSize"
)
"""Settings that the value of no expression depends on, without that prefix."""


@contextmanager
def scratch(spark: SparkSession, *, expressions: bool = False) -> Iterator[SparkSession]:
    """Clone *spark*, make the clone the active session, and put things back.

    Args:
        spark: The user's session; its settings stay as they are.
        expressions: Whether expressions of the caller's are evaluated in the clone. If so, only
            settings that none of them depends on are reset.
    """
    gateway: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    sessions = _module(gateway.org.apache.spark.sql.classic, "SparkSession")
    before = sessions.getActiveSession()
    clone = spark._jsparkSession.cloneSession()  # noqa: SLF001
    to_df = RDD.toDF
    made = SparkSession(spark.sparkContext, clone)
    # PySpark has it make rows of whichever session was made last
    RDD.toDF = to_df  # type: ignore[method-assign]
    users = {key: str(spark.conf.get(key)) for key in rebase_settings.MOVING}
    _reset(made, expressions=expressions)
    kept = {rebase_settings.KEPT + key: value for key, value in users.items()}
    set_all(made, SAFE | kept)
    own = _module(gateway.org.apache.spark.sql.catalyst.analysis, "FunctionRegistry").builtin()
    clone.sessionState().functionRegistry().functionBuilders().addAll(own.functionBuilders())
    sessions.setActiveSession(clone)
    try:
        yield made
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def set_all(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Change settings of a session that is ours."""
    for key, value in settings.items():
        spark.conf.set(key, value)


def _reset(clone: SparkSession, *, expressions: bool) -> None:
    """Set Spark's own settings back to their defaults."""
    conf: Any = clone._jsparkSession.sessionState().conf()  # noqa: SLF001
    for key in conf.getAllConfs().keys().mkString("\n").splitlines():
        name = key.removeprefix(_OWN)
        if name == key or HARMLESS.fullmatch(name):
            continue
        # older names of settings are in no registry, and count where the newer one is not set
        resettable = clone.conf.isModifiable(key) or name.startswith("legacy.")
        if resettable and (not expressions or _OF_NO_EXPRESSION.fullmatch(name)):
            conf.unsetConf(key)


def _module(package: Any, name: str) -> Any:
    """Return a Scala ``object``."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


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
