"""File sizes and skipping from 1 TB to 1 PB: ``python -m integration.bench.millions.petabytes``.

Samples have the sizes that the planner draws, and layouts are fitted by its code. Keys are
independent of one another, so the rows of a box are evenly spread within ranges of quantiles: rows
of any box can be drawn without the rest of the table, and a few boxes and jobs stand for all.

*First clustering*: jobs of raw files in no order, each cut along the trunk. *Boxes*: each box after
its runs were merged, by as many jobs as its bytes need. *Well sampled*: one tree of the whole table
with as many files, each fitted to ``WELL`` times the rows. Filters ask for 1 % of one column, 5 %
of two and 10 % of three, a third each.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Layout, Request
from zadapter.layout.trunk import Trunk, fit_below
from zadapter.planning.file_size import target_file_size
from zadapter.planning.trunks import create_trunk
from zadapter.spark.sample import sample_size

GROUP, LARGE = 256 << 30, 1 << 40
"""Bytes of a job by default, and of a larger one."""
SIZES = {
    "1 TB": (1 << 40, GROUP),
    "10 TB": (10 << 40, GROUP),
    "100 TB": (100 << 40, GROUP),
    "1 PB": (1 << 50, GROUP),
    "1 PB, jobs of 1 TB": (1 << 50, LARGE),
}
"""Bytes of each table, and of its jobs."""
WELL = 5
"""Sampled rows of a fit that is well sampled, as a multiple of those of the planner."""
JUDGED = 500
"""Rows a file by which a layout is judged."""
ASKED = ((0.01, 1), (0.05, 2), (0.10, 3))
"""Widths of filters, as shares of a column, and how many columns they ask for."""
QUERIES = 4_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """A column of whole numbers, or of numbers between 0 and 1.

    Attributes:
        shares: Share of the rows that each number has, in ascending order; None: any value between
            0 and 1 is as likely.
    """

    shares: Floats | None = None

    def values(self, at: Floats) -> Floats:
        """Return the values at these quantiles."""
        if self.shares is None:
            return at
        found = np.searchsorted(self._below, at, side="right") - 1.0
        return np.asarray(np.minimum(found, len(self.shares) - 1))

    def below(self, value: float) -> float:
        """Return the share of the rows with smaller values."""
        return value if self.shares is None else float(self._below[int(value)])

    @cached_property
    def _below(self) -> Floats:
        assert self.shares is not None
        return np.append(0, np.cumsum(self.shares)[:-1])


def _skewed(values: int, exponent: float) -> Column:
    shares = 1 / np.arange(1, values + 1) ** exponent
    return Column(shares / shares.sum())


TABLES = {
    "even": (Column(), Column(), Column()),
    "skewed": (Column(), _skewed(100_000, 1.0), Column(np.full(2_500, 1 / 2_500))),
}
"""Key columns of each table: without repeated values; and a number, Zipf's and a day's."""


@dataclass(frozen=True)
class Box:
    """Ranges of quantiles, one for each column, shape (columns, 2)."""

    edges: Floats

    @property
    def share(self) -> float:
        """Share of the table's rows."""
        return float(np.prod(self.edges[:, 1] - self.edges[:, 0]))

    def rows(self, table: Sequence[Column], count: int, seed: int) -> list[pa.Array]:
        """Draw rows of the box."""
        rng = np.random.default_rng(seed)
        drawn = rng.uniform(self.edges[:, :1], self.edges[:, 1:], (len(table), count))
        return [pa.array(col.values(at)) for col, at in zip(table, drawn, strict=True)]


WHOLE = Box(np.array([[0.0, 1.0]] * 3))


@dataclass(frozen=True)
class Seen:
    """What is seen of some files: rows of each, and the share of all rows that filters read."""

    rows: Floats
    share: float

    @property
    def largest(self) -> float:
        """99th percentile of the rows of a file, as a multiple of the mean."""
        return float(np.percentile(self.rows, 99) / self.rows.mean())


def box_of(trunk: Trunk, box: int, table: Sequence[Column]) -> Box:
    """Return the box of a trunk."""
    edges = WHOLE.edges.copy()
    for depth, level in enumerate(trunk.levels):
        here = box >> (len(trunk.levels) - depth)
        right = box >> (len(trunk.levels) - depth - 1) & 1
        cut = level.cuts[here].as_py()
        if cut is not None:
            edges[level.column, 1 - right] = table[level.column].below(cut)
    return Box(edges)


def judged(layout: Layout, table: Sequence[Column], box: Box, queries: Floats) -> Seen:
    """Judge the layout of a box by rows that it was not fitted to."""
    rows = box.rows(table, JUDGED * layout.files, seed=1)
    leaf = assign.leaves(layout, rows, np.zeros(len(rows[0]), np.int64))
    file = assign.files(layout, leaf, np.arange(len(leaf)))
    order = np.argsort(file, kind="stable")
    count = np.bincount(file, minlength=layout.files)
    count = count[count > 0]
    starts = np.cumsum(count) - count
    hit = np.ones((len(count), len(queries)), np.bool_)
    for at, column in enumerate(rows):
        ordered = column.to_numpy()[order]
        low, high = np.minimum.reduceat(ordered, starts), np.maximum.reduceat(ordered, starts)
        least, most = queries[:, at].T
        hit &= (low[:, None] <= most) & (high[:, None] >= least)
    read = (count @ hit).mean() / count.sum()
    return Seen(count / JUDGED, float(read) * box.share)


def asked(table: Sequence[Column], seed: int = 2) -> Floats:
    """Draw filters: lowest and highest value of each column, shape (filters, columns, 2)."""
    rng = np.random.default_rng(seed)
    edges = np.tile(WHOLE.edges, (QUERIES, 1, 1))
    for number in range(QUERIES):
        width, columns = ASKED[number % len(ASKED)]
        for column in rng.permutation(len(table))[:columns]:
            low = rng.uniform(0, 1 - width)
            edges[number, column] = low, low + width
    found = [column.values(edges[:, at]) for at, column in enumerate(table)]
    return np.stack(found, axis=1)


@dataclass(frozen=True)
class Trial:
    """A table of some size.

    Attributes:
        table: The key columns.
        size: Bytes.
        group: Bytes of a job.
        boxes: Number of boxes by which all are judged.
    """

    table: Sequence[Column]
    size: int
    group: int
    boxes: int

    @cached_property
    def queries(self) -> Floats:
        """The filters."""
        return asked(self.table)

    @property
    def request(self) -> Request:
        """The requested layout."""
        return Request(
            columns=tuple((name,) for name in "abc"),
            weights=(1.0, 1.0, 1.0),
            target_file_size=target_file_size(self.size),
        )

    def files(self, size: float) -> int:
        """Return the number of files of so many bytes."""
        return max(1, round(size / self.request.target_file_size))

    def trunk(self, boxes: int, times: int = 1) -> Trunk:
        """Fit a trunk to the planner's sample, or to a multiple of it."""
        rows = WHOLE.rows(self.table, sample_size(boxes) * times, seed=3)
        return Trunk(boxes).fit(self.request, rows)

    def first(self, trunk: Trunk, times: int = 1) -> Seen:
        """Return what is seen of a job of raw files, cut along the trunk."""
        files = self.files(self.group)
        rows = WHOLE.rows(self.table, sample_size(files) * times, seed=4)
        layout = fit_below(trunk, self.request, rows, (), files)
        return judged(layout, self.table, WHOLE, self.queries)

    def merged(self, trunk: Trunk, times: int = 1) -> Seen:
        """Return what is seen of some boxes whose runs were merged."""
        found, shares = list[Seen](), 0.0
        reached = len(trunk.levels)
        for number in np.linspace(0, (1 << reached) - 1, self.boxes).astype(np.int64).tolist():
            box = box_of(trunk, number, self.table)
            if box.share == 0:
                continue
            jobs = max(1, round(box.share * self.size / self.group))
            files = self.files(box.share * self.size / jobs)
            rows = box.rows(self.table, sample_size(files) * times, seed=number + 5)
            ahead = np.array(trunk.cuts_of(number, len(self.table)))
            here = np.zeros(len(rows[0]), np.int64)
            layout = fit(self.request, rows, [()], here, [files], (ahead - ahead.min()).tolist())
            found.append(judged(layout, self.table, box, self.queries))
            shares += box.share
        return Seen(
            np.concatenate([each.rows for each in found]),
            sum(each.share for each in found) / shares,
        )


def trials(boxes: int, sizes: Sequence[str]) -> Iterator[str]:
    """Yield the rows of a table in Markdown."""
    yield (
        "| | | files of | boxes | first clustering: p99 / mean | x well sampled | "
        "boxes: p99 / mean | filters read | x well sampled |"
    )
    yield "|---" * 9 + "|"
    for name, table in TABLES.items():
        for size in sizes:
            trial = Trial(table, *SIZES[size], boxes)
            trunk = trial.trunk(create_trunk(trial.size, trial.group).boxes)
            best = trial.trunk(1 << int(np.ceil(np.log2(2 * trial.size / trial.group))), WELL)
            first, well = trial.first(trunk), trial.first(trunk, WELL)
            merged, whole = trial.merged(trunk), trial.merged(best, WELL)
            yield (
                f"| {name} | {size} | {trial.request.target_file_size >> 20} MB | {trunk.boxes} "
                f"| {first.largest:.2f} | {first.share / well.share:.2f} | {merged.largest:.2f} "
                f"| {merged.share:.2%} | {merged.share / whole.share:.2f} |"
            )


def main() -> None:
    """Print what is seen of tables of all sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, default=8, help="to judge by, of a trunk's")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    given = parser.parse_args()
    for line in trials(given.boxes, given.sizes):
        print(line, flush=True)


if __name__ == "__main__":
    main()
