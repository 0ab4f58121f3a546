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

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Request
from zadapter.layout.trunk import Trunk
from zadapter.planning.file_groups import Group, Root
from zadapter.planning.predict import Floats
from zadapter.planning.reading import Members, Prediction, grain

PRICE = 0.12
"""Share of the reads that rewriting a run must save, times the share of rows that are new to it."""
LEAST = 0.001
"""Share of the reads that counts as nothing."""
STEP = 1.25
"""Growth in rows from a candidate to the next."""


class Reason(str, Enum):
    """Why files are rewritten."""

    FIRST = "never clustered"
    NEW = "new files"
    MERGED = "runs merged"
    ANEW = "fitted anew"
    WORN = "deleted rows"
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
    ahead: tuple[int, ...]
    """Number of levels by which the rows are narrower than their partition in each column, for
    ``zadapter.layout.build.fit``."""
    bytes: int
    rows: int
    raw: int
    """Number of rows that are in no run."""
    fresh: int
    """Number of rows that are not in the largest run among the files."""
    trunk: Trunk | None = None
    """Levels that the layout begins with."""
    gain: Gain | None
    """None: not predicted, since it is rewritten whatever it brings, or judged by its rows."""

    @property
    def group(self) -> Group:
        """The files as a group."""
        files = self.table.take(pa.array(self.members))
        return Group(
            root=self.root,
            files=files,
            cut_into=self.cut_into,
            row_groups=self.row_groups,
            ahead=self.ahead,
            trunk=self.trunk,
            reason=self.reason.value,
        )

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


def rewrites(
    table: pa.Table,
    at: Ints,
    root: Root | None,
    request: Request,
    members: Members,
    prediction: Prediction,
) -> list[Rewrite]:
    """Return what could be rewritten in a partition, smallest first; the last one is everything.

    These are the raw files with ever more runs, by rows.

    Args:
        table: The file table.
        at: Indices of the partition's files in it.
        root: The partition.
        request: The requested layout.
        members: Facts of these files.
        prediction: What filters read from these files.
    """
    step_of, sums = _steps(members, prediction.now)
    raw, read = int(sums[0, 0]), float(sums[-1, 2])
    found = list[Rewrite]()
    for step, (rows, size, before) in enumerate(sums.tolist()):
        last = step == len(sums) - 1
        several = raw > 0 or step > 1
        if not several or not rows or (found and not last and rows < STEP * found[-1].rows):
            continue
        taken = step_of <= step
        cut_into, row_groups = grain(request, int(size), int(rows), members.whole)
        after = prediction.after(taken, cut_into, row_groups)
        merged = Reason.ANEW if last else Reason.MERGED
        largest = rows - sums[step - 1, 0] if step else 0
        found.append(
            Rewrite(
                table=table,
                members=at[taken],
                root=root,
                reason=merged if step else Reason.NEW,
                cut_into=cut_into,
                row_groups=row_groups,
                ahead=prediction.ahead(taken),
                bytes=int(size),
                rows=int(rows),
                raw=raw,
                fresh=int(rows - largest),
                gain=Gain(before=before, after=after, read=read),
            )
        )
    return found


def _steps(members: Members, now: Floats) -> tuple[Ints, Floats]:
    """Return the step at which each file joins, and sums of the files up to each step.

    Raw files join at step 0, then the runs, by rows. The sums are rows, bytes and what filters
    read.
    """
    runs = members.run_of + 1
    sums = np.stack(
        [np.bincount(runs, each) for each in (members.rows, members.sizes, now)], axis=1
    )
    order = np.append(0, np.argsort(sums[1:, 0], kind="stable") + 1)
    step_of_run = np.empty(len(order), np.int64)
    step_of_run[order] = np.arange(len(order))
    return step_of_run[runs], np.cumsum(sums[order], axis=0)
