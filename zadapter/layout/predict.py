"""Prediction of the share of rows that range queries read, from boxes alone.

A file is skipped iff its min/max box misses the query's box in some column. Queries are drawn from
the data, as ranges of ranks over one, two or more key columns, so the share compares layouts of the
same table across formats.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.names import NameParts
from zadapter.base.ranks import Ints, Ranked, narrow, rank
from zadapter.layout.filters import Filter, RankedFilters, rank_filters

Floats = npt.NDArray[np.float64]

QUERIES = 400
SEED = 20_210_813
CELLS = 1 << 18
"""Maximum number of pairs of a query and a box that are compared at once; they fit in a cache."""
BOXES = 100_000
"""Number of files whose boxes are compared with filters, evenly spread over those of a table."""
UNBOUNDED = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of files in rank space.

    Attributes:
        low: Lowest rank, shape (files, columns); 0 where unknown.
        high: Highest rank, same shape; ``UNBOUNDED`` where unknown, -1 where all values are null.
        rows: Rows per file, shape (files,).
    """

    low: Ints
    high: Ints
    rows: Ints


@dataclass(frozen=True, eq=False)
class RankedSample:
    """Sampled rows in ranks, and the filters whose reads are predicted.

    Attributes:
        columns: The key columns.
        ranked: The sampled values of each column.
        filters: The filters; empty: ranges that are drawn from the rows.
        weights: How often ranges are on each column, relative to the others; None: equally often.
    """

    columns: tuple[NameParts, ...]
    ranked: tuple[Ranked, ...]
    filters: tuple[Filter, ...] = ()
    weights: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(self.ranked[0].ranks) if self.ranked else 0

    @cached_property
    def ranks(self) -> Ints:
        """Ranks of the rows, shape (rows, columns)."""
        return np.stack([column.ranks for column in self.ranked], axis=1)

    @cached_property
    def _queries(self) -> Ints:
        return queries(self.ranks, weights=self.weights)

    @cached_property
    def _filters(self) -> RankedFilters:
        return rank_filters(self.filters, self.columns, [each.distinct for each in self.ranked])

    def share_read(self, boxes: Boxes) -> float:
        """Return the mean share of rows in files that a filter cannot skip."""
        if not self.filters:
            return share_read(boxes, self._queries)
        shares = shares_by_filter(boxes, self._filters)
        return float(np.average(shares, weights=self._filters.weight))

    def extend(self, stats: Sequence[pa.StructArray | None]) -> "RankedSample":
        """Return the sample in ranks in which boxes of files with these bounds are exact.

        Ranges that are drawn from the rows end at sampled values, so the ranks stay. Filters may
        end between two bounds that no sampled value tells apart.
        """
        if not self.filters or not any(stats):
            return self  # and so are its filters in ranks
        return replace(self, ranked=extend(self.ranked, stats))


def queries(
    ranks: Ints,
    count: int = QUERIES,
    seed: int = SEED,
    weights: Sequence[float] | None = None,
) -> Ints:
    """Draw range queries from the ranks of sampled rows.

    Args:
        ranks: Ranks of sampled rows, shape (rows, columns).
        count: Number of queries.
        seed: Seed of the random draw.
        weights: How often each column is chosen, relative to the others; None: equally often.

    Returns:
        Lowest and highest rank of each range, both inclusive, shape (count, columns, 2); -1 and
        ``UNBOUNDED`` for columns without a range. A third of the queries selects 1 % of one
        column's values, a third 5 % of two columns, and the rest 10 % of one to all columns. No
        range includes nulls.
    """
    random = np.random.default_rng(seed)
    chances = None if weights is None else np.array(weights) / np.sum(weights)
    columns = ranks.shape[1]
    ordered = [np.sort(narrow(column[column > 0])) for column in ranks.T]
    ranges = np.empty((count, columns, 2), np.int64)
    ranges[:, :, 0], ranges[:, :, 1] = -1, UNBOUNDED
    for query in range(count):
        share, width = ((0.01, 1), (0.05, 2), (0.10, int(random.integers(1, columns + 1))))[
            query % 3
        ]
        for column in random.choice(columns, min(width, columns), replace=False, p=chances):
            values = ordered[column]
            start = int(random.integers(0, max(1, len(values) - int(len(values) * share))))
            stop = min(len(values) - 1, start + int(len(values) * share))
            if stop >= 0:
                ranges[query, column] = values[start], values[stop]
    return ranges


def share_read(boxes: Boxes, ranges: Ints) -> float:
    """Return the mean share of rows in files that a query cannot skip."""
    total = boxes.rows.sum()
    if total == 0 or len(ranges) == 0:
        return 0.0
    low, high = np.ascontiguousarray(boxes.low.T), np.ascontiguousarray(boxes.high.T)
    step, read = max(1, CELLS // len(boxes.rows)), 0  # rows, so that all of them are exactly 1
    for start in range(0, len(ranges), step):
        hit = _hits(low, high, ranges[start : start + step])
        # not as a product of matrices, which waits for all threads of a busy machine
        read += np.where(hit, boxes.rows, 0).sum().item()
    return float(read / (total.item() * len(ranges)))


def _hits(low: Ints, high: Ints, ranges: Ints) -> npt.NDArray[np.bool_]:
    """Return which boxes each query hits, shape (queries, boxes); bounds have a row a column."""
    hit = np.ones((len(ranges), low.shape[1]), np.bool_)
    for column in range(len(low)):
        lowest, highest = ranges[:, column].T
        asked = np.flatnonzero((lowest > -1) | (highest < UNBOUNDED))
        # a slice is no copy, which a list of all numbers would be
        some = slice(None) if len(asked) == len(ranges) else asked
        if len(asked):
            hit[some] &= low[column] <= highest[some, None]
            hit[some] &= high[column] >= lowest[some, None]
    return hit


def shares_by_filter(boxes: Boxes, filters: RankedFilters) -> Floats:
    """Return the share of rows in files that each filter cannot skip.

    Args:
        boxes: The files.
        filters: Filters in the same ranks. One without ranges reads everything.
    """
    read = np.zeros(len(filters.weight))
    for some in filters.parts(len(boxes.rows)):
        read += boxes.rows[some] @ filters.hits(boxes.low[some], boxes.high[some])
    read[np.bincount(filters.filter, minlength=len(read)) == 0] = boxes.rows.sum()
    return np.asarray(read / max(1, boxes.rows.sum()), np.float64)


def boxes_of_rows(ranks: Ints, file_of: Ints, files: int) -> Boxes:
    """Return the box of each file, estimated from sampled rows.

    The extremes of m sampled rows lie inside the true ones by 1/(m + 1) of the true span on
    average, which is 1/(m - 1) of the sampled span. Each side is moved out by that much.
    """
    columns = ranks.shape[1]
    low = np.full((columns, files), UNBOUNDED)
    high = np.full((columns, files), -1)
    for column, of_rows in enumerate(ranks.T):  # a ninth of the time of both dimensions at once
        held = of_rows != 0  # null widens no box
        np.minimum.at(low[column], file_of, np.where(held, of_rows, UNBOUNDED))
        np.maximum.at(high[column], file_of, np.where(held, of_rows, -1))
    low, high, rows = low.T, high.T, np.bincount(file_of, minlength=files)
    filled = high >= 0
    span = np.where(filled, high - low, 0)
    out = np.rint(span / np.maximum(rows - 1, 1)[:, None]).astype(np.int64)
    return Boxes(np.where(filled, low - out, 0), np.where(filled, high + out, -1), rows)


def extend(ranked: Sequence[Ranked], stats: Sequence[pa.StructArray | None]) -> tuple[Ranked, ...]:
    """Return sampled values in ranks among the bounds of files, too."""
    return tuple(
        column
        if bounds is None
        else column.extend(pa.concat_arrays(bounds.flatten()[:2]).drop_null())
        for column, bounds in zip(ranked, stats, strict=True)
    )


def boxes_of_stats(
    stats: Sequence[pa.StructArray | None], rows: Ints, known: Sequence[Ranked] | None = None
) -> Boxes:
    """Return the boxes of files from the bounds in their stats.

    Args:
        stats: Stats of each key column in the file table, or None.
        rows: Rows per file.
        known: Values of each column whose ranks the boxes are in: a box reaches from the smallest
            known value that is not below its low bound to the largest one that is not above its
            high bound, so it is exact for ranges that end at known values. None: the ranks of the
            bounds themselves.
    """
    low = np.zeros((len(rows), len(stats)), np.int64)
    high = np.full((len(rows), len(stats)), UNBOUNDED)
    for at, bounds in enumerate(stats):
        if bounds is None:
            continue
        lows, highs, nulls = bounds.flatten()[:3]
        if known is None:
            ranks = rank(pa.concat_arrays([lows, highs])).ranks
            low[:, at], top = ranks[: len(rows)], ranks[len(rows) :]
        else:
            low[:, at], top = known[at].ceiling(lows), known[at].floor(highs)
        empty = nulls.fill_null(-1).to_numpy(zero_copy_only=False) == rows
        has_high = highs.is_valid().to_numpy(zero_copy_only=False)
        high[:, at] = np.where(has_high, top, np.where(empty, -1, UNBOUNDED))
    return Boxes(low, high, rows)


def concat_boxes(parts: Sequence[Boxes]) -> Boxes:
    """Concatenate the boxes of several sets of files."""
    return Boxes(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )
