"""Stats that are missing from the footers of other programs' files.

INT96 columns, Spark's default for timestamps, have no bounds, and some writers write none at all.
Bounds are unreliable if a column contains NaN, or dates of another calendar.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.key_types import has_nan, is_bytes
from zadapter.base.locations import bare
from zadapter.base.names import NameParts, leaves, quote, split
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.table import file_stats
from zadapter.table.encoding import KEPT
from zadapter.table.file_stats import Bounds, schema, stats_of_values, structs
from zadapter.table.snapshot import Snapshot
from zadapter_parquet.rows import rows


def fill_missing_stats(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> pa.Table:
    """Fill missing stats of *files* by reading the values of the columns.

    Args:
        spark: A session.
        snapshot: Version that the files belong to.
        files: File table with stats of all columns.
    """
    columns = [split(field.name) for field in files.schema.field("stats").type]
    missing = {parts: mask for parts in columns if pc.any(mask := _missing(files, parts)).as_py()}
    if not missing:
        return files
    incomplete = reduce(pc.or_, missing.values())
    paths = files["path"].combine_chunks()
    computed = _compute_stats(spark, snapshot, paths.filter(incomplete).to_pylist(), tuple(missing))
    indices = pc.index_in(paths, computed["path"].combine_chunks())
    return _replace_stats(files, missing, computed.take(indices))


def _missing(files: pa.Table, parts: NameParts) -> pa.Array:
    """Return which files lack bounds of a column, or have NaN as its upper bound."""
    stats = file_stats.column(files, parts)
    count = files["rows"].combine_chunks()
    unknown = pc.equal(pc.struct_field(stats, "bounds"), int(Bounds.UNKNOWN))
    high = pc.struct_field(stats, "max")
    if has_nan(high.type):
        unknown = pc.or_(unknown, pc.is_nan(high).fill_null(False))  # noqa: FBT003
    only_nulls = pc.equal(pc.struct_field(stats, "nulls"), count)
    complete = pc.or_(only_nulls.fill_null(False), pc.equal(count, 0))  # noqa: FBT003
    return pc.and_(unknown, pc.invert(complete))


def _compute_stats(
    spark: SparkSession, snapshot: Snapshot, paths: list[str], columns: Sequence[NameParts]
) -> pa.Table:
    files, entry = snapshot.handle.files, snapshot.handle.version.entry
    names = {parts[0] for parts in columns}
    schema = T.StructType.fromJson(json.loads(entry.schema))
    read_schema = T.StructType([field for field in schema if field.name in names])
    locations = [files.location(path) for path in paths]
    types = dict(leaves(snapshot.schema))
    column_types = {parts: types[parts] for parts in columns}
    stored = rows.read_stored(spark, read_schema, locations)
    stats = aggregate_stats(stored, rows.file_of_row(stored), column_types)
    uris = rows.uris(spark, locations)
    paths_by_uri = {bare(uri): path for uri, path in zip(uris, paths, strict=True)}
    log_paths = pa.array([paths_by_uri[file] for file in stats["path"].to_pylist()], pa.string())
    return stats.set_column(0, "path", log_paths)


def _replace_stats(
    files: pa.Table, missing: Mapping[NameParts, pa.Array], computed: pa.Table
) -> pa.Table:
    field = files.schema.field("stats")
    children = []
    for column in field.type:
        original = file_stats.child(files["stats"], column.name)
        mask = missing.get(split(column.name))
        if mask is not None:
            original = pc.if_else(mask, file_stats.child(computed["stats"], column.name), original)
        children.append(original)
    stats = file_stats.structs(children, field.type, files.num_rows)
    return file_stats.replace_column(files, field, stats)


def aggregate_stats(
    rows: DataFrame, file: Column, columns: Mapping[NameParts, pa.DataType]
) -> pa.Table:
    """Aggregate the stats of *columns* per file, in one pass.

    String and binary columns with values of more than ``KEPT`` bytes get no bounds.

    Args:
        rows: The rows.
        file: Expression that identifies a row's file.
        columns: Columns with an order, and their types.

    Returns:
        Table with ``path``, the value of *file*, and ``stats`` as in a file table.
    """
    expressions = [
        expression.alias(f"{name}{number}")
        for number, (parts, type_) in enumerate(columns.items())
        for name, expression in _expressions(F.col(quote(parts)), type_)
    ]
    table = to_arrow(rows.groupBy(file.alias("path")).agg(*expressions))
    stats = [_stats(table, number, type_) for number, type_ in enumerate(columns.values())]
    type_ = schema(columns, {}).field("stats").type
    return pa.table({"path": table["path"], "stats": structs(stats, type_, table.num_rows)})


def _expressions(column: Column, type_: pa.DataType) -> Iterator[tuple[str, Column]]:
    value, nans = column, F.lit(None).cast("bigint")
    if has_nan(type_):  # Spark orders NaN above all numbers
        value, nans = F.when(~F.isnan(column), column), F.count_if(F.isnan(column))
    low, high = F.min(value), F.max(value)
    if is_bytes(type_):
        short = F.max(F.octet_length(column)) <= KEPT
        low, high = F.when(short, low), F.when(short, high)
    yield from (("low", low), ("high", high), ("nans", nans))
    yield "nulls", F.count_if(column.isNull())


def _stats(table: pa.Table, number: int, type_: pa.DataType) -> pa.StructArray:
    low, high = (table[f"{name}{number}"].combine_chunks().cast(type_) for name in ("low", "high"))
    nulls, nans = (table[f"{name}{number}"].combine_chunks() for name in ("nulls", "nans"))
    return stats_of_values(low, high, nulls, nans)
