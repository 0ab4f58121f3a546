"""Range filters on a whole table, of which only the rows of some files are sampled.

Filters that are drawn from the sampled rows alone ask for these rows more often than filters on the
table do: of files that came in last, each would ask for the last days. So rows are drawn inside the
boxes of the other files, too, in proportion to the rows of both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked
from zadapter.layout.box_rows import sources
from zadapter.layout.predict import (
    SEED,
    UNBOUNDED,
    Boxes,
    Floats,
    RankedSample,
    boxes_of_stats,
    extend,
    queries,
    share_read,
)
from zadapter.table import file_stats
from zadapter.table.column_bounds import Evidence, gather
from zadapter.table.file_stats import row_counts
from zadapter.table.overlap.extents import numbers

STEPS = 1 << 20
"""Positions from one known value of a column to the next."""
FILES = 1 << 14
"""Number of files whose boxes are placed, evenly spread over those of a table."""
DRAWN = 1 << 16
"""Maximum number of rows that are drawn inside boxes."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Sampled rows in positions along each column, and range filters on their table.

    Attributes:
        ranks: Positions of the sampled rows, shape (rows, columns), 0 for null.
        ranges: Lowest and highest position of each filter in each column.
    """

    ranks: Ints
    ranges: Ints

    def share_read(self, boxes: Boxes) -> float:
        """Return the mean share of rows in files that a filter cannot skip."""
        return share_read(boxes, self.ranges)


@dataclass(frozen=True, eq=False)
class TableSample:
    """A table of which the rows of some files are sampled.

    Attributes:
        sampled: The sampled rows.
        rows: Number of rows of the sampled files.
        others: The other files.
    """

    sampled: RankedSample
    rows: int
    others: pa.Table

    def __len__(self) -> int:
        return len(self.sampled)

    def place(self, files: pa.Table) -> tuple[Placed, Boxes]:
        """Return the sampled rows, and the boxes of *files* in the same positions."""
        columns = self.sampled.columns
        stats = [file_stats.column(files, parts) for parts in columns]
        sides = [gather(self._some, parts) for parts in columns]
        known = extend(extend(self.sampled.ranked, stats), [_struct(each) for each in sides])
        boxes = boxes_of_stats(stats, row_counts(files), known)
        has_end = (boxes.high > 0) & (boxes.high < UNBOUNDED)
        high = np.where(has_end, boxes.high * STEPS, boxes.high)
        ranks = np.stack([column.ranks for column in known], axis=1) * STEPS
        inside = self._draw(known, sides)
        return Placed(ranks, self._ask(ranks, inside)), Boxes(boxes.low * STEPS, high, boxes.rows)

    @cached_property
    def _some(self) -> pa.Table:
        return file_stats.spread(self.others, FILES)

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """How many sampled rows, and how many drawn ones, filters are drawn from."""
        drawn = len(self) * float(row_counts(self.others).sum()) / max(1, self.rows)
        part = min(1.0, DRAWN / max(1.0, drawn))
        return max(1, round(len(self) * part)), round(drawn * part)

    def _draw(self, known: Sequence[Ranked], sides: Sequence[Evidence]) -> Ints:
        """Return positions of rows drawn inside the other files, 0 where bounds are unknown."""
        file_of = sources(row_counts(self._some), self._counts[1])
        random = np.random.default_rng(SEED).random((len(file_of), len(sides)))
        drawn = [
            _draw_column(column, each, file_of, random[:, at])
            for at, (column, each) in enumerate(zip(known, sides, strict=True))
        ]
        return np.stack(drawn, axis=1)

    def _ask(self, ranks: Ints, inside: Ints) -> Ints:
        """Return filters on rows of both kinds, each as often as the table has them."""
        at = file_stats.evenly(len(ranks), self._counts[0])
        return queries(np.concatenate([ranks[at], inside]), weights=self.sampled.weights)


def _struct(evidence: Evidence) -> pa.StructArray:
    return pa.StructArray.from_arrays([evidence.low, evidence.high], ["min", "max"])


def _draw_column(column: Ranked, evidence: Evidence, file_of: Ints, random: Floats) -> Ints:
    """Return the positions of rows that lie evenly between the bounds of their files.

    Args:
        column: Known values, among which the bounds are.
        evidence: The bounds of the files.
        file_of: File of each row.
        random: Place of each row between the bounds, from 0 to 1.
    """
    low, high = (column.floor(side)[file_of] for side in (evidence.low, evidence.high))
    at = np.flatnonzero((low > 0) & (high > 0))
    low, high, number = low[at], high[at], numbers(column.distinct)
    value = number[low - 1] + (number[high - 1] - number[low - 1]) * random[at]
    below = np.clip(np.searchsorted(number, value, side="right"), low, high)
    width = np.diff(number, append=np.inf)[below - 1]
    part = np.clip((value - number[below - 1]) / np.where(width > 0, width, 1), 0, 1)
    places = np.zeros(len(file_of), np.int64)
    places[at] = below * STEPS + np.where(below < high, part * (STEPS - 1), 0).astype(np.int64)
    return places
