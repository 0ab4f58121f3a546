"""Maintenance of a clustered table: which files to rewrite after appends, from the log alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Request
from zadapter.planning.candidates import Candidates, candidates
from zadapter.planning.file_groups import Root, sort_by_partition
from zadapter.planning.file_groups import parts as pieces
from zadapter.planning.merges import Reason, Renewal, RequiredFiles, Rewrite
from zadapter.planning.partition_parts import FileArrays, PartitionPart, cold_parts, parts_of
from zadapter.planning.reading import Mask
from zadapter.planning.tiers import Tier, Tiers
from zadapter.table import file_stats

MANY_PARTITIONS = 64
"""Number of partitions, those of most new bytes, whose effects are predicted from boxes."""
MANY_BOXES = 6
"""Number of a trunk's boxes, those with the largest runs to merge, that are predicted so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run."""

    job_bytes: int
    """Maximum bytes of the files that are rewritten together."""
    bytes: int | None = None
    """Maximum bytes of all rewritten files; None for no limit."""
    files: int | None = None
    """Maximum number of all rewritten files; None for no limit."""

    @property
    def size(self) -> int:
        """Maximum bytes of files that are rewritten together in this run."""
        return self.job_bytes if self.bytes is None else min(self.job_bytes, self.bytes)

    def hold(self, size: npt.ArrayLike, files: npt.ArrayLike) -> Mask:
        """Return whether files can be rewritten together in this run."""
        most = np.inf if self.files is None else self.files
        return np.less_equal(size, self.size) & np.less_equal(files, most)

    def allow(self, size: int, files: int) -> bool:
        """Return whether one run may rewrite this number of bytes and files."""
        within = self.bytes is None or size <= self.bytes
        return within and (self.files is None or files <= self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What to rewrite, and what is left."""

    rewrites: tuple[Rewrite, ...]
    """What to rewrite now, best first."""
    left: tuple[Rewrite, ...]
    """What pays as well, but exceeds the limits of this run."""
    declined: tuple[Rewrite, ...]
    """The best of each other partition; it does not pay yet."""
    anew: tuple[Rewrite, ...]
    """A new fit of each partition with several runs or raw files: all of its files."""
    owned: int
    """Number of files that are left to another implementation, which has clustered them."""


def maintenance(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    limits: Limits,
    *,
    renewal: Renewal | None = None,
    tiers: Tiers | None = None,
) -> Maintenance:
    """Choose the files to rewrite.

    Args:
        files: The candidate files.
        request: The requested layout.
        partition_columns: The table's partition columns.
        limits: Limits of this run.
        renewal: Clustered files that are rewritten, and how files count; None: only those with many
            deleted rows, and by all of their bytes.
        tiers: Which files are left alone or become larger, by their age; None for neither.
    """
    every, renewal = files, renewal or Renewal()
    files = every if renewal.every else file_stats.exclude_owned(every)
    due = RequiredFiles.of(files, renewal)
    facts = FileArrays.of(files, request, due.worn | due.every, renewal.count(files))
    tier = np.full(files.num_rows, int(Tier.WARM)) if tiers is None else tiers.of(files)
    mixed = np.asarray(files["partition"].is_null().to_numpy(), bool)
    several, cold = np.flatnonzero(mixed & (tier != Tier.HOT)), ~mixed & (tier == Tier.COLD)
    parts = [PartitionPart(root=None, at=several, whole=0, reason=Reason.MIXED, due=True)]
    for root, at in _partitions(facts, partition_columns, ~mixed & (tier == Tier.WARM)):
        parts += parts_of(facts, root, at, limits.job_bytes)
    found = _choice(facts, parts, due, limits)
    chosen, too_large, declined = found.chosen, found.too_large, found.declined
    if cold.any():
        warm = files.select(["partition"]).filter(pa.array(~mixed & ~cold))
        others = set(sort_by_partition(warm, partition_columns)[0])
        cold_facts = FileArrays.of(files, request_for_cold(request), due.worn, facts.counted)
        partitions = _partitions(cold_facts, partition_columns, cold)
        parts = list(cold_parts(facts, cold_facts, partitions, others, limits.job_bytes))
        more = _choice(cold_facts, parts, replace(due, every=False), limits)
        chosen, too_large = chosen + more.chosen, too_large + more.too_large
        declined = declined + more.declined
    taken, left = _within(chosen, limits)
    return Maintenance(
        rewrites=taken,
        left=(*left, *too_large),
        declined=tuple(declined),
        anew=tuple(found.anew),
        owned=every.num_rows - files.num_rows,
    )


@dataclass(frozen=True, slots=True)
class _Selection:
    """What pays in some parts, regardless of the limits of this run."""

    chosen: list[Rewrite]
    too_large: list[Rewrite]
    declined: list[Rewrite]
    anew: list[Rewrite]


def _choice(
    facts: FileArrays, parts: Sequence[PartitionPart], due: RequiredFiles, limits: Limits
) -> _Selection:
    """Choose what to rewrite in each part."""
    judged = np.array([not part.due and facts.is_clustered(part.at) for part in parts])
    found = _find_candidates(facts, [parts[number] for number in np.flatnonzero(judged).tolist()])
    best, later, others = _best(found, limits)
    rewrite_of = cache(found.rewrite)
    chosen, too_large, declined = list[Rewrite](), list[Rewrite](), list[Rewrite]()
    for part, number in zip(
        parts, np.where(judged, np.cumsum(judged) - 1, -1).tolist(), strict=True
    ):
        raw = part.at[facts.layout[part.at] < 0]
        reason = due.reason(raw)
        if number < 0:
            reason = part.reason or _reason(due, part.at)
            chosen += _split(facts, part, part.at, reason, limits)
        elif number in best:
            rewrite = rewrite_of(best[number])
            is_new = rewrite.reason is Reason.NEW
            chosen.append(replace(rewrite, reason=reason) if reason and is_new else rewrite)
        elif reason is not None or not limits.hold(facts.sizes[raw].sum(), len(raw)):
            # too many new files for one call: some of them become a run
            chosen += _split(facts, part, raw, reason or Reason.NEW, limits)
        elif number in later:
            too_large.append(rewrite_of(later[number]))
        elif number in others:
            declined.append(rewrite_of(others[number]))
    anew = [rewrite_of(number) for number in np.flatnonzero(found.is_last).tolist()]
    return _Selection(chosen, too_large, declined, anew)


def _reason(due: RequiredFiles, at: Ints) -> Reason:
    """Return why a partition without clustered files is rewritten."""
    if due.every:
        return Reason.ANEW
    if due.outdated[at].any():
        return Reason.BLOOM_FILTERS
    return Reason.WORN if due.worn[at].all() else Reason.FIRST


def _best(
    found: Candidates, limits: Limits
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return the best candidates of parts: that pay and are held, that pay, and of all.

    If the limits do not hold a new fit, what they hold is judged by itself: a share of all reads
    would be so small that no merge would ever pay.
    """
    rows, size, files, before = found.sums.T
    held = np.asarray(limits.hold(size, files))
    largest = np.full(found.part.max(initial=-1) + 1, -1)
    np.maximum.at(largest, found.part[held], np.flatnonzero(held))
    partly = np.isin(found.part, found.part[~held]) & (largest[found.part] >= 0)
    read = np.where(partly, before[largest[found.part]], found.read)
    pays = found.pays(found.read)
    return (
        found.best(held & found.pays(read), read),
        found.best(pays & (size <= limits.job_bytes), found.read),
        found.best(np.ones(len(rows), np.bool_), found.read),
    )


def _partitions(
    facts: FileArrays, partition_columns: Sequence[str], within: Mask
) -> Iterator[tuple[Root, Ints]]:
    """Yield partitions that are not a single run, and the indices of their files."""
    at = np.flatnonzero(within)
    files = facts.files.select(["partition"]).filter(pa.array(within))
    roots, order, edges = sort_by_partition(files, partition_columns)
    at = at[order]
    layout = facts.layout[at]
    lowest = np.minimum.reduceat(layout, edges[:-1])
    highest = np.maximum.reduceat(layout, edges[:-1])
    done = (lowest == highest) & (lowest >= 0)
    for number, (start, stop) in enumerate(pairwise(edges.tolist())):
        if not done[number]:
            yield roots[number], at[start:stop]


def _find_candidates(facts: FileArrays, parts: Sequence[PartitionPart]) -> Candidates:
    """Return what could be rewritten; of some of the parts, what it brings is read off boxes."""
    is_box = np.array([part.is_box for part in parts], np.bool_)
    weights = np.array(
        [
            facts.outside_largest_run(part.at) if part.is_box else facts.raw_bytes(part.at)
            for part in parts
        ]
    )
    by_boxes = list[int]()
    for some, count in ((~is_box, MANY_PARTITIONS), (is_box, MANY_BOXES)):
        numbers = np.flatnonzero(some)
        by_boxes += numbers[np.argsort(-weights[numbers], kind="stable")[:count]].tolist()
    return candidates(facts, parts, by_boxes)


def _split(
    facts: FileArrays, part: PartitionPart, at: Ints, reason: Reason, limits: Limits
) -> Iterator[Rewrite]:
    """Yield raw files in consecutive pieces that the limits hold, or of one file each."""
    for piece in pieces(facts.sizes[at], limits.size, limits.files):
        members = at[piece]
        size, rows = int(facts.sizes[members].sum()), int(facts.rows[members].sum())
        cut_into, row_groups, trunk = part.grain(facts, members)
        yield Rewrite(
            table=facts.files,
            members=members,
            root=part.root,
            reason=reason,
            cut_into=cut_into,
            row_groups=row_groups,
            ahead=(0,) * len(facts.request.columns),
            trunk=trunk,
            bytes=size,
            rows=rows,
            raw=rows,
            fresh=rows,
            cold=facts.request.cold,
            gain=None,
        )


def _within(
    chosen: Sequence[Rewrite], limits: Limits
) -> tuple[tuple[Rewrite, ...], tuple[Rewrite, ...]]:
    """Return the rewrites that fit in the limits, those of most gain per byte first, and others."""
    taken, left = list[Rewrite](), list[Rewrite]()
    size, count = 0, 0
    for each in sorted(chosen, key=lambda each: -_ratio(each)):
        files = len(each.members)
        if limits.allow(size + each.bytes, count + files):
            taken.append(each)
            size, count = size + each.bytes, count + files
        else:
            left.append(each)
    return tuple(taken), tuple(left)


def _ratio(rewrite: Rewrite) -> float:
    """Return the rows that filters need not read, per byte; raw come first, cold last."""
    if rewrite.reason is Reason.COLD:
        return 0.0
    return np.inf if rewrite.gain is None else rewrite.gain.rows / max(1, rewrite.bytes)
