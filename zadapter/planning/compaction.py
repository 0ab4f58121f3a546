"""Compaction of a table without key columns: which small files to join, from the log alone.

Joined files keep what filters skip today: files are joined with their neighbours in the column in
which the files of the table overlap least, such as the time of arrival.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import split
from zadapter.base.ranks import Ints, rank
from zadapter.planning.file_groups import FileGroup, Job, Mask, Root, parts, sort_by_partition
from zadapter.planning.maintenance import Limits
from zadapter.planning.merges import Reason, worn
from zadapter.table import file_stats

SMALL = 0.5
"""Share of the target file size below which a file is small."""
MANY = 5
"""Number of small files that are joined even if the new file is small, too."""
MAX_FILES = 64
"""Maximum number of files that one job writes."""


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Which files to join."""

    jobs: tuple[Job, ...]
    files_left: int
    """Number of files that would be written, too, but exceed the limits of this call."""
    bytes_left: int
    """Bytes of the files that would be replaced by them."""
    owned: int
    """Number of files that are left to another implementation, which has clustered them."""


def compaction(
    files: pa.Table, target: int, partition_columns: Sequence[str], limits: Limits
) -> Compaction:
    """Choose small files to join, and files of many deleted rows to rewrite.

    Args:
        files: The candidate files, with stats of the columns that may order them.
        target: Target file size in bytes.
        partition_columns: The table's partition columns.
        limits: Limits of this call.
    """
    ours = file_stats.exclude_owned(files)
    owned = files.num_rows - ours.num_rows
    files = ours.filter(pc.is_valid(ours["partition"]))
    sizes, is_worn = files["size"].to_numpy(), worn(files)
    ordered = _order(files)
    ordered = ordered[(sizes < SMALL * target)[ordered] | is_worn[ordered]]
    roots, order, edges = sort_by_partition(files.take(pa.array(ordered)), partition_columns)
    groups, left = list[FileGroup](), list[Ints]()
    most, many = min(target, limits.size), min(MANY, max(2, limits.files or MANY))
    size = count = 0
    for root, (start, stop) in zip(roots, pairwise(edges.tolist()), strict=True):
        at, taken = ordered[order[start:stop]], list[Ints]()
        for joined in (at[part] for part in parts(sizes[at], most, limits.files)):
            if not (is_worn[joined].any() or _pays(sizes[joined], most, many)):
                continue
            more = size + int(sizes[joined].sum()), count + len(joined)
            if limits.allow(*more):
                taken.append(joined)
                size, count = more
            else:
                left.append(joined)
        groups += _groups(files, root, taken, is_worn, limits)
    return Compaction(
        jobs=tuple(_jobs(groups, limits)),
        files_left=len(left),
        bytes_left=sum(int(sizes[joined].sum()) for joined in left),
        owned=owned,
    )


def group_files(job: Job, target: int) -> list[pa.Table]:
    """Return the files that are joined to one, for each file to write."""
    return [
        group.files.slice(part.start, part.stop - part.start)
        for group in job.groups
        for part in parts(group.files["size"].to_numpy(), target)
    ]


def _pays(sizes: Ints, target: int, many: int) -> bool:
    return len(sizes) >= many or (len(sizes) > 1 and sizes.sum() >= SMALL * target)


def _order(files: pa.Table) -> Ints:
    """Return the order of the files in the column in which they overlap least."""
    best: Ints = pc.sort_indices(files["path"]).to_numpy().astype(np.int64)
    least = float(files.num_rows)
    for field in files["stats"].type:
        bounds = file_stats.column(files, split(field.name))
        if (
            not len(best)
            or bounds is None
            or bounds.field("min").null_count
            or bounds.field("max").null_count
        ):
            continue
        ranks = rank(pa.concat_arrays([bounds.field("min"), bounds.field("max")])).ranks
        low, high = ranks[: files.num_rows], ranks[files.num_rows :]
        # the files that overlap one are those that begin before its end, less those that end before
        depth = np.searchsorted(np.sort(low), high, "right") - np.searchsorted(np.sort(high), low)
        if depth.mean() < least:
            best, least = np.lexsort((high, low)).astype(np.int64), float(depth.mean())
    return best


def _groups(
    files: pa.Table, root: Root, joined: Sequence[Ints], is_worn: Mask, limits: Limits
) -> Iterator[FileGroup]:
    """Yield groups of consecutive files to write."""
    sizes = files["size"].to_numpy()
    written = np.array([sizes[each].sum() for each in joined], np.int64)
    for part in parts(written, limits.job_bytes, MAX_FILES):
        members = np.concatenate(joined[part])
        yield FileGroup(
            root=root,
            files=files.take(pa.array(members)),
            cut_into=part.stop - part.start,
            row_groups=1,
            reason=(Reason.WORN if is_worn[members].any() else Reason.SMALL).value,
        )


def _jobs(groups: Sequence[FileGroup], limits: Limits) -> Iterator[Job]:
    """Yield jobs of groups of different partitions, of a limited number of files to write."""
    taken: dict[Root | None, FileGroup] = {}
    files = size = 0
    for group in groups:
        fits = files + group.cut_into <= MAX_FILES and size + group.size <= limits.job_bytes
        if taken and (not fits or group.root in taken):
            yield Job(groups=tuple(taken.values()), kept=None)
            taken, files, size = {}, 0, 0
        taken[group.root] = group
        files, size = files + group.cut_into, size + group.size
    if taken:
        yield Job(groups=tuple(taken.values()), kept=None)
