"""Possible values of a column in each file, from partition values and stats."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import as_array
from zadapter.base.key_types import has_nan, kind_of
from zadapter.base.names import NameParts, join
from zadapter.table.file_stats import Bounds, child

Mask: TypeAlias = npt.NDArray[np.bool_]
"""One truth value per file."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Possible values of a column, with one entry per file.

    Values are *regular* unless they are null or NaN.
    """

    low: pa.Array
    """Lower bound of regular values; null if unknown, never NaN."""
    high: pa.Array
    """Upper bound of regular values; null if unknown, never NaN."""
    regular: Mask
    """Whether a regular value may occur."""
    nan: Mask
    """Whether NaN may occur."""
    null: Mask
    """Whether null may occur."""


def gather(files: pa.Table, column: NameParts, type_: pa.DataType | None = None) -> Evidence:
    """Return the possible values of *column* from partition values or, without them, from stats.

    Args:
        files: A file table, see :mod:`zadapter.table.file_stats`.
        column: The column, as spelled in the table's schema.
        type_: The type that the column is compared with; None for no comparison. Stats of another
            type are ignored, since they may belong to another column of the same name.

    Returns:
        The evidence; bounds that cannot be compared have type null.
    """
    if len(column) == 1 and (values := child(files["partition"], column[0])) is not None:
        if type_ not in {None, values.type}:
            return unknown_evidence(len(files))
        return _of_partition(values, mixed=mask(files["partition"].is_null(), default=True))
    name = join(column)
    low, high = child(files["stats"], name, "min"), child(files["stats"], name, "max")
    if low is None or high is None or type_ not in {None, low.type}:
        return unknown_evidence(len(files))
    return _of_stats(files, name, low, high)


def unknown_evidence(length: int) -> Evidence:
    """Return evidence that excludes nothing: any value may occur in any file."""
    everywhere = np.ones(length, dtype=np.bool_)
    return Evidence(pa.nulls(length), pa.nulls(length), everywhere, everywhere, everywhere)


def counts(files: pa.Table, *path: str) -> npt.NDArray[np.int64]:
    """Return a column of counts, -1 where a count is unknown."""
    column = as_array(files[path[0]]) if len(path) == 1 else child(files[path[0]], *path[1:])
    filled = pc.fill_null(pc.cast(column, pa.int64()), -1)
    return np.asarray(filled.to_numpy(), dtype=np.int64)


def mask(flags: pa.Array, *, default: bool) -> Mask:
    """Convert Arrow's *flags* to numpy, with *default* for null."""
    return np.asarray(pc.fill_null(flags, default).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _of_partition(values: pa.Array, mixed: Mask) -> Evidence:
    """Return evidence from partition values: none for files with rows of several partitions."""
    null = mask(pc.is_null(values), default=True)
    nan = _is_nan(values)
    value = _mask_bound(values, ~nan & ~mixed)
    return Evidence(value, value, ~null & ~nan | mixed, nan | mixed, null)


def _of_stats(files: pa.Table, name: str, low: pa.Array, high: pa.Array) -> Evidence:
    low_is_nan, high_is_nan = _is_nan(low), _is_nan(high)
    rows, nulls = counts(files, "rows"), counts(files, "stats", name, "nulls")
    nans = counts(files, "stats", name, "nans")
    if not has_nan(low.type):
        nans = np.zeros_like(nans)
    possible = (rows < 0) | (np.maximum(nulls, 0) + np.maximum(nans, 0) <= rows)
    only_nulls = possible & (nulls >= 0) & (nulls == rows)
    no_regular = possible & (nulls >= 0) & (nans >= 0) & (nulls + nans == rows)
    trusted = possible & _are_ordered(low, high) & _has_valid_bounds(files, name)
    return Evidence(
        low=_mask_bound(low, trusted & ~low_is_nan),
        high=_mask_bound(high, trusted & ~high_is_nan),
        regular=~only_nulls & ~no_regular,
        nan=~only_nulls & ((nans != 0) | low_is_nan | high_is_nan | ~possible),
        null=(nulls != 0) | ~possible,
    )


def _has_valid_bounds(files: pa.Table, name: str) -> Mask:
    """Return which files have valid bounds, according to their stats."""
    bounds = counts(files, "stats", name, "bounds")
    return np.isin(bounds, (Bounds.EXACT, Bounds.WIDENED))


def _are_ordered(low: pa.Array, high: pa.Array) -> Mask:
    """Return which files have a lower bound that is not above the upper one."""
    if not _comparable(low.type):
        return np.ones(len(low), dtype=np.bool_)
    return ~mask(pc.greater(low, high), default=False)


def _mask_bound(values: pa.Array, valid: Mask) -> pa.Array:
    """Return *values* where *valid*, else null; of type null if they cannot be compared."""
    if not _comparable(values.type):
        return pa.nulls(len(values))
    if valid.all():
        return values
    return pc.if_else(pa.array(valid), values, pa.scalar(None, values.type))


def _is_nan(values: pa.Array) -> Mask:
    if not has_nan(values.type):
        return np.zeros(len(values), dtype=np.bool_)
    return mask(pc.is_nan(values), default=False)


def _comparable(type_: pa.DataType) -> bool:
    """Return whether Arrow orders values of *type_*, in the same order as Spark."""
    return kind_of(type_) is not None
