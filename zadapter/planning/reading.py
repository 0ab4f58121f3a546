"""What filters read from the files of a partition, now and after a merge."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Curve, Request
from zadapter.planning.box_rows import (
    A_CELL,
    Cells,
    drawn,
    levels_ahead,
    positions,
    reads,
    written,
)
from zadapter.planning.predict import Floats, queries

OPENING = 1 / 32
"""Cost of opening a file, as a share of the cost of reading a whole file of the target size."""
FEW_FILES, SMALLEST_SHARE = 12, 1 / 8
"""Number of files that a small run is cut into, and their least size as a share of the target."""
FEW_ROWS = 100
"""Minimum number of rows of the files of a run that is cut finer than to the target size."""
FINER = 3
"""How many times smaller than usual the row groups of a run are at most."""
DRAWN = 512, 16_384
"""Minimum and maximum number of rows drawn for one partition."""
UNIFORM = 4_096
"""Number of rows drawn to learn what filters read of evenly spread rows."""

LINEAR = 8.0
"""How many times more often filters use a column of a linear layout than the next one."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Facts of the files of one partition.

    Attributes:
        sizes: Bytes of each file.
        rows: Rows of each file.
        run_of: Run of each file, counted from 0; -1: raw.
        whole: Bytes of the files beside which runs are small: those of the partition, or of one
            box of its trunk.
    """

    sizes: Ints
    rows: Ints
    run_of: Ints
    whole: int

    def opening(self, request: Request) -> float:
        """Return the cost of opening a file, in rows."""
        rows_a_byte = float(self.rows.sum()) / max(1.0, float(self.sizes.sum()))
        return OPENING * request.target_file_size * rows_a_byte

    def row_groups(self, request: Request) -> Floats:
        """Return the number of row groups of each file that filters can tell apart."""
        runs = self.run_of + 1
        size = np.bincount(runs, self.sizes)
        rows = np.bincount(runs, self.rows)
        total = np.array(
            [
                math.prod(grain(request, int(s), int(r), self.whole))
                for s, r in zip(size, rows, strict=True)
            ]
        )
        share = self.sizes / np.maximum(size, 1)[runs]
        return np.where(self.run_of < 0, 1.0, np.maximum(1.0, total[runs] * share))


def grain(request: Request, size: int, rows: int, whole: int) -> tuple[int, int]:
    """Return the number of files to write, and the number of row groups of each.

    Filters read a larger share of a small run. So it is cut into smaller files, and a run of less
    than half of its partition has smaller row groups.

    Args:
        request: The requested layout.
        size: Bytes of the replaced files.
        rows: Rows of these files.
        whole: Bytes of the partition.
    """
    exact = size / request.target_file_size
    thin = min(FEW_FILES, int(exact / SMALLEST_SHARE), rows // FEW_ROWS) if size < whole else 0
    files = max(1, round(exact), thin)
    finer = min(FINER, max(1.0, whole / max(1, 2 * size)))
    full = 1.0 if size >= whole else exact / files
    return files, max(1, round(finer * request.row_groups * min(full, 1.0)))


class Prediction(Protocol):
    """Rows that filters read on average, with a cost for every file opened."""

    now: Floats
    """The cost of each file of the partition."""

    def ahead(self, taken: Mask, /) -> tuple[int, ...]:
        """Return by how many levels the rows of the *taken* files are narrower in each column."""

    def after(self, taken: Mask, cut_into: int, row_groups: int) -> float:
        """Return the cost of the *taken* files if they are rewritten together.

        Args:
            taken: The files to rewrite.
            cut_into: Number of files to write.
            row_groups: Row groups of each.
        """


class ByBoxes:
    """A prediction from the boxes of the files."""

    def __init__(
        self, request: Request, members: Members, stats: Sequence[pa.StructArray | None]
    ) -> None:
        """Draw rows inside the boxes.

        Args:
            request: The requested layout.
            members: The files of the partition.
            stats: Stats of each key column in their file table, or None.
        """
        self._request, self._members = request, members
        self._opening = members.opening(request)
        self._low, self._high = low, high = positions(stats, members.rows)
        self._rows_at = self._drawn(np.ones(len(low), np.bool_))
        self._ranges = queries(self._rows_at, weights=_weights(request))
        files = np.ones(len(members.rows))
        groups = members.row_groups(request)
        cells = Cells(low, high, members.rows.astype(np.float64), files, groups)
        self.now = reads(request, cells, self._rows_at, self._ranges, self._opening)

    def _drawn(self, taken: Mask) -> Ints:
        """Draw rows inside the *taken* files: some for each file to write."""
        low, high, members = self._low[taken], self._high[taken], self._members
        files = members.sizes[taken].sum() / self._request.target_file_size
        count = int(np.clip(A_CELL * (FEW_FILES + files), *DRAWN))
        return drawn(low, high, members.rows[taken], count)

    def ahead(self, taken: Mask) -> tuple[int, ...]:
        """Return by how many levels the rows of the *taken* files are narrower in each column."""
        return levels_ahead(self._rows_at, self._low[taken], self._high[taken])

    def after(self, taken: Mask, cut_into: int, row_groups: int) -> float:
        """Return the cost of the *taken* files if they are rewritten together."""
        inside, ahead = self._drawn(taken), self.ahead(taken)
        rows = int(self._members.rows[taken].sum())
        cells = written(self._request, inside, ahead, rows, cut_into, row_groups)
        cost = reads(self._request, cells, self._rows_at, self._ranges, self._opening)
        return float(cost.sum())


def _weights(request: Request) -> Sequence[float] | None:
    """Return how often filters are taken to use each column; None: equally often."""
    if request.curve is Curve.LINEAR:
        return [LINEAR**-number for number in range(len(request.columns))]
    return request.weights if len(set(request.weights)) > 1 else None


class BySizes:
    """A prediction from sizes alone: every run and every raw file spans the whole partition.

    It needs no stats, and takes microseconds instead of milliseconds.
    """

    def __init__(self, request: Request, members: Members) -> None:
        """Take every run for evenly spread.

        Args:
            request: The requested layout.
            members: The files of the partition.
        """
        self._request, self._members = request, members
        self._opening = members.opening(request)
        groups, runs = members.row_groups(request), members.run_of + 1
        files_in = np.bincount(runs)[runs].astype(np.float64)
        groups_in = np.bincount(runs, groups)[runs].astype(np.float64)
        is_run = members.run_of >= 0
        share = np.where(is_run, self._share(groups_in), 1.0)
        opened = np.where(is_run, self._share(files_in), 1.0)
        self.now = members.rows * share + self._opening * opened

    def ahead(self, _: Mask) -> tuple[int, ...]:
        """Return no levels: all files span the whole partition."""
        return (0,) * len(self._request.columns)

    def after(self, taken: Mask, cut_into: int, row_groups: int) -> float:
        """Return the cost of the *taken* files if they are rewritten together."""
        files, groups = self._share(np.array([cut_into, cut_into * row_groups], np.float64))
        return float(self._members.rows[taken].sum() * groups + self._opening * cut_into * files)

    def _share(self, parts: Floats) -> Floats:
        logs, shares = _shares_of_uniform(len(self._request.columns))
        return np.interp(np.log2(parts), logs, shares)


@cache
def _shares_of_uniform(columns: int) -> tuple[Floats, Floats]:
    """Return logarithms of numbers of parts, and what filters read of rows cut into so many."""
    request = Request(
        columns=tuple((str(number),) for number in range(columns)),
        weights=(1.0,) * columns,
        target_file_size=1,
    )
    low, high = np.ones((1, columns), np.int64), np.full((1, columns), 1 << 40)
    rows_at = drawn(low, high, np.array([1]), UNIFORM)
    ranges = queries(rows_at)
    logs, one = np.arange(25), np.ones(1)
    shares = [
        reads(request, Cells(low, high, one, one, one * (1 << log)), rows_at, ranges, 0.0)[0]
        for log in logs.tolist()
    ]
    return logs.astype(np.float64), np.array(shares)
