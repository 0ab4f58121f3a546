"""File tables from the stats in manifests.

The input has the columns of Iceberg's metadata table ``files``. Bounds are in the single-value
serialization of the Iceberg spec (Appendix D). A missing entry means unknown.
"""

from collections.abc import Mapping, Sequence
from decimal import Context
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import Parts
from zadapter.table.file_stats import (
    DELETE_FILES,
    DELETED,
    DELETED_SHARE,
    child,
    column_stats,
    schema,
    structs,
)
from zadapter_iceberg.stats.row_deletes import Deletes

LAYOUT = r"/zadapter-(?P<id>[0-9a-f]{32})/"
"""Folder in a path that contains the id of the file's layout."""

_WIDTHS: Mapping[pa.DataType, Mapping[int, str]] = {
    pa.bool_(): {1: "?"},
    pa.int32(): {4: "<i4"},
    # promotion of int, float or decimal leaves bounds in the former type
    pa.int64(): {8: "<i8", 4: "<i4"},
    pa.float32(): {4: "<f4"},
    pa.float64(): {8: "<f8", 4: "<f4"},
    pa.date32(): {4: "<i4"},
    pa.timestamp("us"): {8: "<i8"},
    pa.timestamp("us", "UTC"): {8: "<i8"},
}
_EXACT = Context(prec=76)


class Wanted(NamedTuple):
    """Column whose stats are read."""

    parts: Parts
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
    values = [_value(contents, name, type_) for name, type_ in partition.items()]
    mixed = pc.not_equal(contents["spec_id"].combine_chunks(), spec)
    tight = pc.equal(deleted, 0).fill_null(False)  # noqa: FBT003
    stats = [_column(contents, column, live, tight) for column in wanted]
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


def _value(contents: pa.Table, name: str, type_: pa.DataType) -> pa.Array:
    values = child(contents["partition"], name)
    return pa.nulls(contents.num_rows, type_) if values is None else values.cast(type_)


def _column(contents: pa.Table, column: Wanted, live: pa.Array, tight: pa.Array) -> pa.StructArray:
    low = decoded(entries(contents["lower_bounds"], column.id), column.type)
    high = decoded(entries(contents["upper_bounds"], column.id), column.type)
    truncated = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    return column_stats(
        (low, high),
        entries(contents["null_value_counts"], column.id),
        entries(contents["nan_value_counts"], column.id),
        (contents["record_count"].combine_chunks(), live),
        tight,
        exact=not truncated,
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


def decoded(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode bounds; bounds of another length, invalid UTF-8 and NaN become null.

    Args:
        values: Bounds in the binary single-value serialization.
        type_: Current type of the column.
    """
    if pa.types.is_binary(type_):
        return values.cast(type_)
    if pa.types.is_string(type_):
        try:
            return values.cast(type_)
        except pa.ArrowInvalid:  # some are no texts
            return pa.array([_text(value) for value in values.to_pylist()], type_)
    if pa.types.is_decimal(type_):
        return pa.array([_decimal(value, type_.scale) for value in values.to_pylist()], type_)
    return _numbers(values, type_)


def _numbers(values: pa.Array, type_: pa.DataType) -> pa.Array:
    widths = _WIDTHS.get(type_, {})
    numbers = np.zeros(len(values), _dtype(type_))
    lengths = pc.binary_length(values).fill_null(-1).to_numpy()
    valid = np.zeros(len(values), bool)
    for width, dtype in widths.items():
        mask = lengths == width
        numbers[mask] = np.frombuffer(_data(values.filter(pa.array(mask))), dtype)
        valid |= mask
    if pa.types.is_floating(type_):
        valid &= ~np.isnan(numbers)
    return pa.array(numbers, mask=~valid).cast(type_)


def _data(values: pa.Array) -> memoryview | bytes:
    """Return the bytes of all *values*, none of which is null, one behind the other."""
    if not len(values):
        return b""
    starts = np.frombuffer(values.buffers()[1], np.int32)
    start, stop = starts[values.offset], starts[values.offset + len(values)]
    return memoryview(values.buffers()[2])[start:stop]


def _dtype(type_: pa.DataType) -> Any:
    whole = pa.types.is_date(type_), pa.types.is_timestamp(type_)
    return np.int32 if whole[0] else np.int64 if whole[1] else type_.to_pandas_dtype()


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None  # truncated within a character


def _decimal(value: bytes | None, scale: int) -> Any:
    if value is None:
        return None
    unscaled = int.from_bytes(value, "big", signed=True)
    return _EXACT.create_decimal(unscaled).scaleb(-scale, _EXACT)
