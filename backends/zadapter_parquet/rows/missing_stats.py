"""Stats that are missing from the footers of other programs' files.

INT96 columns, Spark's default for timestamps, have no bounds, and some writers write none at all.
Bounds are unreliable if a column contains NaN, or dates of another calendar.
"""

import json
from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.key_types import has_nan
from zadapter.base.locations import bare
from zadapter.base.names import Parts, leaves, split
from zadapter.table import file_stats
from zadapter.table.file_stats import Bounds
from zadapter.table.snapshot import Snapshot
from zadapter_parquet.rows import rows
from zadapter_parquet.rows.column_stats import aggregated


def completed(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> pa.Table:
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
    computed = _computed(spark, snapshot, paths.filter(incomplete).to_pylist(), tuple(missing))
    indices = pc.index_in(paths, computed["path"].combine_chunks())
    return _filled(files, missing, computed.take(indices))


def _missing(files: pa.Table, parts: Parts) -> pa.Array:
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


def _computed(
    spark: SparkSession, snapshot: Snapshot, paths: list[str], columns: Sequence[Parts]
) -> pa.Table:
    files, entry = snapshot.handle.files, snapshot.handle.version.entry
    names = {parts[0] for parts in columns}
    schema = T.StructType.fromJson(json.loads(entry.schema))
    read_schema = T.StructType([field for field in schema if field.name in names])
    locations = [files.location(path) for path in paths]
    types = dict(leaves(snapshot.schema))
    column_types = {parts: types[parts] for parts in columns}
    stored = rows.stored(spark, read_schema, locations)
    stats = aggregated(stored, rows.file_of_row(stored), column_types)
    uris = rows.uris(spark, locations)
    paths_by_uri = {bare(uri): path for uri, path in zip(uris, paths, strict=True)}
    log_paths = pa.array([paths_by_uri[file] for file in stats["path"].to_pylist()], pa.string())
    return stats.set_column(0, "path", log_paths)


def _filled(files: pa.Table, missing: Mapping[Parts, pa.Array], computed: pa.Table) -> pa.Table:
    """Replace missing stats by the aggregated ones."""
    field = files.schema.field("stats")
    children = []
    for column in field.type:
        original = file_stats.child(files["stats"], column.name)
        mask = missing.get(split(column.name))
        if mask is not None:
            original = pc.if_else(mask, file_stats.child(computed["stats"], column.name), original)
        children.append(original)
    stats = file_stats.structs(children, field.type, files.num_rows)
    return file_stats.replaced(files, field, stats)
