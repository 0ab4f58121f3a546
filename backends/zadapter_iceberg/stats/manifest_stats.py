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

LAYOUT = r"/zadapter-(?P<id>[0-9a-f]{32})/"
"""Folder in a path that contains the id of the file's layout."""


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
    deletes: Mapping[str, Deletes],
    spec: int,
) -> pa.Table:
    """Return the file table of *contents*.

    Args:
        contents: Rows of the metadata table ``files`` for data files.
        wanted: Columns whose stats are read.
        partition: Fields of the current partition spec, with the types of their values.
        deletes: Row-level deletes by the path of the data file.
        spec: Id of that spec. Files of other specs may have rows of several of its partitions.
    """
    paths = contents["file_path"].combine_chunks()
    ids, deleted, share, delete_files = _of_files(deletes, paths)
    live = pc.subtract(contents["record_count"].combine_chunks(), deleted)
    types = {column.parts: column.type for column in wanted}
    file_schema = schema(types, partition)
    values = [_read_partition_value(contents, name, type_) for name, type_ in partition.items()]
    mixed = pc.not_equal(contents["spec_id"].combine_chunks(), spec)
    tight = pc.equal(deleted, 0).fill_null(False)  # noqa: FBT003
    stats = [_read_column_stats(contents, column, live, tight) for column in wanted]
    files = pa.table(
        [
            paths.cast(pa.string()),
            ids,
            contents["file_size_in_bytes"],
            live,
            find_layouts(paths),
            structs(values, file_schema.field("partition").type, len(paths), mixed),
            structs(stats, file_schema.field("stats").type, len(paths)),
        ],
        schema=file_schema,
    )
    return (
        files.append_column(DELETED, deleted)
        .append_column(DELETED_SHARE, share)
        .append_column(DELETE_FILES, delete_files)
    )


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


def find_layouts(paths: pa.Array) -> pa.Array:
    """Return the id of the layout that each path names, or null; many files have one folder."""
    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    folders = pc.list_element(parts, 0).dictionary_encode()
    slashed = pc.binary_join_element_wise(folders.dictionary, "/", "")
    return pc.struct_field(pc.extract_regex(slashed, LAYOUT), "id").take(folders.indices)


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
        (contents["record_count"].combine_chunks(), live),
        tight,
        exact=not is_bytes(column.type),
    )


def _entries_of(contents: pa.Table, name: str, key: int) -> pa.Array:
    own = entry_name(name, key)
    if own in contents.schema.names:
        return contents[own].combine_chunks()
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
