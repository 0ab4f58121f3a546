"""What differs between releases of PySpark: functions, methods, and settings of calendars.

Some settings make Spark change dates and timestamps when it reads them. Footers and logs hold
bounds of the stored values, so formats refuse such a session where it matters.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import RDD, SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from zadapter.spark.jvm import scala
from zadapter.spark.jvm.gateway import java_rows, java_session, jvm_of
from zadapter.spark.jvm.java_classes import java_classes

_BYTEWISE = "UTF8_BINARY"
"""The collation of texts that are compared by their bytes."""
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
_SEED = 42
"""Seed of Spark's hash partitioning (``HashPartitioning``)."""
_making = threading.Lock()
"""Held while a session of PySpark is made, since that changes RDD for a moment."""
_BATCH = 10_000
"""Rows of a partition of a DataFrame that is made from Arrow, as in Spark."""
_ERROR_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

MOVING = {
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", {"date", "timestamp"}),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", {"timestamp"}),
    "spark.sql.parquet.int96TimestampConversion": ("TRUE", {"timestamp"}),
}
"""For each setting, the value that changes dates or timestamps, and the affected types."""
USER_PREFIX = "zadapter.users."
"""Prefix under which a clone of a session, which resets these settings, keeps the user's values."""


def arrow_schema(rows: DataFrame, *, large: bool = False) -> pa.Schema:
    """Return the Arrow schema of rows, with moments in UTC.

    Args:
        rows: The rows.
        large: Whether texts and bytes have offsets of 64 bits.
    """
    return _to_arrow_schema(rows.schema, large=large)


def _to_arrow_schema(schema: T.StructType, *, large: bool) -> pa.Schema:
    options: dict[str, Any] = {"prefers_large_types": True} if large else {}
    if "timezone" in signature(to_arrow_schema).parameters:  # PySpark 4.2 knows no UTC by itself
        options["timezone"] = "UTC"
    return to_arrow_schema(schema, **options)


def to_arrow(rows: DataFrame) -> pa.Table:
    """Return *rows* as an Arrow table.

    ``DataFrame.toArrow`` is PySpark 4.0 and later, and asks for settings that change only how the
    table lies in memory.
    """
    plain: Any = rows
    schema = arrow_schema(rows)
    batches = plain._collect_as_arrow()  # noqa: SLF001 - as toPandas does
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()


def to_python_session(context: SparkContext, java: Any) -> SparkSession:
    """Return PySpark's session of a Java session of the context."""
    with _making:
        to_df = RDD.toDF
        session = SparkSession(context, java)
        # PySpark binds RDD.toDF to the session that was created last
        RDD.toDF = to_df  # type: ignore[method-assign]
    return session


def from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame.

    ``createDataFrame`` takes Arrow tables in PySpark 4.0 and later, and makes its session the
    active one of all threads. The JVM reads the same stream of batches in all releases.
    """
    session: Any = spark
    jvm: Any = jvm_of(session)
    python = java_classes(session).org.apache.spark.sql.api.python.PythonSQLUtils
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if has_large_types(session):
        table = table.cast(_to_arrow_schema(schema, large=True))
    batches = table.to_batches(max_chunksize=_BATCH)
    stream = session._sc._serialize_to_jvm(  # noqa: SLF001 - as createDataFrame does
        batches or [pa.RecordBatch.from_pylist([], schema=table.schema)],
        ArrowStreamSerializer(),
        python.readArrowStreamFromFile,
        jvm.ArrowIteratorServer,
    )
    java = python.toDataFrame(stream, schema.json(), java_session(session))
    return DataFrame(java, session)


def has_large_types(spark: SparkSession) -> bool:
    """Return whether texts and bytes in Arrow's batches of the JVM have offsets of 64 bits.

    The JVM does not look at the types of a batch: it would read other memory than that of texts.
    The setting is in Spark 4.0 and later.
    """
    return str(spark.conf.get(_LARGE, "false")).lower() == "true"


def valid_text(column: Column) -> Column:
    """Return texts without invalid UTF-8. ``make_valid_utf8`` is Spark 4.0 and later."""
    if hasattr(F, "make_valid_utf8"):
        return F.make_valid_utf8(column)
    return F.decode(column.cast("binary"), "UTF-8")


def has_collation(type_: T.DataType) -> bool:
    """Return whether texts are compared by a collation, which is Spark 4.0 and later."""
    return isinstance(type_, T.StringType) and getattr(type_, "collation", _BYTEWISE) != _BYTEWISE


def is_variant(type_: T.DataType) -> bool:
    """Return whether a type is VARIANT, which Spark has since 4.0."""
    return type_.typeName() == "variant"


def metadata_column(rows: DataFrame, name: str) -> Column:
    """Return a column that Spark adds to the rows of files.

    ``DataFrame.metadataColumn`` is PySpark 4.0 and later. The JVM's method is in Spark 3.5.
    """
    if hasattr(rows, "metadataColumn"):
        return rows.metadataColumn(name)
    java: Any = java_rows(rows).metadataColumn(name)
    return Column(java)


def settings(spark: SparkSession) -> dict[str, str]:
    """Return all settings of a session. ``RuntimeConfig.getAll`` is PySpark 4.0 and later."""
    session: Any = spark
    return scala.entries(java_classes(session), java_session(session).conf().getAll())


def error_loggers() -> list[logging.Logger]:
    """Return the loggers that print each error of a query, in PySpark 4.0 and later."""
    try:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 - PySpark 3.5 lacks it
    except ImportError:
        return []
    return [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]


def rebalance(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return *rows* with the hint REBALANCE by *columns*, which are quoted names.

    ``DataFrame.hint`` takes columns in PySpark 4.0 and later.
    """
    if hasattr(rows, "toArrow"):
        return rows.hint("rebalance", *map(F.col, columns))
    spark: Any = rows.sparkSession
    jvm = java_classes(spark)
    attribute = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute.quotedString
    names = scala.seq(jvm, scala.java_list(jvm, map(attribute, columns)))
    return DataFrame(java_rows(rows).hint("rebalance", names), spark)


def repartition_by_id(rows: DataFrame, count: int, number: Column) -> DataFrame:
    """Return *rows* in *count* partitions, each row in the one with its *number*.

    ``repartitionById`` is Spark 4.1 and later. Before, rows are partitioned by the hash of an
    integer: one whose hash, modulo *count*, is the number.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(count, number)
    keys = F.from_json(F.lit(str(keys_of_partitions(count))), "array<int>")
    return rows.repartition(count, F.get(keys, number))


def keys_of_partitions(count: int) -> list[int]:
    """Return for each number below *count* an integer that Spark hashes to this partition."""
    keys = np.full(count, -1, np.int64)
    start, step = 0, 8 * count
    while (keys < 0).any():
        candidates = np.arange(start, start + step, dtype=np.int64)
        keys[_hash_integers(candidates.astype(np.uint32)) % count] = candidates
        start += step
    return [int(key) for key in keys]


def _hash_integers(values: "np.ndarray[Any, np.dtype[np.uint32]]") -> Any:
    """Return Spark's hash of integers (``Murmur3_x86_32.hashInt``), signed."""
    with np.errstate(over="ignore"):
        mixed = _rotate(values * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        hashed = _rotate(mixed ^ np.uint32(_SEED), 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= np.uint32(4)  # the bytes of an integer
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            hashed = (hashed ^ (hashed >> np.uint32(shift))) * np.uint32(factor)
        hashed ^= hashed >> np.uint32(16)
    return hashed.astype(np.int32).astype(np.int64)


def _rotate(values: Any, by: int) -> Any:
    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))


def find_rebasing(setting_of: Callable[..., str | None], types: Collection[str]) -> str | None:
    """Return the setting of the user's session that changes values of *types*, or None.

    Args:
        setting_of: Returns a setting of the session or of its clone; its second argument is the
            default.
        types: Type names in Spark's notation.
    """
    for setting, (value, moved) in MOVING.items():
        current = setting_of(USER_PREFIX + setting, "") or setting_of(setting) or ""
        if moved.intersection(types) and current.strip().upper() == value:
            return setting
    return None
