"""The part of an exchange that other writers have not touched, by the boxes of its files.

A row of a new file came from an old file whose box it lies in. So if no box of some new files
overlaps a box of the other old files, these new files hold rows of the remaining old files alone,
and the two can be exchanged by themselves.
"""

from collections.abc import Set as AbstractSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan
from zadapter.base.names import split
from zadapter.base.ranks import rank
from zadapter.table import file_stats
from zadapter.table.snapshot import Exchange

_MOST_PAIRS = 50_000_000
"""Pairs of an old and a new file that are compared; an exchange with more is not divided."""

Flags = npt.NDArray[np.bool_]


def find_untouched(exchange: Exchange, touched: AbstractSet[str]) -> Exchange | None:
    """Return the part of an exchange without the rows of some files, or None if there is none.

    Args:
        exchange: Removed and added files, with stats of the columns that divide them.
        touched: Paths of removed files that have changed.
    """
    removed, added = exchange.removed, exchange.added
    if removed.num_rows * added.num_rows > _MOST_PAIRS:
        return None
    overlaps = _find_overlaps(removed, added)
    old = np.isin(np.asarray(removed["path"].to_pylist(), object), list(touched))
    while True:
        new = overlaps[old].any(axis=0)
        reached = old | overlaps[:, new].any(axis=1)
        if (reached == old).all():
            break
        old = reached
    part = Exchange(removed=removed.filter(pa.array(~old)), added=added.filter(pa.array(~new)))
    rows = file_stats.live_rows(part.removed)
    if not rows or rows != file_stats.live_rows(part.added):
        return None
    return part


def _find_overlaps(removed: pa.Table, added: pa.Table) -> Flags:
    """Return whether a row may be in the old file of each row and the new file of each column."""
    overlaps = np.ones((removed.num_rows, added.num_rows), bool)
    for child in removed.schema.field("stats").type:
        old, new = (file_stats.column(files, split(child.name)) for files in (removed, added))
        if old is None or new is None or old.type != new.type:
            continue
        lows, highs, usable = _bounds(pa.concat_arrays([old, new]))
        count = removed.num_rows
        apart = (highs[:count, None] < lows[None, count:]) | (
            highs[None, count:] < lows[:count, None]
        )
        known = (lows > 0) & (highs > 0)
        sure = apart & known[:count, None] & known[None, count:]
        overlaps &= ~(sure & (usable[:count, None] | usable[None, count:]))
    return overlaps


def _bounds(stats: pa.StructArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Flags]:
    """Return ranks of the bounds, 0 for unknown ones, and whether all values lie within them."""
    low, high, nulls, nans, _ = stats.flatten()
    ranks = np.asarray(rank(pa.concat_arrays([low, high])).ranks, np.int64)
    outside = [nulls, nans] if has_nan(low.type) else [nulls]
    none = [pc.equal(count, 0).fill_null(False) for count in outside]  # noqa: FBT003
    usable = np.logical_and.reduce([each.to_numpy(zero_copy_only=False) for each in none])
    return ranks[: len(stats)], ranks[len(stats) :], usable
