"""Options of Spark's reads of Iceberg tables: split size and partition fields."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.names import quote
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot
from zadapter_iceberg.columns import FUNCTIONS
from zadapter_iceberg.jvm import Jvm
from zadapter_iceberg.table.snapshots import Version

_TASKS = 4
"""Tasks per core, so that cores do not wait long for the last task."""
_SMALLEST_SPLIT, _LARGEST_SPLIT = 16 << 20, 128 << 20
"""Bytes: Iceberg's limits of a split (``TableScanUtil``, ``read.split.target-size``)."""


def split_size(spark: SparkSession, files: pa.Table) -> int:
    """Return the bytes of a split; Iceberg balances tasks only in scans that it plans itself."""
    tasks = _TASKS * int(spark.sparkContext.defaultParallelism)
    return min(max(total(files, "size") // tasks, _SMALLEST_SPLIT), _LARGEST_SPLIT)


def no_rows(jvm: Jvm, version: Version) -> DataFrame:
    """Return no rows, with the columns of a version."""
    columns = jvm.iceberg.spark.SparkSchemaUtil.convert(version.pinned.schema())
    return DataFrame(jvm.session.createDataFrame(jvm.list([]), columns), jvm.spark)


def scan(jvm: Jvm, snapshot: Snapshot) -> DataFrame:
    """Return the rows of a table as queries on it read them."""
    version: Version = snapshot.handle
    reader = jvm.spark.read.format("iceberg")
    if version.located.branch is not None:  # the branch's name may be that of a table
        reader = reader.option(jvm.version_option, str(version.snapshot_id))
    if snapshot.identifier is None:
        return reader.load(snapshot.location)
    return reader.table(snapshot.identifier)  # load takes a name with a slash for a path


def with_fields(spark: SparkSession, rows: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Append partition fields that are not table columns."""
    fields = snapshot.handle.computed
    if not fields:
        return rows
    catalog = f"spark.sql.catalog.{FUNCTIONS}"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", snapshot.location)
    return rows.selectExpr(
        "*", *(f"{field.expression} AS {quote((field.name,))}" for field in fields)
    )
