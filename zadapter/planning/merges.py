"""Which files of one partition to rewrite together, so that filters read little for few rewrites.

Each rewrite leaves a *run*: files that one layout wrote. All other files are *raw*. Filters read
more from two runs than from one of as many rows, so runs are merged, like those of a log-structured
merge-tree. All state is in the live files.

A rewrite of S rows, F of which are not in its largest run, saves a share g of what filters read
from the partition. These F rows came in since that run was written, and a run that is F rows older
is merged again after about as many rows more: so the rewrite saves g for about F rows of arrivals.
It is worth g F against the S rows written. Raw rows have to be written once anyway, so they cost
nothing. Of all candidates, the one with the largest g F - PRICE x (S - raw rows) is chosen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Request
from zadapter.planning.file_groups import Group, Root
from zadapter.planning.reading import Mask, Members, Prediction

PRICE = 0.1
"""Share of the reads that rewriting a run must save, times the share of rows that are new to it."""
LEAST = 0.001
"""Share of the reads that counts as nothing."""
FEW_FILES, SMALLEST_SHARE = 8, 1 / 8
"""Number of files that a small run is cut into, and their least size as a share of the target."""
FEW_ROWS = 100
"""Minimum number of rows of the files of a run that is cut finer than to the target size."""
STEP = 1.25
"""Growth in rows from a candidate to the next."""


class Reason(str, Enum):
    """Why files are rewritten."""

    FIRST = "never clustered"
    NEW = "new files"
    MERGED = "runs merged"
    ANEW = "fitted anew"
    MIXED = "rows of several partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Rows that filters read on average, and a cost of opening files."""

    before: float
    """From the files, as they are."""
    after: float
    """From the files that replace them."""
    read: float
    """From the whole partition, as it is."""

    @property
    def rows(self) -> float:
        """Rows that filters read less."""
        return self.before - self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Files of one partition that can be rewritten together, and what that brings."""

    table: pa.Table = field(repr=False)
    """The file table."""
    members: Ints = field(repr=False)
    """Indices of the files in it."""
    root: Root | None
    reason: Reason
    cut_into: int
    """Number of files to write."""
    row_groups: int
    """Number of row groups of each."""
    bytes: int
    rows: int
    raw: int
    """Number of rows that are in no run."""
    fresh: int
    """Number of rows that are not in the largest run among the files."""
    gain: Gain | None
    """None: not predicted, since no file of the partition is clustered."""

    @property
    def group(self) -> Group:
        """The files as a group."""
        files = self.table.take(pa.array(self.members))
        return Group(root=self.root, files=files, cut_into=self.cut_into)

    @property
    def worth(self) -> float:
        """What filters save until the next merge, less the price of the rewrite, in rows."""
        if self.gain is None:
            return float(self.fresh)
        saved = self.gain.rows / max(self.gain.read, 1e-9)
        return saved * self.fresh - PRICE * (self.rows - self.raw)

    @property
    def pays(self) -> bool:
        """Whether the rewrite is worth its price."""
        if self.gain is None:
            return True
        return self.gain.rows > LEAST * self.gain.read and self.worth > 0


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


def prefixes(members: Members) -> Iterator[Mask]:
    """Yield the raw files with ever more runs, by rows; the last mask has all files."""
    raw = members.run_of < 0
    of_run = np.bincount(members.run_of + 1, members.rows, minlength=1)[1:]
    order = np.argsort(of_run, kind="stable")
    grown = int(members.rows[raw].sum())
    taken = raw
    if raw.any():
        yield raw
    for number, run in enumerate(order.tolist()):
        taken = taken | (members.run_of == run)
        rows = int(members.rows[taken].sum())
        several = number > 0 or bool(raw.any())
        if several and (number == len(order) - 1 or rows >= STEP * grown):
            grown = rows
            yield taken


def rewrites(
    table: pa.Table,
    at: Ints,
    root: Root,
    request: Request,
    members: Members,
    prediction: Prediction,
) -> list[Rewrite]:
    """Return what could be rewritten in a partition, smallest first; the last one is everything.

    Args:
        table: The file table.
        at: Indices of the partition's files in it.
        root: The partition.
        request: The requested layout.
        members: Facts of these files.
        prediction: What filters read from these files.
    """
    read = float(prediction.now.sum())
    found = []
    for taken in prefixes(members):
        rows, size = int(members.rows[taken].sum()), int(members.sizes[taken].sum())
        of_run = np.bincount(members.run_of[taken] + 1, members.rows[taken], minlength=2)
        cut_into, row_groups = grain(request, size, rows)
        merged = Reason.ANEW if taken.all() else Reason.MERGED
        gain = Gain(
            before=float(prediction.now[taken].sum()),
            after=prediction.after(taken, cut_into, row_groups),
            read=read,
        )
        found.append(
            Rewrite(
                table=table,
                members=at[taken],
                root=root,
                reason=merged if of_run[1:].any() else Reason.NEW,
                cut_into=cut_into,
                row_groups=row_groups,
                bytes=size,
                rows=rows,
                raw=int(of_run[0]),
                fresh=rows - int(of_run[1:].max()),
                gain=gain,
            )
        )
    return found
