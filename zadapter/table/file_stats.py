"""The file table: the files of a snapshot as one Arrow table, with one row per file.

======== =============================== ==================================================
column   type                            meaning
======== =============================== ==================================================
path     string                          as the format's log names the file, unique
deletes  string                          id of the row-level deletes on the file; null: none
size     int64                           bytes
rows     int64                           live rows; null: unknown
layout   string                          id of the layout that wrote it; null: none
partition struct<name: T, ...>           partition values, exact; null: rows of several partitions
stats    struct<text: COLUMN, ...>       a child per column, named by ``names.join(parts)``
======== =============================== ==================================================

where COLUMN is ``struct<min: T, max: T, nulls: int64, nans: int64, bounds: int8>``.

A bound is null if it is unknown, or if the file has only null and NaN values. ``nulls`` and
``nans`` are null where unknown, never 0 by default. ``bounds`` is a :class:`Bounds`. Bounds may be
too wide, never too narrow: min <= v <= max, in Spark's order of the type, for every live value v
that is neither null nor NaN. A ``max`` of NaN means that NaN may be present.

File tables of some formats have more columns:

============= ====== ======================================================================
deleted       int64  rows that row-level deletes remove; null: unknown
deleted_share double their share of the file's rows, estimated where their number is unknown
delete_files  int64  files of row-level deletes that a reader of the file opens
owner         string the other implementation that clustered the file; null: none, or zadapter
============= ====== ======================================================================
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import as_array, no_texts, take_rows
from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts, join

DELETED, OWNER = "deleted", "owner"

DELETED_SHARE, DELETE_FILES = "deleted_share", "delete_files"
MOST_COPIED = 1 << 29
"""Bytes of a column that is made one piece while its pieces are in memory."""
BYTES_A_ROW = 64
"""Assumed bytes per row of files whose log entry has no row count."""


class Bounds(IntEnum):
    """Reliability of a pair of bounds."""

    EXACT = 0
    """Both bounds are values of the file."""
    WIDENED = 1
    """The bounds are valid, but may be truncated, or wider than the live values."""
    UNKNOWN = 2
    """The bounds are unknown; the file may hold any value."""


def column_type(type_: pa.DataType) -> pa.StructType:
    """Return the type of one column's stats."""
    return pa.struct(
        [
            ("min", type_),
            ("max", type_),
            ("nulls", pa.int64()),
            ("nans", pa.int64()),
            ("bounds", pa.int8()),
        ]
    )


def column_stats(
    bounds: tuple[pa.Array, pa.Array],
    nulls: pa.Array,
    nans: pa.Array,
    rows: tuple[pa.Array, pa.Array],
    tight: pa.Array,
    *,
    exact: bool,
) -> pa.StructArray:
    """Return one column's stats from the entries of a format's log, one per file.

    Args:
        bounds: Lowest and highest values, null where unknown.
        nulls: Null counts among all rows of the file.
        nans: NaN counts.
        rows: Number of rows in the file, and number of live rows.
        tight: Whether the stats describe the live rows only. Otherwise a null count is valid only
            if no row or every row is null, since deleted rows may be the null ones.
        exact: Whether the log stores bounds of this type without truncation or rounding.
    """
    low, high = bounds
    file_rows, live = rows
    all_null = pc.equal(nulls, file_rows)
    sure = pc.or_(tight, pc.equal(nulls, 0))
    certain = pc.make_struct(all_null.fill_null(False), sure.fill_null(False))  # noqa: FBT003
    best = int(Bounds.EXACT if exact else Bounds.WIDENED)
    has_bound = pc.or_(low.is_valid(), high.is_valid())
    flags = pc.if_else(tight, best, int(Bounds.WIDENED))
    flags = pc.if_else(has_bound, flags, int(Bounds.UNKNOWN)).cast(pa.int8())
    children = [low, high, pc.case_when(certain, live, nulls), nans, flags]
    return pa.StructArray.from_arrays(children, fields=list(column_type(low.type)))


def stats_of_values(low: Any, high: Any, nulls: Any, nans: Any) -> pa.StructArray:
    """Return one column's stats from the extremes and counts of all values, one per file.

    Extremes that are null are unknown.
    """
    flags = pc.if_else(low.is_valid(), int(Bounds.EXACT), int(Bounds.UNKNOWN)).cast(pa.int8())
    return pa.StructArray.from_arrays(
        [low, high, nulls, nans, flags], fields=list(column_type(low.type))
    )


def schema(
    columns: Mapping[NameParts, pa.DataType], partition: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Return the schema of a file table with stats of *columns*."""
    return pa.schema(
        [
            pa.field("path", pa.string(), nullable=False),
            pa.field("deletes", pa.string()),
            pa.field("size", pa.int64(), nullable=False),
            pa.field("rows", pa.int64()),
            pa.field("layout", pa.string()),
            pa.field("partition", pa.struct(list(partition.items()))),
            pa.field("stats", pa.struct([(join(c), column_type(t)) for c, t in columns.items()])),
        ]
    )


def empty(
    columns: Mapping[NameParts, pa.DataType], partition: Mapping[str, pa.DataType]
) -> pa.Table:
    """Return a file table without files; the arguments are those of :func:`schema`."""
    return schema(columns, partition).empty_table()


def exclude_owned(files: pa.Table) -> pa.Table:
    """Return the files that no other implementation has clustered."""
    if OWNER not in files.schema.names or files[OWNER].null_count == files.num_rows:
        return files
    return files.filter(pc.is_null(files[OWNER]))


def deleted_share(files: pa.Table) -> npt.NDArray[np.float64]:
    """Return the share of each file's rows that row-level deletes remove; 0 if it is unknown."""
    if DELETED_SHARE in files.schema.names:
        return np.asarray(files[DELETED_SHARE].fill_null(0).to_numpy(), np.float64)
    if DELETED not in files.schema.names:
        return np.zeros(files.num_rows)
    deleted, live = (files[name].fill_null(0).to_numpy() for name in (DELETED, "rows"))
    return np.asarray(deleted / np.maximum(deleted + live, 1), np.float64)


def delete_files(files: pa.Table) -> npt.NDArray[np.int64]:
    """Return the number of files of row-level deletes that a reader of each file opens."""
    if DELETE_FILES not in files.schema.names:
        return np.zeros(files.num_rows, np.int64)
    return np.asarray(files[DELETE_FILES].fill_null(0).to_numpy(), np.int64)


def column(files: pa.Table, parts: NameParts) -> pa.StructArray | None:
    """Return the stats of one column, or None if the table has none."""
    return child(files["stats"], join(parts))


def partition(files: pa.Table, name: str) -> pa.Array | None:
    """Return the values of one partition column, or None if there is no such column."""
    return child(files["partition"], name)


def child(structs: pa.ChunkedArray, *path: str) -> pa.Array | None:
    """Return a nested field of *structs* without a copy of its siblings, or None if missing."""
    type_, chunks = structs.type, structs.chunks
    for name in path:
        at = type_.get_field_index(name)
        if at < 0:
            return None
        type_ = type_.field(at).type
        chunks = [_field(chunk, at) for chunk in chunks]
    return as_array(pa.chunked_array(chunks, type_))


def _field(structs: pa.StructArray, at: int) -> pa.Array:
    """Return a field of *structs*, null where its parent is null.

    ``pc.struct_field`` reads all fields: calls for 2 000 columns in turn took 16 s.
    """
    return pc.struct_field(structs, [at]) if structs.null_count else structs.field(at)


def both_zeros(low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return bounds of floats that include both zeros if they include one.

    Spark considers -0.0 and 0.0 equal, so either may be the bound. Iceberg and delta-rs order -0.0
    below 0.0, and would skip files with the other zero (parquet.thrift, ``ColumnOrder``).
    """
    negative_zero, positive_zero = pa.scalar(-0.0, low.type), pa.scalar(0.0, high.type)
    low = pc.if_else(pc.equal(low, negative_zero).fill_null(False), negative_zero, low)  # noqa: FBT003
    return low, pc.if_else(pc.equal(high, positive_zero).fill_null(False), positive_zero, high)  # noqa: FBT003


def total(files: pa.Table, name: str) -> int:
    """Return the sum of *name* ("size" or "rows") over all files; unknown values count as 0."""
    return int(pc.sum(files[name]).as_py() or 0)


def row_counts(files: pa.Table) -> npt.NDArray[np.int64]:
    """Return the number of rows per file, estimated where the log has no row count."""
    rows = as_array(files["rows"]).to_numpy(zero_copy_only=False)
    if rows.dtype == np.int64:  # all are known
        return np.asarray(rows)
    guess = np.maximum(files["size"].to_numpy() // BYTES_A_ROW, 1)
    return np.asarray(np.where(np.isnan(rows), guess, rows), np.int64)


def live_rows(files: pa.Table) -> int | None:
    """Return the live rows of *files* from the log, or None if a row count is missing."""
    return None if files["rows"].null_count else total(files, "rows")


def spread(files: pa.Table, count: int) -> pa.Table:
    """Return at most *count* evenly spread files."""
    return files if files.num_rows <= count else take_rows(files, evenly(files.num_rows, count))


def evenly(number: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most *most* evenly spread indices below *number*."""
    return np.linspace(0, number - 1, min(number, most)).astype(np.int64)


def totals(tables: Iterable[pa.Table]) -> dict[str, int | None]:
    """Return the number of files, their bytes, and their rows; None: a row count is unknown."""
    found = list(tables)
    known = not any(files["rows"].null_count for files in found)
    return {
        "files": sum(files.num_rows for files in found),
        "bytes": sum(total(files, "size") for files in found),
        "rows": sum(total(files, "rows") for files in found) if known else None,
    }


def concat_files(parts: Iterable[pa.Table]) -> pa.Table:
    """Return file tables as one, whose columns are not cut in pieces.

    Columns of the parts are copied, since views keep all of Spark's message, and freed one by one,
    so that little more than the result is in memory. For the same reason, columns of more than
    :data:`MOST_COPIED` bytes, such as paths, stay in pieces.
    """
    columns, file_schema = list[list[pa.ChunkedArray]](), None
    for part in parts:
        file_schema = part.schema
        columns = columns or [[] for _ in file_schema]
        for column, values in zip(columns, part.columns, strict=True):
            copies = [pa.concat_arrays([chunk]) for chunk in values.chunks]
            column.append(pa.chunked_array(copies, values.type))
    arrays = list[pa.ChunkedArray]()
    for column in columns:
        chunks = [chunk for values in column for chunk in values.chunks if len(chunk)]
        whole = pa.chunked_array(chunks, column[0].type)
        column.clear()
        chunks.clear()
        arrays.append(_in_one(whole))
        del whole
    pa.default_memory_pool().release_unused()  # the system gets back what was freed
    return pa.table(arrays, schema=file_schema)


def _in_one(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if values.type == pa.string() and values.null_count == len(values):
        return pa.chunked_array([no_texts(len(values))])
    if values.num_chunks == 1 or values.nbytes >= MOST_COPIED:
        return values
    return pa.chunked_array([values.combine_chunks()], values.type)


def select_stats(files: pa.Table, target_schema: pa.Schema) -> pa.Table:
    """Return *files* with the stats of *target_schema* only; missing stats become unknown."""
    typed_stats = [
        (child(files["stats"], f.name), f.type) for f in target_schema.field("stats").type
    ]
    children = [
        pa.nulls(files.num_rows, type_) if stats is None else stats for stats, type_ in typed_stats
    ]
    field = target_schema.field("stats")
    return replace_column(files, field, structs(children, field.type, files.num_rows))


def replace_column(files: pa.Table, field: pa.Field, values: pa.Array) -> pa.Table:
    """Return *files* with *values* as the column *field*."""
    return files.set_column(files.schema.get_field_index(field.name), field, values)


def structs(
    children: Sequence[pa.Array], type_: pa.StructType, rows: int, null: pa.Array | None = None
) -> pa.Array:
    """Return structs of *children*, null where *null* is true.

    *rows* is the length of structs without fields.
    """
    if not children:
        valid = None if null is None else pc.invert(null.fill_null(False)).buffers()[1]  # noqa: FBT003
        return pa.Array.from_buffers(type_, rows, [valid], children=[])
    return pa.StructArray.from_arrays(list(children), fields=list(type_), mask=null)


def find_constant(files: pa.Table, columns: Sequence[NameParts]) -> tuple[NameParts, ...]:
    """Return the columns of which all live rows have one value, or only nulls, for certain.

    Args:
        files: The file table, with stats of the columns.
        columns: The columns.
    """
    rows = live_rows(files)
    return tuple(parts for parts in columns if rows and _is_alike(files, parts, rows))


def _is_alike(files: pa.Table, parts: NameParts, rows: int) -> bool:
    stats = column(files, parts)
    if stats is None:
        return False
    low, high, nulls, nans = (
        pc.struct_field(stats, name) for name in ("min", "max", "nulls", "nans")
    )
    if nulls.null_count:
        return False
    without = pc.sum(nulls).as_py() or 0
    if without:
        return bool(without == rows)
    if has_nan(low.type) and (nans.null_count or pc.sum(nans).as_py()):
        return False  # NaN is beyond the bounds
    if low.null_count or high.null_count:
        return False
    # bounds may be too wide, so equal ones have one value between them
    return len(pc.unique(pa.concat_arrays([low, high]))) == 1
