"""What the stats of files allow the values of one column to be."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.filestats import Bounds
from zadapter.names import Parts, join

Mask: TypeAlias = npt.NDArray[np.bool_]
"""One truth value a file."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a column may hold; an entry a file.

    Values are *regular* unless they are null or NaN.
    """

    low: pa.Array
    """No regular value is below; null where none is known, never NaN."""
    high: pa.Array
    """No regular value is above; null where none is known, never NaN."""
    regular: Mask
    """Whether a regular value may occur."""
    nan: Mask
    """Whether NaN may occur."""
    null: Mask
    """Whether null may occur."""


def gather(files: pa.Table, column: Parts, type_: pa.DataType | None = None) -> Evidence:
    """Gather what *files* tell about *column*: the partition if it has it, else the stats.

    Args:
        files: A table of files, see :mod:`zadapter.filestats`.
        column: As the table's schema writes it.
        type_: The type of what the column is compared with, if it is compared. Values of any
            other type tell nothing: they may be of another column of that name.
    """
    name = join(column)
    partition = files["partition"].type.get_field_index(column[0]) if len(column) == 1 else -1
    if partition >= 0:
        found = _of_partition(_child(files["partition"], column[0]))
    elif files["stats"].type.get_field_index(name) >= 0:
        found = _of_stats(files, name)
    else:
        return unknown(files.num_rows)
    return unknown(files.num_rows) if type_ and found.low.type != type_ else found


def unknown(length: int) -> Evidence:
    """Return what nothing is known of: any value may occur in any file."""
    everywhere = np.ones(length, dtype=np.bool_)
    nowhere = pa.nulls(length)
    return Evidence(nowhere, nowhere, everywhere, everywhere, everywhere)


def counts(files: pa.Table, *path: str) -> npt.NDArray[np.int64]:
    """Return a column of counts, -1 where they are unknown."""
    column = files[path[0]] if len(path) == 1 else _child(files[path[0]], *path[1:])
    known = pc.fill_null(pc.cast(column, pa.int64()), -1)
    return np.asarray(known.to_numpy(), dtype=np.int64)


def mask(flags: pa.Array, *, default: bool) -> Mask:
    """Return Arrow's *flags* as numpy's, with *default* for null."""
    return np.asarray(pc.fill_null(flags, default).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _child(structs: pa.ChunkedArray, *path: str) -> pa.Array:
    """Return a field of *structs*; the fields beside it are not copied."""
    type_, indices = structs.type, []
    for name in path:
        indices.append(type_.get_field_index(name))
        type_ = type_.field(indices[-1]).type
    return pc.struct_field(structs, indices).combine_chunks()


def _of_partition(values: pa.Array) -> Evidence:
    null = mask(values.is_null(), default=True)
    nan = _is_nan(values)
    bound = _only(values, _comparable(values.type) & ~nan)
    return Evidence(bound, bound, ~null & ~nan, nan, null)


def _of_stats(files: pa.Table, name: str) -> Evidence:
    low = _child(files["stats"], name, "min")
    high = _child(files["stats"], name, "max")
    rows = counts(files, "rows")
    nulls = counts(files, "stats", name, "nulls")
    nan_shown = _is_nan(low) | _is_nan(high)
    nans = counts(files, "stats", name, "nans") if pa.types.is_floating(low.type) else 0 * rows
    trusted = _trusted(files, name, low, high)
    possible = (rows < 0) | (np.maximum(nulls, 0) + np.maximum(nans, 0) <= rows)
    some = ~(possible & (nulls >= 0) & (nulls == rows))
    regular = ~(possible & (nulls >= 0) & (nans >= 0) & (nulls + nans == rows))
    return Evidence(
        low=_only(low, trusted & possible & ~_is_nan(low)),
        high=_only(high, trusted & possible & ~_is_nan(high)),
        regular=some & regular,
        nan=some & ((nans != 0) | nan_shown | ~possible),
        null=(nulls != 0) | ~possible,
    )


def _trusted(files: pa.Table, name: str, low: pa.Array, high: pa.Array) -> Mask:
    bounds = counts(files, "stats", name, "bounds")
    held = (bounds == Bounds.EXACT) | (bounds == Bounds.WIDENED)
    if not _comparable(low.type):
        return np.zeros_like(held)
    return held & ~mask(pc.greater(low, high), default=False)


def _only(values: pa.Array, kept: Mask) -> pa.Array:
    """Return *values* with null where they are not *kept*."""
    if kept.all():
        return values
    if not _comparable(values.type):
        return pa.nulls(len(values), values.type)
    return pc.if_else(pa.array(kept), values, pa.scalar(None, values.type))


def _is_nan(values: pa.Array) -> Mask:
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), dtype=np.bool_)
    return mask(pc.is_nan(values), default=False)


def _comparable(type_: pa.DataType) -> bool:
    """Tell whether Arrow compares values of *type_* as Spark does."""
    return any(
        is_type(type_)
        for is_type in (
            pa.types.is_integer,
            pa.types.is_float32,
            pa.types.is_float64,
            pa.types.is_decimal128,
            pa.types.is_date32,
            pa.types.is_timestamp,
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_boolean,
        )
    )
