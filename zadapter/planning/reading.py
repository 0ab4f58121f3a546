"""What filters read from the files of a partition, now and after a merge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.box_rows import (
    A_CELL,
    Cells,
    draw_positions,
    levels_ahead,
    positions,
    predict_cells,
    reads,
)
from zadapter.layout.layout import Curve, Request
from zadapter.layout.predict import Floats, queries

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
    """Facts of files that are judged together, or of several such sets.

    Attributes:
        sizes: Bytes of each file, as they count for the number of files that replace it.
        rows: Rows of each file.
        run_of: Run of each file. The raw files of a set count as one.
        is_raw: Whether each run consists of raw files.
        whole: Bytes beside which each run is small: those of the partition, or of one box of its
            trunk.
    """

    sizes: Ints
    rows: Ints
    run_of: Ints
    is_raw: Mask
    whole: Ints

    def of(self, files: slice, runs: Ints) -> "Members":
        """Return some of the files, which make up some consecutive runs."""
        return Members(
            sizes=self.sizes[files],
            rows=self.rows[files],
            run_of=self.run_of[files] - runs[0],
            is_raw=self.is_raw[runs],
            whole=self.whole[runs],
        )

    def row_groups(self, request: Request) -> Floats:
        """Return the number of row groups of each file that filters can tell apart."""
        size, rows = (np.bincount(self.run_of, each) for each in (self.sizes, self.rows))
        total = np.multiply(*grain(request, size, rows, self.whole))
        share = self.sizes / np.maximum(size, 1)[self.run_of]
        return np.where(self.is_raw[self.run_of], 1.0, np.maximum(1.0, total[self.run_of] * share))


def opening(request: Request, rows: Floats, sizes: Floats) -> Floats:
    """Return the cost of opening a file, in rows, in tables with this number of rows and bytes."""
    return np.asarray(OPENING * request.target_file_size * (rows / np.maximum(1.0, sizes)))


def grain(
    request: Request, size: npt.ArrayLike, rows: npt.ArrayLike, whole: npt.ArrayLike
) -> tuple[Ints, Ints]:
    """Return the numbers of files to write, and the numbers of row groups of each.

    Filters read a larger share of a small run. So it is cut into smaller files, and a run of less
    than half of its partition has smaller row groups.

    Args:
        request: The requested layout.
        size: Bytes of the replaced files of each run.
        rows: Rows of these files.
        whole: Bytes of the partition.
    """
    size, rows, whole = np.asarray(size, np.float64), np.asarray(rows), np.asarray(whole)
    exact = size / request.target_file_size
    thin = np.minimum(np.minimum(FEW_FILES, exact // SMALLEST_SHARE), rows // FEW_ROWS)
    files = np.maximum(np.maximum(1, np.rint(exact)), np.where(size < whole, thin, 0))
    finer = np.clip(whole / np.maximum(1, 2 * size), 1.0, FINER)
    full = np.where(size >= whole, 1.0, np.minimum(exact / files, 1.0))
    row_groups = np.maximum(1, np.rint(finer * request.row_groups * full))
    return files.astype(np.int64), row_groups.astype(np.int64)


def spread(request: Request, rows: Floats, files: Floats, groups: Floats, cost: Floats) -> Floats:
    """Return what filters read of runs that span the whole partition, from their sizes alone.

    It needs no stats, and takes microseconds instead of milliseconds.

    Args:
        request: The requested layout.
        rows: Rows of each run.
        files: Number of its files.
        groups: Number of its row groups.
        cost: Cost of opening a file, in rows.
    """
    logs, shares = _shares_of_uniform(len(request.columns))
    read, opened = (np.interp(np.log2(parts), logs, shares) for parts in (groups, files))
    return np.asarray(rows * read + cost * files * opened)


class ByBoxes:
    """Rows that filters read on average, with a cost for every file opened, by the files' boxes.

    Attributes:
        now: The cost of each file, as it is.
    """

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
        self._opening = float(
            opening(request, np.float64(members.rows.sum()), np.float64(members.sizes.sum()))
        )
        self._low, self._high = low, high = positions(stats, members.rows)
        self._rows_at = self._draw_positions(np.ones(len(low), np.bool_))
        self._ranges = queries(self._rows_at, weights=filter_weights(request))
        files = np.ones(len(members.rows))
        groups = members.row_groups(request)
        cells = Cells(low, high, members.rows.astype(np.float64), files, groups)
        self.now = reads(request, cells, self._rows_at, self._ranges, self._opening)

    def _draw_positions(self, taken: Mask) -> Ints:
        """Draw rows inside the *taken* files: some for each file to write."""
        low, high, members = self._low[taken], self._high[taken], self._members
        files = members.sizes[taken].sum() / self._request.target_file_size
        count = int(np.clip(A_CELL * (FEW_FILES + files), *DRAWN))
        return draw_positions(low, high, members.rows[taken], count)

    def ahead(self, taken: Mask) -> tuple[int, ...]:
        """Return by how many levels the rows of the *taken* files are narrower in each column."""
        return levels_ahead(self._rows_at, self._low[taken], self._high[taken])

    def after(self, taken: Mask, cut_into: int, row_groups: int) -> float:
        """Return the cost of the *taken* files if they are rewritten together."""
        inside, ahead = self._draw_positions(taken), self.ahead(taken)
        rows = int(self._members.rows[taken].sum())
        cells = predict_cells(self._request, inside, ahead, rows, cut_into, row_groups)
        cost = reads(self._request, cells, self._rows_at, self._ranges, self._opening)
        return float(cost.sum())


def filter_weights(request: Request) -> Sequence[float] | None:
    """Return how often filters are taken to use each column; None: equally often."""
    if request.curve is Curve.LINEAR:
        return [LINEAR**-number for number in range(len(request.columns))]
    return request.weights if len(set(request.weights)) > 1 else None


@cache
def _shares_of_uniform(columns: int) -> tuple[Floats, Floats]:
    """Return logarithms of numbers of parts, and what filters read of rows cut into that number."""
    request = Request(
        columns=tuple((str(number),) for number in range(columns)),
        weights=(1.0,) * columns,
        target_file_size=1,
    )
    low, high = np.ones((1, columns), np.int64), np.full((1, columns), 1 << 40)
    rows_at = draw_positions(low, high, np.array([1]), UNIFORM)
    ranges = queries(rows_at)
    logs, one = np.arange(25), np.ones(1)
    shares = [
        reads(request, Cells(low, high, one, one, one * (1 << log)), rows_at, ranges, 0.0)[0]
        for log in logs.tolist()
    ]
    return logs.astype(np.float64), np.array(shares)
