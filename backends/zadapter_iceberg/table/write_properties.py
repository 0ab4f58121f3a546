"""Properties of a table for one write, for writers' stats, and options of Spark's reads."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.names import NameParts, quote
from zadapter.layout.layout import Layout
from zadapter.spark.jvm.gateway import scala_context
from zadapter.spark.jvm.scala import java_dict
from zadapter.table.bloom_filters import size_of
from zadapter.table.encoding import Encoding
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import StagedWrite
from zadapter_iceberg.columns import FUNCTIONS
from zadapter_iceberg.jvm import Jvm
from zadapter_iceberg.table.side_files import data_folder
from zadapter_iceberg.table.snapshots import METRICS, Version

_DICTIONARY = "write.parquet.dict-encoding-enabled.column."
_BLOOM_FILTER = "write.parquet.bloom-filter-"

_TASKS = 4
"""Tasks per core, so that cores do not wait long for the last task."""

_SMALLEST_SPLIT, _LARGEST_SPLIT = 16 << 20, 128 << 20
"""Bytes: Iceberg's limits of a split (``TableScanUtil``, ``read.split.target-size``)."""


def settings(snapshot: Snapshot, layout: Layout | None, encoding: Encoding) -> dict[str, str]:
    """Return the properties of a write, among them a new data folder.

    Args:
        snapshot: The version that is written to.
        layout: Layout of the rows, whose id becomes part of the folder's path; None for no layout.
        encoding: Parquet encoding of the rows.
    """
    pinned = snapshot.handle.pinned
    table_properties = java_dict(snapshot.handle.jvm.root, pinned.properties())
    write = StagedWrite(id=encoding.write, layout=None if layout is None else layout.id)
    properties = {"write.data.path": data_folder(pinned, write)}
    if layout is not None:
        for parts in layout.request.columns:
            # bounds truncated to 16 characters are equal where strings share a prefix
            properties[METRICS + ".".join(parts)] = "full"
    for parts in encoding.plain:
        name = _DICTIONARY + ".".join(parts)
        properties[name] = table_properties.get(name, "false")
    properties |= _bloom_filters(encoding, table_properties)
    if encoding.row_group is not None:
        row_count = str(encoding.row_group)
        # the writer checks the size only after this number of rows, and then ends the row group
        properties["write.parquet.row-group-size-bytes"] = "1"
        properties["write.parquet.row-group-check-min-record-count"] = row_count
        properties["write.parquet.row-group-check-max-record-count"] = row_count
    return properties


def _bloom_filters(encoding: Encoding, table_properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of Bloom filters; sizes that the table states itself are kept."""
    properties = dict[str, str]()
    for parts in encoding.bloom_filters:
        name = ".".join(parts)
        properties[f"{_BLOOM_FILTER}enabled.column.{name}"] = "true"
        if encoding.row_group is not None:
            # releases without the number of distinct values make every filter as large as allowed
            values, most = f"{_BLOOM_FILTER}ndv.column.{name}", f"{_BLOOM_FILTER}max-bytes"
            properties[values] = table_properties.get(values, str(encoding.row_group))
            properties[most] = table_properties.get(most, str(size_of(encoding.row_group)))
    return properties


def collect_full_stats(snapshot: Snapshot, columns: Sequence[NameParts]) -> None:
    """Set the property that makes writers collect full stats of *columns*, in one commit."""
    update = snapshot.handle.located.table.updateProperties()
    for parts in columns:
        update.set(METRICS + ".".join(parts), "full")
    update.commit()


def split_size(spark: SparkSession, files: pa.Table) -> int:
    """Return the bytes of a split; Iceberg balances tasks only in scans that it plans itself."""
    tasks = _TASKS * int(scala_context(spark.sparkContext).defaultParallelism())
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
    fields = snapshot.handle.computed_fields
    if not fields:
        return rows
    catalog = f"spark.sql.catalog.{FUNCTIONS}"
    spark.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set(f"{catalog}.type", "hadoop")
    spark.conf.set(f"{catalog}.warehouse", snapshot.location)
    return rows.selectExpr(
        "*", *(f"{field.expression} AS {quote((field.name,))}" for field in fields)
    )
