"""Which files to rewrite together, from the file table alone.

A group is a partition's files; a partition is touched only if it holds files that the requested
layout did not write. Where they are few beside the clustered ones, only they are rewritten, along
the cuts that are kept with the table; else the whole partition is fitted anew.
A job is what one pass over the rows rewrites and one commit publishes: groups of like size.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_text import texts
from zadapter.base.names import join
from zadapter.base.ranks import Ints, rank
from zadapter.layout.build import MAX_LEAVES
from zadapter.layout.layout import Layout, LayoutStore, Request
from zadapter.table.file_stats import column_type, partition, total

Root = tuple[str | None, ...]

MOST_GROUPS = 256
"""Partitions in one job; each needs a root in the layout's look-up arrays."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one partition to be exchanged together."""

    root: Root | None
    """The partition's values as text; empty where the table has no partitions. None: the files have
    rows of several, since the table was partitioned in another way when they were written."""
    files: pa.Table = field(repr=False)
    cut_into: int
    """How many files to write."""

    @property
    def size(self) -> int:
        """Bytes of the files that go."""
        return total(self.files, "size")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Groups rewritten in one pass and committed at once."""

    groups: tuple[Group, ...]
    kept: Layout | None
    """The layout whose cuts are followed; None: fit one."""

    @property
    def roots(self) -> list[Root]:
        """The groups' partitions, those that are known."""
        return [group.root for group in self.groups if group.root is not None]

    @property
    def files(self) -> pa.Table:
        """The files that go."""
        return pa.concat_tables([group.files for group in self.groups])


def jobs(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    layouts: LayoutStore,
    *,
    max_group_bytes: int,
    force: bool,
) -> list[Job]:
    """Plan the work; an empty list says that nothing is to be done.

    Args:
        files: The files in question.
        request: The layout that is wanted.
        partition_columns: The table's partition columns.
        layouts: Layouts kept with the table, by id.
        max_group_bytes: Split partitions larger than this many bytes.
        force: Rewrite what is clustered already, too.
    """

    def choose(root: Root, members: pa.Table) -> tuple[Layout | None, list[Group]]:
        kept, stale = _stale(root, members, request, layouts, force=force)
        return kept, list(_split(root, stale, request, max_group_bytes))

    return _jobs(files, request, partition_columns, choose, max_group_bytes)


def every_job(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    layouts: LayoutStore,
    *,
    max_group_bytes: int,
) -> list[Job]:
    """Plan to write all files, along the cuts that are kept where they placed most of the rows.

    Args:
        files: All files of a table.
        request: The layout that is wanted.
        partition_columns: The table's partition columns.
        layouts: Layouts kept with the table, by id.
        max_group_bytes: Split partitions larger than this many bytes, unless cuts are kept.
    """

    def choose(root: Root, members: pa.Table) -> tuple[Layout | None, list[Group]]:
        kept = _followed(root, members, request, layouts)
        most = max_group_bytes if kept is None else max(1, total(members, "size"))
        return kept, list(_split(root, members, request, most))

    return _jobs(files, request, partition_columns, choose, max_group_bytes)


def _jobs(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    choose: Callable[[Root, pa.Table], tuple[Layout | None, list[Group]]],
    max_group_bytes: int,
) -> list[Job]:
    """Pack what *choose* takes of each partition: cuts to follow, None for new ones, and groups."""
    mixed = files["partition"].is_null()
    alone = _split(None, files.filter(mixed), request, max_group_bytes)
    taken: dict[Layout | None, list[Group]] = {None: []}
    for root, members in _partitions(files.filter(pc.invert(mixed)), partition_columns):
        kept, groups = choose(root, members)
        taken.setdefault(kept, []).extend(groups)
    packed = [Job(groups=(group,), kept=None) for group in alone]
    for layout, groups in taken.items():
        packed += [Job(groups=g, kept=layout) for g in _pack(groups, request, max_group_bytes)]
    return packed


def _followed(root: Root, files: pa.Table, request: Request, layouts: LayoutStore) -> Layout | None:
    clustered = _clustered(files, request)
    sizes = files["size"].to_numpy()
    if 2 * sizes[clustered].sum() < sizes.sum() or not clustered.any():
        return None
    kept = _heaviest(files, clustered, layouts)
    return kept if kept is not None and root in kept.roots and _fits(kept, files) else None


def roots_of(values: Sequence[pa.Array], rows: int) -> tuple[list[Root], Ints]:
    """Return the distinct tuples of partition values as text, and for each row its tuple's index.

    Args:
        values: One array a partition column.
        rows: Their length, for tables without partitions.
    """
    ranked = [rank(column) for column in values]
    combined = np.zeros(rows, np.int64)
    for column in ranked:
        _, combined = np.unique(combined * (rows + 1) + column.ranks, return_inverse=True)
    _, first = np.unique(combined, return_index=True)
    columns = [texts(column.value_of(column.ranks[first])) for column in ranked]
    return [tuple(column[i] for column in columns) for i in range(len(first))], combined


def find_roots(roots: Sequence[Root], values: Sequence[pa.Array], rows: int) -> Ints:
    """Return for each row the index of its partition among *roots*, -1 where it is none of them."""
    known = {root: number for number, root in enumerate(roots)}
    found, row_root = roots_of(values, rows)
    numbers = np.array([known.get(root, -1) for root in found], np.int64)
    return numbers[row_root] if rows else row_root


def most_roots(cut_into: int, request: Request) -> int:
    """Return how many partitions a layout has room for, the largest cut into so many files."""
    leaves = 1 << ((cut_into - 1).bit_length() + (request.row_groups - 1).bit_length())
    return max(1, min(MOST_GROUPS, MAX_LEAVES // leaves))


def _partitions(
    files: pa.Table, partition_columns: Sequence[str]
) -> Iterator[tuple[Root, pa.Table]]:
    if files.num_rows == 0:
        return
    values = [partition(files, name) for name in partition_columns]
    roots, root_of = roots_of([v for v in values if v is not None], files.num_rows)
    order = np.argsort(root_of, kind="stable")
    edges = np.searchsorted(root_of[order], np.arange(len(roots) + 1))
    ordered = files.take(pa.array(order))
    for root, (start, stop) in zip(roots, pairwise(edges.tolist()), strict=True):
        yield root, ordered.slice(start, stop - start)


def _stale(
    root: Root, files: pa.Table, request: Request, layouts: LayoutStore, *, force: bool
) -> tuple[Layout | None, pa.Table]:
    """Return the files to rewrite, and the layout to follow if they are to fit the others."""
    if force:
        return None, files
    clustered = _clustered(files, request)
    if clustered.all():
        return None, files.slice(0, 0)
    sizes = files["size"].to_numpy()
    if not clustered.any() or 2 * sizes[~clustered].sum() > sizes[clustered].sum():
        return None, files
    kept = _heaviest(files, clustered, layouts)
    if kept is None or root not in kept.roots or not _fits(kept, files):
        return None, files
    small = clustered & (sizes < request.target_file_size // 2)
    return kept, files.filter(pa.array(~clustered | small))


def _fits(kept: Layout, files: pa.Table) -> bool:
    """Tell whether the cuts are of the columns' types: one may have been dropped and added anew."""
    types = [column_type(level.cuts.type) for level in kept.levels]
    names = [join(kept.request.columns[level.column]) for level in kept.levels]
    stats = files.schema.field("stats").type
    found = [stats.get_field_index(name) for name in names]
    return all(i < 0 or stats.field(i).type == t for i, t in zip(found, types, strict=True))


def _clustered(files: pa.Table, request: Request) -> Mask:
    ours = pc.starts_with(files["layout"], request.id).fill_null(False)  # noqa: FBT003
    return np.asarray(ours.to_numpy(), bool)


def _heaviest(files: pa.Table, clustered: Mask, layouts: LayoutStore) -> Layout | None:
    """Return the layout that wrote most of the clustered bytes, if it is still there."""
    written = files["layout"].combine_chunks().filter(pa.array(clustered)).dictionary_encode()
    sizes = np.bincount(written.indices.to_numpy(), files["size"].to_numpy()[clustered])
    _, best = min(zip((-sizes).tolist(), written.dictionary.to_pylist(), strict=True))
    return layouts.get(best)


def _split(root: Root | None, files: pa.Table, request: Request, most: int) -> Iterator[Group]:
    """Yield groups of consecutive files of at most *most* bytes each, or of one file."""
    ends = np.cumsum(files["size"].to_numpy())
    start, done = 0, 0
    while start < files.num_rows:
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        size = int(ends[stop - 1]) - done
        yield Group(
            root=root,
            files=files.slice(start, stop - start),
            cut_into=max(1, round(size / request.target_file_size)),
        )
        start, done = stop, done + size


def _pack(groups: Sequence[Group], request: Request, most: int) -> Iterator[tuple[Group, ...]]:
    """Yield groups that fit into one job: distinct roots, bytes, and room in the look-up arrays."""
    waiting = sorted(((group.cut_into, group.size, group) for group in groups), key=lambda w: w[0])
    smallest = min((size for _, size, _ in waiting), default=0)
    while waiting:
        room = most_roots(waiting[-1][0], request)
        taken: dict[Root | None, Group] = {}
        used, passed = 0, list[tuple[int, int, Group]]()
        while waiting and len(taken) < room and (not taken or used + smallest <= most):
            if len(passed) == MOST_GROUPS:
                break  # packed well enough: every group for every job would be quadratic
            _, size, group = place = waiting.pop()
            if group.root not in taken and (not taken or used + size <= most):
                taken[group.root] = group
                used += size
            else:
                passed.append(place)
        yield tuple(taken.values())
        waiting += reversed(passed)
