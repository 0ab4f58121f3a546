"""File tables from the stats in manifests.

The input has the columns of Iceberg's metadata table ``files``, or of
:mod:`zadapter_iceberg.stats.manifest_columns`. Bounds are in the single-value
serialization of the Iceberg spec (Appendix D). A missing entry means unknown.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import as_array, zeros
from zadapter.base.key_types import is_bytes
from zadapter.base.names import NameParts
from zadapter.table.file_stats import (
    DELETE_FILES,
    DELETED,
    DELETED_SHARE,
    child,
    column_stats,
    schema,
    structs,
)
from zadapter_iceberg.stats.binary_values import decode_bounds
from zadapter_iceberg.stats.manifest_columns import STATS, entry_name
from zadapter_iceberg.stats.row_deletes import Deletes

_PREFIX = "/zadapter-"
LAYOUT = rf"{_PREFIX}(?P<id>[0-9a-f]{{32}})/"
"""Folder in a path that contains the id of the file's layout."""
_WIDTH = len(_PREFIX) + 33
"""Bytes that match it."""


class Wanted(NamedTuple):
    """Column whose stats are read."""

    parts: NameParts
    id: int
    type: pa.DataType


_NO_DELETES = Deletes(None, 0, 0.0, 0)
_TYPES = (pa.string(), pa.int64(), pa.float64(), pa.int64())


def file_table(
    contents: pa.Table,
    wanted: Sequence[Wanted],
    partition: Mapping[str, pa.DataType],
    deletes: Mapping[str, Deletes] | None,
    spec: int,
) -> pa.Table:
    """Return the file table of *contents*.

    Args:
        contents: Rows of the metadata table ``files`` for data files.
        wanted: Columns whose stats are read.
        partition: Fields of the current partition spec, with the types of their values.
        deletes: Row-level deletes by the path of the data file. None: there are none, and
            :func:`add_no_deletes` adds their counts.
        spec: Id of that spec. Files of other specs may have rows of several of its partitions.
    """
    paths = as_array(contents["file_path"]).cast(pa.string())
    ids, *counts = _of_files(deletes or {}, paths)
    deleted, *_ = counts
    live = pc.subtract(as_array(contents["record_count"]), deleted)
    types = {column.parts: column.type for column in wanted}
    file_schema = schema(types, partition)
    values = [_read_partition_value(contents, name, type_) for name, type_ in partition.items()]
    mixed = pc.not_equal(as_array(contents["spec_id"]), spec)
    tight = pc.equal(deleted, 0).fill_null(False)  # noqa: FBT003
    stats = [_read_column_stats(contents, column, live, tight) for column in wanted]
    files = pa.table(
        [
            paths,
            ids,
            contents["file_size_in_bytes"],
            live,
            find_layouts(paths),
            structs(values, file_schema.field("partition").type, len(paths), mixed),
            structs(stats, file_schema.field("stats").type, len(paths)),
        ],
        schema=file_schema,
    )
    return files if deletes is None else _add_counts(files, counts)


def add_no_deletes(files: pa.Table) -> pa.Table:
    """Return a file table with the counts of no row-level deletes, which take no memory."""
    return _add_counts(files, [zeros(files.num_rows, type_) for type_ in _TYPES[1:]])


def _add_counts(files: pa.Table, counts: Sequence[pa.Array]) -> pa.Table:
    for name, values in zip((DELETED, DELETED_SHARE, DELETE_FILES), counts, strict=True):
        files = files.append_column(name, values)
    return files


def _of_files(deletes: Mapping[str, Deletes], paths: pa.Array) -> tuple[pa.Array, ...]:
    """Return an array for each attribute of the deletes, one value per file."""
    none = [pa.scalar(each, type_) for each, type_ in zip(_NO_DELETES, _TYPES, strict=True)]
    if not deletes:
        return tuple(pa.repeat(each, len(paths)) for each in none)
    at = pc.index_in(paths, pa.array(deletes, paths.type))
    return tuple(
        pc.if_else(
            at.is_null(),
            each,
            pa.array([own[number] for own in deletes.values()], each.type).take(at),
        )
        for number, each in enumerate(none)
    )


def find_layouts(paths: pa.StringArray) -> pa.StringArray:
    """Return the id of the layout that each path names, or null.

    Files of one folder follow each other, so the pattern is searched in one path of each folder.
    """
    at = pc.find_substring(paths, _PREFIX).fill_null(-1).to_numpy()
    offsets = np.frombuffer(paths.buffers()[1], np.int32)[paths.offset :][: len(paths) + 1]
    starts = offsets[:-1] + at
    named = np.flatnonzero((at >= 0) & (starts + _WIDTH <= offsets[1:]))
    if not len(named):
        return pa.nulls(len(paths), pa.string())
    data = np.frombuffer(paths.buffers()[2], np.uint8)
    folders = np.lib.stride_tricks.sliding_window_view(data, _WIDTH)[starts[named]]
    is_new = np.append([True], (folders[1:] != folders[:-1]).any(axis=1))
    first = named[is_new]
    heads = paths.take(pa.array(first))
    matched = pc.find_substring_regex(heads, LAYOUT).to_numpy()
    if (matched != at[first]).any():  # another folder of a path may have the id
        return _extract_layouts(paths)
    ids = _extract_layouts(heads)
    run_of = np.full(len(paths), -1)
    run_of[named] = np.cumsum(is_new) - 1
    return ids.take(pa.array(run_of, mask=run_of < 0))


def _extract_layouts(paths: pa.StringArray) -> pa.StringArray:
    return pc.struct_field(pc.extract_regex(paths, LAYOUT), "id")


def _read_partition_value(contents: pa.Table, name: str, type_: pa.DataType) -> pa.Array:
    values = child(contents["partition"], name)
    return pa.nulls(contents.num_rows, type_) if values is None else values.cast(type_)


def _read_column_stats(
    contents: pa.Table, column: Wanted, live: pa.Array, tight: pa.Array
) -> pa.StructArray:
    low, high, nulls, nans = (_entries_of(contents, name, column.id) for name in STATS)
    return column_stats(
        (decode_bounds(low, column.type), decode_bounds(high, column.type)),
        nulls,
        nans,
        (as_array(contents["record_count"]), live),
        tight,
        exact=not is_bytes(column.type),
    )


def _entries_of(contents: pa.Table, name: str, key: int) -> pa.Array:
    own = entry_name(name, key)
    if own in contents.schema.names:
        return as_array(contents[own])
    return entries(contents[name], key)


def entries(maps: pa.ChunkedArray, key: int) -> pa.Array:
    """Return the value of *key* in each map, or null if the map lacks it."""
    flat = maps.combine_chunks()
    offsets = flat.offsets.to_numpy()
    start = int(offsets[0])
    positions = start + np.flatnonzero(flat.keys.to_numpy()[start : int(offsets[-1])] == key)
    indices = np.full(len(flat), -1, np.int64)
    indices[np.searchsorted(offsets, positions, side="right") - 1] = positions
    return flat.items.take(pa.array(indices, mask=indices < 0))
