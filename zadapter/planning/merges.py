"""Which files of one partition to rewrite together, so that filters read little for few rewrites.

Each rewrite leaves a *run*: files that one layout wrote. All other files are *raw*. Filters read
more from two runs than from one of as many rows, so runs are merged, like those of a log-structured
merge-tree. All state is in the live files.

A rewrite of S rows, F of which are not in its largest run, saves a share g of what filters read
from the partition. These F rows came in since that run was written, and a run that is F rows older
is merged again after about as many rows more: so the rewrite saves g for about F rows of arrivals.
It is worth g F against the S rows written. Rewrites of raw rows, which have to be written once
anyway, count for nothing. Of all candidates, the one with the largest g F - PRICE x S is chosen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Request
from zadapter.planning import box_rows
from zadapter.planning.box_rows import Cells
from zadapter.planning.predict import Floats, queries
from zadapter.table import file_stats

PRICE = 0.05
"""Share of the reads that rewriting a partition must save for as long as it takes to double."""
LEAST = 0.001
"""Share of the reads that counts as nothing."""
FEW_FILES, SMALLEST_SHARE = 8, 1 / 8
"""Number of files that a small run is cut into, and their least size as a share of the target."""
FEW_ROWS = 100
"""Number of rows below which files are not cut finer."""
STEP = 1.25
"""Growth in rows from a candidate to the next."""
DRAWN = 128, 16_384
"""Minimum and maximum number of rows drawn for one partition."""

Mask = npt.NDArray[np.bool_]


class Reason(str, Enum):
    """Why files are rewritten."""

    NEW = "new files"
    MERGED = "runs merged"
    ANEW = "fitted anew"
    WORN = "deleted rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Files of one partition that could be rewritten together, and what that brings."""

    files: pa.Table = field(repr=False)
    reason: Reason
    cut_into: int
    """Number of files to write."""
    row_groups: int
    """Number of row groups of each."""
    bytes: int
    rows: int
    fresh: int
    """Number of rows that are not in the largest run among the files."""
    raw: int
    """Number of rows that are in no run."""
    before: float
    """Rows that filters read from these files on average, including the cost of opening them."""
    after: float
    """The same after the rewrite."""
    read: float
    """Rows that filters read from the whole partition now."""

    @property
    def gain(self) -> float:
        """Rows that filters read less from the partition on average."""
        return self.before - self.after

    @property
    def worth(self) -> float:
        """Rows that filters need not read while as many rows come in as are fresh now, less those
        that a rewrite has to save; in units of all that filters read from the partition."""
        share = self.gain / max(self.read, 1e-9)
        return share * self.fresh - PRICE * (self.rows - self.raw)

    @property
    def pays(self) -> bool:
        """Whether the rewrite is worth its cost."""
        return self.gain > LEAST * self.read and self.worth > 0


@dataclass(frozen=True, slots=True)
class _Partition:
    """Files of one partition, as positions of boxes and rows drawn inside them."""

    files: pa.Table
    request: Request
    run_of: Ints
    """Run of each file; -1: raw."""
    rows: Ints
    sizes: Ints
    rows_at: Ints
    file_of: Ints
    ranges: Ints
    cost: Floats
    """What filters read from each file."""

    @property
    def opening(self) -> float:
        rows_a_byte = float(self.rows.sum()) / max(1.0, float(self.sizes.sum()))
        return box_rows.OPENING * self.request.target_file_size * rows_a_byte


def grain(request: Request, size: int, rows: int) -> tuple[int, int]:
    """Return the number of files to write, and the number of row groups of each.

    A run of few files is cut into smaller ones, so that filters skip most of them.

    Args:
        request: The requested layout.
        size: Bytes of the replaced files.
        rows: Rows of these files.
    """
    exact = size / request.target_file_size
    thin = min(FEW_FILES, int(exact / SMALLEST_SHARE), rows // FEW_ROWS)
    files = max(1, round(exact), thin)
    return files, max(1, round(request.row_groups * min(1.0, exact / files)))


def candidates(
    files: pa.Table, request: Request, run_of: Ints, rows: Ints, *, max_bytes: int
) -> list[Candidate]:
    """Return what could be rewritten in a partition, smallest first, with its predicted gain.

    Args:
        files: The files of the partition.
        request: The requested layout.
        run_of: Run of each file, counted from 0; -1: raw.
        rows: Rows of each file.
        max_bytes: Maximum bytes of the files of one candidate.
    """
    part = _partition(files, request, run_of, rows)
    return [
        _candidate(part, members)
        for members in _prefixes(part)
        if int(part.sizes[members].sum()) <= max_bytes or members.sum() == 1
    ]


def _partition(files: pa.Table, request: Request, run_of: Ints, rows: Ints) -> _Partition:
    stats = [file_stats.column(files, parts) for parts in request.columns]
    low, high = box_rows.positions(stats, rows)
    sizes = files["size"].to_numpy()
    exact = sizes / request.target_file_size
    fewest, most = DRAWN
    wanted = box_rows.A_CELL * (FEW_FILES + float(exact.sum()))
    rows_at, file_of = box_rows.drawn(low, high, rows, int(np.clip(wanted, fewest, most)))
    groups = np.where(run_of < 0, 1.0, np.clip(request.row_groups * exact, 1, request.row_groups))
    part = _Partition(
        files=files,
        request=request,
        run_of=run_of,
        rows=rows,
        sizes=sizes,
        rows_at=rows_at,
        file_of=file_of,
        ranges=queries(rows_at),
        cost=np.zeros(0),
    )
    cells = Cells(low, high, rows.astype(np.float64), np.ones(len(rows)), groups)
    part.cost.resize(len(rows))
    part.cost[:] = box_rows.reads(request, cells, part.ranges, part.opening)
    return part


def _prefixes(part: _Partition) -> Iterator[Mask]:
    """Yield the raw files with ever more runs, by rows; the last one has all files."""
    of_run = np.bincount(part.run_of + 1, part.rows, minlength=1)[1:]
    order = np.argsort(of_run, kind="stable")
    taken = part.run_of < 0
    yielded = int(part.rows[taken].sum())
    if taken.any():
        yield taken
    for number, run in enumerate(order.tolist()):
        taken = taken | (part.run_of == run)
        grown = int(part.rows[taken].sum())
        last = number == len(order) - 1
        if (last or grown >= STEP * yielded) and (number or (part.run_of < 0).any()):
            yielded = grown
            yield taken


def _candidate(part: _Partition, members: Mask) -> Candidate:
    rows, size = int(part.rows[members].sum()), int(part.sizes[members].sum())
    of_run = np.bincount(part.run_of[members] + 1, part.rows[members], minlength=2)
    cut_into, row_groups = grain(part.request, size, rows)
    inside = part.rows_at[members[part.file_of]]
    cells = box_rows.written(part.request, inside, rows, cut_into, row_groups)
    reason = Reason.ANEW if members.all() else Reason.MERGED
    return Candidate(
        files=part.files.filter(pa.array(members)),
        reason=reason if of_run[1:].any() else Reason.NEW,
        cut_into=cut_into,
        row_groups=row_groups,
        bytes=size,
        rows=rows,
        fresh=rows - int(of_run[1:].max()),
        raw=int(of_run[0]),
        before=float(part.cost[members].sum()),
        after=float(box_rows.reads(part.request, cells, part.ranges, part.opening).sum()),
        read=float(part.cost.sum()),
    )
