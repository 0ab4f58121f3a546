"""Filters that a layout is fitted to: boxes over columns, with weights.

A filter is a disjunction of boxes. A box is a conjunction over columns, and the ranges of one
column in a box are alternatives. So ``a IN (1, 2) AND b < 5`` is one box of three ranges.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.key_types import values
from zadapter.base.names import NameParts, join, split
from zadapter.base.ranks import Ints, Ranked

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

BEYOND = np.iinfo(np.int64).max
"""Rank that only hulls without a known upper end reach."""
PAIRS = 1 << 23
"""Maximum number of pairs of a hull and a range that are compared at once."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of a column's values.

    Attributes:
        column: The column.
        low: Lowest value as :func:`zadapter.base.key_types.texts` writes it; None for no limit.
        high: Highest value.
        closed: Which ends belong to the range: ``both``, ``left``, ``right`` or ``neither``.
    """

    column: NameParts
    low: str | None = None
    high: str | None = None
    closed: str = "both"


Box = tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter, and how much it counts."""

    boxes: tuple[Box, ...]
    weight: float

    @property
    def columns(self) -> frozenset[NameParts]:
        """The columns with ranges."""
        return frozenset(part.column for box in self.boxes for part in box)

    def only(self, columns: Collection[NameParts]) -> "Filter | None":
        """Return the filter without other columns; None: a box of it has none of these."""
        found = tuple(tuple(part for part in box if part.column in columns) for box in self.boxes)
        return Filter(found, self.weight) if found and all(found) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the filter as plain JSON values."""
        return {
            "weight": self.weight,
            "boxes": [
                [[join(each.column), each.low, each.high, each.closed] for each in box]
                for box in self.boxes
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Filter":
        """Create a filter from the result of :meth:`to_dict`."""
        boxes = tuple(
            tuple(Range(split(column), low, high, closed) for column, low, high, closed in box)
            for box in data["boxes"]
        )
        return cls(boxes, data["weight"])


@dataclass(frozen=True, slots=True)
class Keys:
    """Key columns of a layout, and the filters that it is fitted to.

    Attributes:
        weights: Weight of each column, by name.
        filters: The filters; empty: the columns are cut in turn. With filters, columns with a
            weight above 1 are cut nearly as often.
    """

    weights: Mapping[str, float]
    filters: tuple[Filter, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.weights)


@dataclass(frozen=True, eq=False)
class RankedFilters:
    """Filters in ranks, as arrays.

    Attributes:
        column: Column of each range. Ranges are in the order of filters, boxes and columns.
        low: Lowest rank of each range. It is above the highest one if no known value is between,
            and :data:`BEYOND` if all known values are on one side of the range.
        high: Highest rank of each range.
        box: Box of each range, numbered across all filters.
        filter: Filter of each range.
        weight: Weight of each filter.
    """

    column: Ints
    low: Ints
    high: Ints
    box: Ints
    filter: Ints
    weight: Floats

    def hits(self, low: Ints, high: Ints) -> Mask:
        """Return which filters may match rows in some hulls.

        Args:
            low: Lowest rank in each column, shape (hulls, columns).
            high: Highest rank, same shape.

        Returns:
            Shape (hulls, filters).
        """
        found = np.zeros((len(self.weight), len(low)), np.bool_)
        if len(self.column):
            for some in self.parts(len(low)):
                self._compare(low[some], high[some], found[:, some])
        return np.asarray(found.T)

    def parts(self, hulls: int) -> Iterator[slice]:
        """Yield parts of a number of hulls that are compared at once (:data:`PAIRS`)."""
        step = max(1, PAIRS // max(1, len(self.column)))
        for start in range(0, hulls, step):
            yield slice(start, start + step)

    def _compare(self, low: Ints, high: Ints, found: Mask) -> None:
        """Write which filters may match rows in some hulls, shape (filters, hulls)."""
        # hulls are the last axis, which NumPy reduces at once
        here = low.T[self.column] <= self.high[:, None]
        here &= high.T[self.column] >= self.low[:, None]
        terms, boxes, filters, of_filter = self._starts
        here = _reduce(np.logical_or, here, terms)
        here = _reduce(np.logical_and, here, boxes)
        found[of_filter] = _reduce(np.logical_or, here, filters)

    @cached_property
    def _starts(self) -> tuple[Ints, Ints, Ints, Ints]:
        """First range of each term, first term of each box, first box of each filter, filters."""
        terms = _starts(self.box, self.column)
        boxes = _starts(self.box[terms])
        of_box = self.filter[terms[boxes]]
        filters = _starts(of_box)
        return terms, boxes, filters, of_box[filters]

    def only(self, filters: Mask) -> "RankedFilters":
        """Return the ranges of some filters; the numbers of filters stay."""
        kept = filters[self.filter]
        return RankedFilters(
            column=self.column[kept],
            low=self.low[kept],
            high=self.high[kept],
            box=self.box[kept],
            filter=self.filter[kept],
            weight=self.weight,
        )


def rank_filters(
    filters: Sequence[Filter], columns: Sequence[NameParts], distinct: Sequence[pa.Array]
) -> RankedFilters:
    """Express filters in the ranks of known values.

    Ranges of other columns are left out. A filter with a box that has no range is never spared a
    row, and has none.

    Args:
        filters: The filters.
        columns: The columns with known values.
        distinct: Ascending distinct values of each column; the r-th has rank r.
    """
    at_column = {column: at for at, column in enumerate(columns)}
    found: list[tuple[int, int, int, Range]] = []
    boxes = 0
    for number, each in enumerate(filters):
        known = [[part for part in box if part.column in at_column] for box in each.boxes]
        if all(known):
            for box in known:
                found += [(number, boxes, at_column[part.column], part) for part in box]
                boxes += 1
    found.sort(key=lambda item: item[:3])
    low, high = np.zeros((2, len(found)), np.int64)
    column = np.array([item[2] for item in found], np.int64)
    for at, known_values in enumerate(distinct):
        mine = np.flatnonzero(column == at)
        low[mine], high[mine] = _limits([found[i][3] for i in mine], known_values)
    return RankedFilters(
        column=column,
        low=low,
        high=high,
        box=np.array([item[1] for item in found], np.int64),
        filter=np.array([item[0] for item in found], np.int64),
        weight=np.array([each.weight for each in filters], np.float64),
    )


def _limits(ranges: Sequence[Range], distinct: pa.Array) -> tuple[Ints, Ints]:
    """Return the lowest and the highest rank of each range of one column."""
    written = [each.low for each in ranges] + [each.high for each in ranges]
    limits, known = values(written, distinct.type), Ranked(np.zeros(0, np.int64), distinct)
    above, below = known.ceiling(limits).reshape(2, -1), known.floor(limits).reshape(2, -1)
    open_left = np.array([each.closed in {"right", "neither"} for each in ranges], np.bool_)
    open_right = np.array([each.closed in {"left", "neither"} for each in ranges], np.bool_)
    low = np.where(open_left, below[0] + 1, above[0])
    high = np.where(open_right, above[1] - 1, below[1])
    low, high = np.where(above[0] > 0, low, 1), np.where(above[1] > 0, high, len(distinct))
    # hulls that are estimated may reach beyond all known values
    beyond = (low > len(distinct)) | (high < 1)
    return np.where(beyond, BEYOND, low), np.where(beyond, len(distinct), high)


def _reduce(combine: np.ufunc, rows: Mask, starts: Ints) -> Mask:
    """Combine runs of rows; most terms have one range, and most filters one box."""
    if len(starts) == len(rows):
        return rows
    return np.asarray(combine.reduceat(rows, starts, axis=0), np.bool_)


def _starts(*keys: Ints) -> Ints:
    """Return where runs of equal keys start."""
    changes = np.logical_or.reduce([np.diff(key) != 0 for key in keys])
    return np.flatnonzero(np.concatenate(([True], changes)))
