"""Parts of partitions that maintenance judges by themselves.

A partition that fits in a job is one part. A larger one has a trunk (``zadapter.planning.trunks``):
the files in each of its boxes are a part, and so are those that lie in no box, its *stem*: raw
files and small runs. The stem's files are cut along the trunk once there are enough of them to fill
its boxes; until then along its first levels.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.arrays import as_array, take_rows
from zadapter.base.ranks import Ints, rank
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Request
from zadapter.layout.trunk import Trunk
from zadapter.planning import trunks
from zadapter.planning.file_groups import Root
from zadapter.planning.merges import Reason
from zadapter.planning.reading import SMALLEST_SHARE, Mask, grain
from zadapter.table import file_stats

ENOUGH = 4
"""Number of new cold files that are rewritten while others of their partition are still warm or
hot."""
STRAYS = 1 / 8
"""Share of a run that is left where it is if it lies in no box, while the others do."""


@dataclass(frozen=True, slots=True)
class FileArrays:
    """The file table, and columns of it as arrays."""

    files: pa.Table
    request: Request
    sizes: Ints
    rows: Ints
    layout: Ints
    """Number of the layout of each file; -1: raw."""
    counted: Ints
    """Bytes of each file as they count for the number of files that replace it."""

    @classmethod
    def of(cls, files: pa.Table, request: Request, worn: Mask, counted: Ints) -> "FileArrays":
        """Read the file table; where all files are asked for, the cold ones are clustered, too.

        Args:
            files: The file table.
            request: The requested layout.
            worn: Files that count as raw.
            counted: Bytes of each file, as they count (:meth:`Renewal.count`).
        """
        sizes, rows = files["size"].to_numpy(), file_stats.row_counts(files)
        layouts = as_array(files["layout"]).dictionary_encode()
        ours = np.zeros(len(layouts.dictionary), np.bool_)
        for each in (request,) if request.cold else (request, request_for_cold(request)):
            ours |= pc.starts_with(layouts.dictionary, each.id).to_numpy(zero_copy_only=False)
        by_id = np.append(rank(layouts.dictionary).ranks - 1, [-1])
        number = by_id[layouts.indices.fill_null(-1).to_numpy()]
        clustered = np.append(ours, [False])[layouts.indices.fill_null(-1).to_numpy()]
        layout = np.where(clustered & ~worn, number, -1)
        return cls(files, request, sizes, rows, layout, counted)

    def is_clustered(self, at: Ints) -> bool:
        """Return whether some of the files *at* these indices are clustered."""
        return bool((self.layout[at] >= 0).any())

    def raw_bytes(self, at: Ints) -> int:
        """Return the bytes of the raw files *at* these indices."""
        return int(self.sizes[at][self.layout[at] < 0].sum())

    def outside_largest_run(self, at: Ints) -> int:
        """Return the bytes of the files *at* these indices that are not in their largest run."""
        sizes, runs = self.sizes[at], np.unique(self.layout[at], return_inverse=True)[1]
        return int(sizes.sum() - np.bincount(runs, sizes).max(initial=0))

    def stats(self, at: Ints) -> list[pa.StructArray | None]:
        """Return the stats of each key column of the files *at* these indices."""
        files = take_rows(self.files.select(["stats"]), at)
        return [file_stats.column(files, parts) for parts in self.request.columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPart:
    """Files of a partition that are judged by themselves."""

    root: Root | None
    at: Ints
    """Indices of the files in the file table."""
    whole: int
    """Bytes beside which runs of the part are small, as they count for the number of files."""
    trunk: Trunk | None = None
    """The trunk that the files are cut along."""
    ahead: tuple[int, ...] = ()
    """How often each key column was cut by the trunk already."""
    reason: Reason | None = None
    """Why raw files are rewritten, if the rest of the partition decides it."""
    due: bool = False
    """Whether all of the files are rewritten, clustered or not."""

    @property
    def is_box(self) -> bool:
        """Whether these are the files in one box of a trunk."""
        return bool(self.ahead)

    def add_levels(self, ahead: tuple[int, ...]) -> tuple[int, ...]:
        """Return by how many levels rows are narrower than the partition in each key column.

        Args:
            ahead: The levels by which they are narrower than the part.
        """
        both = np.array(ahead) + np.array(self.ahead or (0,) * len(ahead))
        return tuple((both - both.min()).tolist())

    def grain(self, facts: FileArrays, members: Ints) -> tuple[int, int, Trunk | None]:
        """Return the numbers of files and of row groups to write, and their trunk.

        Args:
            facts: The file table.
            members: Indices of the replaced files.
        """
        request, counted = facts.request, int(facts.counted[members].sum())
        if self.trunk is None:
            return max(1, round(counted / request.target_file_size)), request.row_groups, None
        rows = facts.rows[members].sum()
        files, row_groups = map(int, grain(request, counted, rows, self.whole))
        trunk = self.trunk if self.due else self.trunk.shorten(files)
        return files, row_groups, trunk


def parts_of(facts: FileArrays, root: Root, at: Ints, limit: int) -> Iterator[PartitionPart]:
    """Yield the parts of a partition; files in none of them are left as they are.

    Args:
        facts: The file table.
        root: The partition.
        at: Indices of its files.
        limit: Maximum bytes of a job.
    """
    size, whole = int(facts.sizes[at].sum()), int(facts.counted[at].sum())
    if not trunks.has_trunk(facts.request, size, limit):
        yield PartitionPart(root=root, at=at, whole=whole)
        return
    clustered = facts.layout[at] >= 0
    found = trunks.find(facts.stats(at), facts.rows[at], facts.sizes[at], clustered, limit)
    if found.trunk is None:
        # what has no cuts in common with the rest has none that new files could follow
        some = facts.sizes[at[~clustered]].sum() > limit
        trunk = trunks.create_trunk(size, limit) if some else None
        yield PartitionPart(root=root, at=at, whole=whole, trunk=trunk, due=not clustered.any())
        return
    stem = _stem(facts, root, at, found)
    yield from stem
    inside = found.box_of >= 0
    if sum(facts.sizes[part.at].sum() for part in stem) > facts.sizes[at[inside]].sum():
        return  # the boxes will get more than they have
    order = np.flatnonzero(inside)[np.argsort(found.box_of[inside], kind="stable")]
    edges = np.flatnonzero(np.diff(found.box_of[order])) + 1
    for box in np.split(order, edges) if len(order) else []:
        members = at[box]
        if len(set(facts.layout[members].tolist())) > 1 or facts.layout[members[0]] < 0:
            cut = found.trunk.cuts_of(int(found.box_of[box[0]]), len(facts.request.columns))
            inner = int(facts.counted[members].sum())
            yield PartitionPart(root=root, at=members, whole=inner, ahead=cut, reason=Reason.NEW)


def cold_parts(
    facts: FileArrays,
    cold: FileArrays,
    partitions: Iterable[tuple[Root, Ints]],
    others: Collection[Root],
    limit: int,
) -> Iterator[PartitionPart]:
    """Yield the parts of the cold files of partitions.

    Files that no cold layout wrote are rewritten once their partition has no other files, once they
    fill several new files, or if some of them are not clustered. A run is left alone unless its
    number of files would at least halve.

    Args:
        facts: The file table, for the usual files.
        cold: The file table, for the cold files.
        partitions: The cold files of each partition.
        others: Partitions that have other files, too.
        limit: Maximum bytes of a job.
    """
    request = cold.request
    for root, at in partitions:
        raw = at[cold.layout[at] < 0]
        size = int(cold.counted[raw].sum())
        enough = size >= ENOUGH * request.target_file_size
        waits = root in others and not enough and bool((facts.layout[raw] >= 0).all())
        wanted = max(1, round(size / request.target_file_size))
        is_run = len(set(facts.layout[raw].tolist())) == 1 and facts.is_clustered(raw)
        reason = Reason.COLD if facts.is_clustered(raw) or len(raw) > wanted else None
        if len(raw) == len(at):
            if not waits and not (is_run and len(raw) < 2 * wanted):
                found = parts_of(cold, root, at, limit)
                yield from (replace(part, reason=part.reason or reason) for part in found)
        elif not enough:
            yield from parts_of(cold, root, at, limit)
        else:
            whole = int(cold.counted[at].sum())
            yield PartitionPart(root=root, at=raw, whole=whole, reason=Reason.COLD, due=True)


def _stem(
    facts: FileArrays, root: Root, at: Ints, found: trunks.PlacedTrunk
) -> list[PartitionPart]:
    """Return the files that lie in no box as a part, if there are several runs or raw files.

    Files of unknown bounds may lie in a box. The few of a run whose other files do are taken along
    when the stem is cut along the trunk.
    """
    trunk, layout, sizes = found.trunk, facts.layout[at], facts.sizes[at]
    outside = (found.box_of < 0) & (found.known | (layout < 0))
    _, run_of = np.unique(layout, return_inverse=True)
    share = np.bincount(run_of, sizes * outside) / np.maximum(np.bincount(run_of, sizes), 1)
    stray = outside & (layout >= 0) & (share[run_of] <= STRAYS)
    stem = outside & ~stray
    size = int(sizes[stem].sum())
    is_raw = bool((layout[stem] < 0).any())
    if trunk is None or size == 0:
        return []
    due = size >= trunk.boxes * SMALLEST_SHARE * facts.request.target_file_size
    if due and sizes[stray].sum() <= size:
        stem |= stray
    if not due and not is_raw and len(np.unique(layout[stem])) == 1:
        return []
    reason = Reason.NEW if is_raw else Reason.MERGED
    whole = int(facts.counted[at].sum())
    return [PartitionPart(root=root, at=at[stem], whole=whole, trunk=trunk, reason=reason, due=due)]
