"""Groups of files that are rewritten together, and jobs of groups, from the file table alone.

A file group holds files of one partition. ``maintenance`` chooses the groups of a table that stays;
``every_job`` takes all files of a table that moves. A job holds groups of similar size, for one
pass over the rows and one commit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import texts
from zadapter.base.names import join
from zadapter.base.ranks import Ints, rank
from zadapter.layout.build import MAX_LEAVES
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Layout, LayoutStore, Request
from zadapter.layout.trunk import Trunk
from zadapter.table.file_stats import column_type, partition, total

Root = tuple[str | None, ...]

MAX_GROUPS = 256
"""Maximum partitions in one job; each needs a root in the layout's look-up arrays."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileGroup:
    """Files of one partition that are replaced together."""

    root: Root | None
    """Partition values as text; empty for an unpartitioned table. None: the files have rows of
    several partitions, since they were written under another partition spec."""
    files: pa.Table = field(repr=False)
    cut_into: int
    """Number of files to write."""
    row_groups: int
    """Number of row groups of each of them."""
    ahead: tuple[int, ...] = ()
    """Number of levels by which the rows are narrower than their partition in each key column."""
    trunk: Trunk | None = None
    """Levels that the layout begins with, or that it shares with the other groups of the partition
    if they are still to be fitted."""
    reason: str = ""
    """Why the files are rewritten."""
    cold: bool = False
    """Whether the files are cold, so that larger ones replace them."""

    @property
    def size(self) -> int:
        """Bytes of the files to be replaced."""
        return total(self.files, "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Groups that are rewritten in one pass and committed together."""

    groups: tuple[FileGroup, ...]
    kept: Layout | None
    """The stored layout whose cuts are reused; None: fit a new layout."""

    @property
    def roots(self) -> list[Root]:
        """Known partitions of the groups."""
        return [group.root for group in self.groups if group.root is not None]

    @property
    def cold(self) -> bool:
        """Whether the files are cold."""
        return self.groups[0].cold

    @property
    def files(self) -> pa.Table:
        """The files to be replaced."""
        return pa.concat_tables([group.files for group in self.groups])


def reasons(groups: Iterable[FileGroup]) -> dict[str, int]:
    """Return the number of files to be replaced, by the reason why."""
    found = Counter[str]()
    for group in groups:
        found[group.reason] += group.files.num_rows
    return dict(found)


def jobs(groups: Sequence[FileGroup], request: Request, *, max_job_bytes: int) -> list[Job]:
    """Pack groups that get new cuts into jobs, in the order of their first groups.

    Groups of several partitions, and those with a trunk, are alone; groups with different *ahead*
    do not share a layout, nor do cold and other files. Groups of different reasons do not share a
    job, since some jobs are run only if they pay.

    Args:
        groups: The groups, most urgent first.
        request: The requested layout.
        max_job_bytes: Maximum bytes of a job with more than one group.
    """
    order = {id(group): number for number, group in enumerate(groups)}
    alone = [group for group in groups if group.root is None or group.trunk is not None]
    packed = [Job(groups=(group,), kept=None) for group in alone]
    alike: dict[tuple[bool, tuple[int, ...], str], list[FileGroup]] = {}
    for group in groups:
        if group.root is not None and group.trunk is None:
            alike.setdefault((group.cold, group.ahead, group.reason), []).append(group)
    for (cold, _, _), together in alike.items():
        parts = _pack(together, request_for_cold(request) if cold else request, max_job_bytes)
        packed += [Job(groups=part, kept=None) for part in parts]
    return sorted(packed, key=lambda job: min(order[id(group)] for group in job.groups))


def every_job(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    layouts: LayoutStore,
    *,
    max_job_bytes: int,
) -> list[Job]:
    """Plan jobs for all files; partitions that are mostly clustered reuse their stored cuts.

    Args:
        files: All files of a table.
        request: The requested layout.
        partition_columns: The table's partition columns.
        layouts: Layouts stored with the table, by id.
        max_job_bytes: Split partitions larger than this many bytes, unless cuts are reused.
    """
    mixed = files["partition"].is_null()
    alone = _split(None, files.filter(mixed), request, max_job_bytes)
    taken: dict[Layout | None, list[FileGroup]] = {None: []}
    for root, members in _partitions(files.filter(pc.invert(mixed)), partition_columns):
        kept = _choose_layout(root, members, request, layouts)
        max_bytes = max_job_bytes if kept is None else max(1, total(members, "size"))
        taken.setdefault(kept, []).extend(_split(root, members, request, max_bytes))
    packed = [Job(groups=(group,), kept=None) for group in alone]
    for layout, groups in taken.items():
        packed += [Job(groups=g, kept=layout) for g in _pack(groups, request, max_job_bytes)]
    return packed


def _choose_layout(
    root: Root, files: pa.Table, request: Request, layouts: LayoutStore
) -> Layout | None:
    clustered = _mask_clustered(files, request)
    sizes = files["size"].to_numpy()
    if 2 * sizes[clustered].sum() < sizes.sum() or not clustered.any():
        return None
    kept = _heaviest(files, clustered, layouts)
    return kept if kept is not None and root in kept.roots and _fits(kept, files) else None


def roots_of(values: Sequence[pa.Array], rows: int) -> tuple[list[Root], Ints]:
    """Return the distinct tuples of partition values as text, and the index of each row's tuple.

    Args:
        values: One array per partition column.
        rows: Number of rows, for tables without partitions.
    """
    ranked = [rank(column) for column in values]
    combined = np.zeros(rows, np.int64)
    for column in ranked:
        _, combined = np.unique(combined * (rows + 1) + column.ranks, return_inverse=True)
    _, first = np.unique(combined, return_index=True)
    columns = [texts(column.value_of(column.ranks[first])) for column in ranked]
    return [tuple(column[i] for column in columns) for i in range(len(first))], combined


def find_roots(roots: Sequence[Root], values: Sequence[pa.Array], rows: int) -> Ints:
    """Return the index of each row's partition among *roots*, or -1 if it is not among them."""
    index_of = {root: number for number, root in enumerate(roots)}
    distinct, row_root = roots_of(values, rows)
    numbers = np.array([index_of.get(root, -1) for root in distinct], np.int64)
    return numbers[row_root] if rows else row_root


def root_limit(cut_into: int, request: Request) -> int:
    """Return how many partitions fit in a layout if the largest is cut into *cut_into* files."""
    leaves = 1 << ((cut_into - 1).bit_length() + (request.row_groups - 1).bit_length())
    return max(1, min(MAX_GROUPS, MAX_LEAVES // leaves))


def sort_by_partition(
    files: pa.Table, partition_columns: Sequence[str]
) -> tuple[list[Root], Ints, Ints]:
    """Order files by partition.

    Returns:
        The partitions, the indices of the files ordered by them, and the edges of each partition
        among these: one more than there are partitions.
    """
    values = [partition(files, name) for name in partition_columns]
    roots, root_of = roots_of([v for v in values if v is not None], files.num_rows)
    order = np.argsort(root_of, kind="stable")
    return roots, order, np.searchsorted(root_of[order], np.arange(len(roots) + 1))


def parts(sizes: Ints, max_bytes: int, max_files: int | None = None) -> Iterator[slice]:
    """Cut files into consecutive parts, each within both limits or of one file.

    Args:
        sizes: Bytes of each file.
        max_bytes: Maximum bytes of a part.
        max_files: Maximum files of a part; None for no limit.
    """
    ends = np.cumsum(sizes)
    most = len(sizes) if max_files is None else max_files
    start, done = 0, 0
    while start < len(sizes):
        within = int(np.searchsorted(ends, done + max_bytes, side="right"))
        stop = max(start + 1, min(within, start + most))
        yield slice(start, stop)
        start, done = stop, int(ends[stop - 1])


def _partitions(
    files: pa.Table, partition_columns: Sequence[str]
) -> Iterator[tuple[Root, pa.Table]]:
    roots, order, edges = sort_by_partition(files, partition_columns)
    ordered = files.take(pa.array(order))
    for root, (start, stop) in zip(roots, pairwise(edges.tolist()), strict=True):
        yield root, ordered.slice(start, stop - start)


def _fits(kept: Layout, files: pa.Table) -> bool:
    """Return whether cuts have the columns' types: a column may have been dropped and re-added."""
    levels = [each for level in kept.levels for each in level.by_column]
    types = [column_type(level.cuts.type) for level in levels]
    names = [join(kept.request.columns[level.column]) for level in levels]
    stats = files.schema.field("stats").type
    positions = [stats.get_field_index(name) for name in names]
    return all(i < 0 or stats.field(i).type == t for i, t in zip(positions, types, strict=True))


def _mask_clustered(files: pa.Table, request: Request) -> Mask:
    clustered = pc.starts_with(files["layout"], request.id).fill_null(False)  # noqa: FBT003
    return np.asarray(clustered.to_numpy(), bool)


def _heaviest(files: pa.Table, clustered: Mask, layouts: LayoutStore) -> Layout | None:
    """Return the layout that wrote most of the clustered bytes, if it is still stored."""
    written = files["layout"].combine_chunks().filter(pa.array(clustered)).dictionary_encode()
    sizes = np.bincount(written.indices.to_numpy(), files["size"].to_numpy()[clustered])
    _, best = min(zip((-sizes).tolist(), written.dictionary.to_pylist(), strict=True))
    return layouts.get(best)


def _split(
    root: Root | None, files: pa.Table, request: Request, max_bytes: int
) -> Iterator[FileGroup]:
    """Yield groups of consecutive files, of at most *max_bytes* bytes or of one file each."""
    for part in parts(files["size"].to_numpy(), max_bytes):
        members = files.slice(part.start, part.stop - part.start)
        yield FileGroup(
            root=root,
            files=members,
            cut_into=max(1, round(total(members, "size") / request.target_file_size)),
            row_groups=request.row_groups,
        )


def _pack(
    groups: Sequence[FileGroup], request: Request, max_bytes: int
) -> Iterator[tuple[FileGroup, ...]]:
    """Yield the groups of each job: distinct roots, limited bytes, room in the look-up arrays."""
    waiting = sorted(((group.cut_into, group.size, group) for group in groups), key=lambda w: w[0])
    smallest = min((size for _, size, _ in waiting), default=0)
    while waiting:
        room = root_limit(waiting[-1][0], request)
        taken: dict[Root | None, FileGroup] = {}
        used, passed = 0, list[tuple[int, int, FileGroup]]()
        while waiting and len(taken) < room and (not taken or used + smallest <= max_bytes):
            if len(passed) == MAX_GROUPS:
                break  # good enough: to try every group for every job would be quadratic
            _, size, group = entry = waiting.pop()
            if group.root not in taken and (not taken or used + size <= max_bytes):
                taken[group.root] = group
                used += size
            else:
                passed.append(entry)
        yield tuple(taken.values())
        waiting += reversed(passed)
