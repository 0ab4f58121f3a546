"""Prediction of the share of rows that range queries read, from boxes alone.

A file is skipped iff its min/max box misses the query's box in some column. Queries are drawn from
the data, as ranges of ranks over one, two or more key columns, so the share compares layouts of the
same table across formats.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout.filters import RankedFilters

Floats = npt.NDArray[np.float64]

QUERIES = 400
SEED = 20_210_813
PAIRS = 1 << 23
"""Maximum number of pairs of a box and a range that are compared at once."""
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
    ordered = [np.sort(column[column > 0]) for column in ranks.T]
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
    # columns one after the other, and only those with a range: a third of the time
    low, high = np.ascontiguousarray(boxes.low.T), np.ascontiguousarray(boxes.high.T)
    asked = (ranges[:, :, 0] > -1) | (ranges[:, :, 1] < UNBOUNDED)
    read = 0.0
    for query, columns in zip(ranges.tolist(), asked, strict=True):
        hit = np.ones(len(boxes.rows), np.bool_)
        for column in np.flatnonzero(columns).tolist():
            lowest, highest = query[column]
            hit &= low[column] <= highest
            hit &= high[column] >= lowest
        read += boxes.rows[hit].sum() / total
    return float(read / len(ranges))


def shares_by_filter(boxes: Boxes, filters: RankedFilters) -> Floats:
    """Return the share of rows in files that each filter cannot skip.

    Args:
        boxes: The files.
        filters: Filters in the same ranks. One without ranges reads everything.
    """
    read = np.zeros(len(filters.weight))
    step = max(1, PAIRS // max(1, len(filters.column)))
    for start in range(0, len(boxes.rows), step):
        some = slice(start, start + step)
        read += boxes.rows[some] @ filters.hits(boxes.low[some], boxes.high[some])
    read[np.bincount(filters.filter, minlength=len(read)) == 0] = boxes.rows.sum()
    return np.asarray(read / max(1, boxes.rows.sum()), np.float64)


def boxes_of_rows(ranks: Ints, file_of: Ints, files: int) -> Boxes:
    """Return the box of each file, estimated from sampled rows.

    The extremes of m sampled rows lie inside the true ones by 1/(m + 1) of the true span on
    average, which is 1/(m - 1) of the sampled span. Each side is moved out by that much.
    """
    columns = ranks.shape[1]
    low = np.full((files, columns), UNBOUNDED)
    high = np.full((files, columns), -1)
    held = np.where(ranks == 0, UNBOUNDED, ranks)  # null widens no box
    np.minimum.at(low, file_of, held)
    np.maximum.at(high, file_of, np.where(ranks == 0, -1, ranks))
    rows = np.bincount(file_of, minlength=files)
    filled = high >= 0
    span = np.where(filled, high - low, 0)
    out = np.rint(span / np.maximum(rows - 1, 1)[:, None]).astype(np.int64)
    return Boxes(np.where(filled, low - out, 0), np.where(filled, high + out, -1), rows)


def boxes_of_stats(
    sample: Sequence[pa.Array], stats: Sequence[pa.StructArray | None], rows: Ints
) -> tuple[Ints, Boxes]:
    """Rank a sample together with the bounds of files.

    Args:
        sample: Sampled values, one array per key column.
        stats: Stats of each key column in the file table, or None.
        rows: Rows per file.

    Returns:
        The sample's ranks, shape (rows, columns), and the files' boxes in the same ranks.
    """
    ranked, boxes = rank_with_stats(sample, stats, rows)
    return np.stack([each.ranks for each in ranked], axis=1), boxes


def rank_with_stats(
    sample: Sequence[pa.Array], stats: Sequence[pa.StructArray | None], rows: Ints
) -> tuple[list[Ranked], Boxes]:
    """Rank a sample together with the bounds of files, as :func:`boxes_of_stats` does.

    Returns:
        For each column the ranks of the sample and all distinct values; and the files' boxes.
    """
    ranked, low, high = list[Ranked](), list[Ints](), list[Ints]()
    for values, bounds in zip(sample, stats, strict=True):
        if bounds is None:
            ranked.append(rank(values))
            low.append(np.zeros(len(rows), np.int64))
            high.append(np.full(len(rows), UNBOUNDED))
            continue
        lows, highs, nulls = bounds.flatten()[:3]
        both = pa.concat_arrays([values, lows.cast(values.type), highs.cast(values.type)])
        of_both = rank(both)
        joint = of_both.ranks
        ranked.append(Ranked(joint[: len(values)], of_both.distinct))
        low.append(joint[len(values) : len(values) + len(rows)])
        top = joint[len(values) + len(rows) :]
        empty = nulls.fill_null(-1).to_numpy(zero_copy_only=False) == rows
        high.append(np.where(top > 0, top, np.where(empty, -1, UNBOUNDED)))
    return ranked, Boxes(np.stack(low, axis=1), np.stack(high, axis=1), rows)


def concat_boxes(parts: Sequence[Boxes]) -> Boxes:
    """Concatenate the boxes of several sets of files."""
    return Boxes(
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.rows for part in parts]),
    )
