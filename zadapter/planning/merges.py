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

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import take_rows
from zadapter.base.ranks import Ints
from zadapter.layout.layout import ID, LayoutStore, Request
from zadapter.layout.predict import Floats
from zadapter.layout.trunk import Trunk
from zadapter.planning.file_groups import FileGroup, Root
from zadapter.planning.file_size import counted_sizes, other_bloom_filters
from zadapter.planning.reading import Mask
from zadapter.table import file_stats

PRICE = 0.12
"""Share of the reads that rewriting a run must save, times the share of rows that are new to it."""
WORN = 0.3
"""Share of deleted rows above which a file is rewritten, clustered or not."""
MANY_DELETES, LITTLE_WORN = 10, 0.1
"""Number of delete files of a file from which on it is rewritten, since a reader opens all of them,
and the share of deleted rows that it must have, too: a stream of updates adds such files each
minute, and would have the whole table rewritten each time."""
LEAST = 0.001
"""Share of the reads that counts as nothing."""


class Reason(str, Enum):
    """Why files are rewritten."""

    FIRST = "not in this layout"
    NEW = "new files"
    MERGED = "runs merged"
    ANEW = "new cuts"
    WORN = "deleted rows"
    MIXED = "rows of several partitions"
    SMALL = "small files"
    COLD = "cold files"
    BLOOM_FILTERS = "other Bloom filters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """Clustered files that are rewritten, though they are in runs; and how all files count."""

    every: bool = False
    """Fit new cuts to all files, also to those that another implementation has clustered."""
    outdated: Collection[str] = ()
    """Ids of requests whose files have other Bloom filters."""
    layouts: LayoutStore | None = None
    """Layouts stored with the table, by which bytes of files count for the number of files that
    replace them (``counted_sizes``); None: all of them do."""

    @classmethod
    def of(
        cls,
        files: pa.Table,
        layouts: LayoutStore,
        request: Request,
        *,
        every: bool = False,
        is_sized: bool = False,
    ) -> "Renewal":
        """Find the files with other Bloom filters than requested.

        Args:
            files: The file table.
            layouts: Layouts stored with the table, by id.
            request: The requested layout.
            every: Whether all files get new cuts.
            is_sized: Whether the caller states a size, which bytes of files are compared with.
        """
        outdated = other_bloom_filters(files, layouts, request)
        return cls(every=every, outdated=outdated, layouts=None if is_sized else layouts)

    def count(self, files: pa.Table) -> Ints:
        """Return the bytes of each file, as they count for the number of files that replace it."""
        sizes: Ints = files["size"].to_numpy()
        return sizes if self.layouts is None else counted_sizes(files, self.layouts)


def worn(files: pa.Table) -> Mask:
    """Return which files are rewritten, clustered or not, for their row-level deletes."""
    share, many = file_stats.deleted_share(files), file_stats.delete_files(files) >= MANY_DELETES
    return (share > WORN) | many & (share > LITTLE_WORN)


@dataclass(frozen=True, slots=True)
class RequiredFiles:
    """Files that are rewritten whether that pays or not."""

    worn: Mask
    """Files with many deleted rows, or many delete files."""
    outdated: Mask
    """Files with other Bloom filters."""
    every: bool
    """Whether all files are rewritten."""

    @classmethod
    def of(cls, files: pa.Table, renewal: Renewal) -> "RequiredFiles":
        """Find the worn files, and those to renew."""
        request_of = pc.utf8_slice_codeunits(files["layout"], 0, ID)
        among = pc.is_in(request_of, pa.array(sorted(renewal.outdated), pa.string()))
        return cls(worn(files), np.asarray(among.to_numpy(), bool), renewal.every)

    def reason(self, at: Ints) -> Reason | None:
        """Return why the files *at* these indices are rewritten; None: only if it pays."""
        if self.outdated[at].any():
            return Reason.BLOOM_FILTERS
        return Reason.WORN if self.worn[at].any() else None


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
    cold: bool = False
    """Whether the files are cold, so that larger ones replace them."""
    gain: Gain | None
    """None: not predicted, since it is always rewritten, or judged by its rows."""


def worth(saved: Floats, read: Floats, fresh: Floats, merged: Floats) -> Floats:
    """Return what filters save until the next merge, less the price of the rewrite, in rows.

    Args:
        saved: Rows that filters read less.
        read: Rows that they read of the partition.
        fresh: Rewritten rows that are not in the largest run among them.
        merged: Rewritten rows that are in some run.
    """
    return saved / np.maximum(read, 1e-9) * fresh - PRICE * merged


def pays(saved: Floats, read: Floats, fresh: Floats, merged: Floats) -> Mask:
    """Return whether rewrites are worth their price; the arguments are those of :func:`worth`."""
    return np.asarray((saved > LEAST * read) & (worth(saved, read, fresh, merged) > 0))


def groups_of(rewrites: Sequence[Rewrite]) -> list[FileGroup]:
    """Return the files of rewrites of one file table as groups."""
    if not rewrites:
        return []
    files = take_rows(rewrites[0].table, np.concatenate([each.members for each in rewrites]))
    stops = np.cumsum([len(each.members) for each in rewrites]).tolist()
    return [
        FileGroup(
            root=each.root,
            files=files.slice(stop - len(each.members), len(each.members)),
            cut_into=each.cut_into,
            row_groups=each.row_groups,
            ahead=each.ahead,
            trunk=each.trunk,
            reason=each.reason.value,
            cold=each.cold,
        )
        for each, stop in zip(rewrites, stops, strict=True)
    ]
