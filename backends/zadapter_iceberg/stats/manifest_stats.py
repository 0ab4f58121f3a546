"""File tables from the stats in manifests.

The input has the columns of Iceberg's metadata table ``files``. Bounds are in the single-value
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
from zadapter_iceberg.stats.row_deletes import Deletes

LAYOUT = r"/zadapter-(?P<id>[0-9a-f]{32})/"
"""Folder in a path that contains the id of the file's layout."""


class Wanted(NamedTuple):
    """Column whose stats are read."""

    parts: NameParts
    id: int
    type: pa.DataType


_NO_DELETES = Deletes(None, 0, 0.0, 0)


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
            pc.struct_field(pc.extract_regex(paths, LAYOUT), "id"),
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
    at = pc.index_in(paths, pa.array(deletes, paths.type))
    types = (pa.string(), pa.int64(), pa.float64(), pa.int64())
    return tuple(
        pc.if_else(
            at.is_null(),
            pa.scalar(none, type_),
            pa.array([each[number] for each in deletes.values()], type_).take(at),
        )
        for number, (none, type_) in enumerate(zip(_NO_DELETES, types, strict=True))
    )


def _read_partition_value(contents: pa.Table, name: str, type_: pa.DataType) -> pa.Array:
    values = child(contents["partition"], name)
    return pa.nulls(contents.num_rows, type_) if values is None else values.cast(type_)


def _read_column_stats(
    contents: pa.Table, column: Wanted, live: pa.Array, tight: pa.Array
) -> pa.StructArray:
    low = decode_bounds(entries(contents["lower_bounds"], column.id), column.type)
    high = decode_bounds(entries(contents["upper_bounds"], column.id), column.type)
    return column_stats(
        (low, high),
        entries(contents["null_value_counts"], column.id),
        entries(contents["nan_value_counts"], column.id),
        (contents["record_count"].combine_chunks(), live),
        tight,
        exact=not is_bytes(column.type),
    )


def entries(maps: pa.ChunkedArray, key: int) -> pa.Array:
    """Return the value of *key* in each map, or null if the map lacks it."""
    flat = maps.combine_chunks()
    offsets = flat.offsets.to_numpy()
    start = int(offsets[0])
    positions = start + np.flatnonzero(flat.keys.to_numpy()[start : int(offsets[-1])] == key)
    indices = np.full(len(flat), -1, np.int64)
    indices[np.searchsorted(offsets, positions, side="right") - 1] = positions
    return flat.items.take(pa.array(indices, mask=indices < 0))
