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
    missing = {parts: which for parts in columns if pc.any(which := _missing(files, parts)).as_py()}
    if not missing:
        return files
    some = reduce(pc.or_, missing.values())
    paths = files["path"].combine_chunks()
    counted = _counted(spark, snapshot, paths.filter(some).to_pylist(), tuple(missing))
    places = pc.index_in(paths, counted["path"].combine_chunks())
    return _filled(files, missing, counted.take(places))


def _missing(files: pa.Table, parts: Parts) -> pa.Array:
    """Return which files lack bounds of a column, or have NaN as its upper bound."""
    stats = file_stats.column(files, parts)
    count = files["rows"].combine_chunks()
    unknown = pc.equal(pc.struct_field(stats, "bounds"), int(Bounds.UNKNOWN))
    high = pc.struct_field(stats, "max")
    if pa.types.is_floating(high.type):
        unknown = pc.or_(unknown, pc.is_nan(high).fill_null(False))  # noqa: FBT003
    only_nulls = pc.equal(pc.struct_field(stats, "nulls"), count)
    sure = pc.or_(only_nulls.fill_null(False), pc.equal(count, 0))  # noqa: FBT003
    return pc.and_(unknown, pc.invert(sure))


def _counted(
    spark: SparkSession, snapshot: Snapshot, paths: list[str], columns: Sequence[Parts]
) -> pa.Table:
    files, entry = snapshot.handle.files, snapshot.handle.version.entry
    names = {parts[0] for parts in columns}
    every = T.StructType.fromJson(json.loads(entry.schema))
    asked = T.StructType([field for field in every if field.name in names])
    locations = [files.location(path) for path in paths]
    types = dict(leaves(snapshot.schema))
    wanted = {parts: types[parts] for parts in columns}
    stored = rows.stored(spark, asked, locations)
    found = aggregated(stored, rows.file_of_row(stored), wanted)
    uris = rows.uris(spark, locations)
    known = {bare(uri): path for uri, path in zip(uris, paths, strict=True)}
    named = pa.array([known[file] for file in found["path"].to_pylist()], pa.string())
    return found.set_column(0, "path", named)


def _filled(files: pa.Table, missing: Mapping[Parts, pa.Array], counted: pa.Table) -> pa.Table:
    """Replace missing stats by the aggregated ones."""
    field = files.schema.field("stats")
    children = []
    for each in field.type:
        known = file_stats.child(files["stats"], each.name)
        which = missing.get(split(each.name))
        if which is not None:
            known = pc.if_else(which, file_stats.child(counted["stats"], each.name), known)
        children.append(known)
    stats = file_stats.structs(children, field.type, files.num_rows)
    return file_stats.replaced(files, field, stats)
