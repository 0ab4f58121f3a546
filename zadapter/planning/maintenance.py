"""Maintenance of a clustered table: which files to rewrite after appends, from the log alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.ranks import Ints
from zadapter.layout.layout import Request
from zadapter.planning.file_groups import Root, by_partition, parts
from zadapter.planning.merges import Reason, Rewrite, rewrites
from zadapter.planning.parts import Facts, Part, parts_of
from zadapter.planning.reading import ByBoxes, BySizes, Mask, Members, Prediction
from zadapter.table import file_stats

MANY_PARTITIONS = 64
"""Number of partitions, those of most new bytes, whose effects are predicted from boxes."""
MANY_BOXES = 6
"""Number of a trunk's boxes, those with the largest runs to merge, that are predicted so."""
WORN = 0.3
"""Share of deleted rows above which a file is rewritten, clustered or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one run."""

    group_bytes: int
    """Maximum bytes of the files that are rewritten together."""
    bytes: int | None = None
    """Maximum bytes of all rewritten files; None: no limit."""
    files: int | None = None
    """Maximum number of all rewritten files; None: no limit."""

    @property
    def size(self) -> int:
        """Maximum bytes of files that are rewritten together in this run."""
        return self.group_bytes if self.bytes is None else min(self.group_bytes, self.bytes)

    def hold(self, size: int, files: int) -> bool:
        """Return whether files can be rewritten together in this run."""
        return size <= self.size and (self.files is None or files <= self.files)


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
    force: bool = False,
) -> Maintenance:
    """Choose the files to rewrite.

    Args:
        files: The candidate files.
        request: The requested layout.
        partition_columns: The table's partition columns.
        limits: Limits of this run.
        force: Fit new cuts to all files, also to those that another implementation has clustered.
    """
    every = files
    files = every if force else file_stats.unowned(every)
    worn = file_stats.deleted_share(files) > WORN
    facts = Facts.of(files, request, worn | force)
    mixed = np.asarray(files["partition"].is_null().to_numpy(), bool)
    several = Part(root=None, at=np.flatnonzero(mixed), whole=0)
    chosen = list(_split(facts, several, several.at, Reason.MIXED, limits))
    declined, too_large, anew = list[Rewrite](), list[Rewrite](), list[Rewrite]()
    partitions = _partitions(facts, partition_columns, ~mixed)
    judged = [part for each in partitions for part in parts_of(facts, *each, limits.group_bytes)]
    by_boxes = _largest(facts, [part for part in judged if facts.is_clustered(part.at)])
    for part in judged:
        raw = part.at[facts.layout[part.at] < 0]
        if part.due or len(raw) == len(part.at):
            reason = part.reason or _reason(worn[part.at], force=force)
            chosen += _split(facts, part, part.at, reason, limits)
            continue
        found = _found(facts, part, by_boxes=int(part.at[0]) in by_boxes)
        anew += found[-1:]
        best = _best(found, limits)
        if best is not None:
            is_worn = best.reason is Reason.NEW and worn[best.members].any()
            chosen.append(replace(best, reason=Reason.WORN) if is_worn else best)
        elif worn[part.at].any() or not limits.hold(int(facts.sizes[raw].sum()), len(raw)):
            # too many new files for one call: some of them become a run
            reason = Reason.WORN if worn[part.at].any() else Reason.NEW
            chosen += _split(facts, part, raw, reason, limits)
        elif found:
            later = [each for each in found if each.pays and each.bytes <= limits.group_bytes]
            (too_large if later else declined).append(max(later or found, key=_worth))
    taken, left = _within(chosen, limits)
    return Maintenance(
        rewrites=taken,
        left=left + tuple(too_large),
        declined=tuple(declined),
        anew=tuple(anew),
        owned=every.num_rows - files.num_rows,
    )


def _reason(worn: Mask, *, force: bool) -> Reason:
    """Return why a partition without clustered files is rewritten."""
    if force:
        return Reason.ANEW
    return Reason.WORN if worn.all() else Reason.FIRST


def _best(found: Sequence[Rewrite], limits: Limits) -> Rewrite | None:
    """Return the best rewrite that pays and that the limits hold, or None.

    If they do not hold a new fit, what they hold is judged by itself: a share of all reads would be
    so small that no merge would ever pay.
    """
    held = [each for each in found if limits.hold(each.bytes, len(each.members))]
    if held and len(held) < len(found):
        read = held[-1].gain.before if held[-1].gain else 0.0
        held = [replace(each, gain=each.gain and replace(each.gain, read=read)) for each in held]
    return max((each for each in held if each.pays), key=_worth, default=None)


def _worth(rewrite: Rewrite) -> float:
    return rewrite.worth


def _partitions(
    facts: Facts, partition_columns: Sequence[str], within: Mask
) -> Iterator[tuple[Root, Ints]]:
    """Yield partitions that are not a single run, and the indices of their files."""
    at = np.flatnonzero(within)
    files = facts.files.filter(pa.array(within))
    roots, order, edges = by_partition(files, partition_columns)
    at = at[order]
    layout = facts.layout[at]
    lowest = np.minimum.reduceat(layout, edges[:-1])
    highest = np.maximum.reduceat(layout, edges[:-1])
    done = (lowest == highest) & (lowest >= 0)
    for number, (start, stop) in enumerate(pairwise(edges.tolist())):
        if not done[number]:
            yield roots[number], at[start:stop]


def _largest(facts: Facts, parts: Sequence[Part]) -> set[int]:
    """Return the first file of each part whose effects are predicted from boxes."""
    boxes = [part for part in parts if part.is_box]
    others = [part for part in parts if not part.is_box]
    raw = [facts.sizes[part.at][facts.layout[part.at] < 0].sum() for part in others]
    new = [facts.outside_largest_run(part.at) for part in boxes]
    picked = _heaviest(others, raw, MANY_PARTITIONS) + _heaviest(boxes, new, MANY_BOXES)
    return {int(part.at[0]) for part in picked}


def _heaviest(parts: Sequence[Part], weights: Sequence[int], count: int) -> list[Part]:
    order = np.argsort(-np.array(weights, np.int64), kind="stable")[:count]
    return [parts[number] for number in order.tolist()]


def _found(facts: Facts, part: Part, *, by_boxes: bool) -> list[Rewrite]:
    """Return what could be rewritten in a part of a partition."""
    at = part.at
    if by_boxes:  # rows are drawn in the order of files: make it that of their names
        at = at[pc.sort_indices(facts.files["path"].take(pa.array(at))).to_numpy()]
    layout = facts.layout[at]
    _, run_of = np.unique(layout, return_inverse=True)
    members = Members(
        sizes=facts.sizes[at],
        rows=facts.rows[at],
        run_of=run_of - int(layout.min() < 0),
        whole=part.whole,
    )
    prediction: Prediction = BySizes(facts.request, members)
    if by_boxes:
        stats = facts.stats(at)
        if any(each is not None and each.field("min").null_count < len(at) for each in stats):
            prediction = ByBoxes(facts.request, members, stats)
    found = rewrites(facts.files, at, part.root, facts.request, members, prediction)
    if part.trunk is not None:
        return [replace(each, trunk=part.trunk.shortened(each.cut_into)) for each in found]
    return [replace(each, ahead=part.narrowed(each.ahead)) for each in found]


def _split(facts: Facts, part: Part, at: Ints, reason: Reason, limits: Limits) -> Iterator[Rewrite]:
    """Yield raw files in consecutive pieces that the limits hold, or of one file each."""
    for piece in parts(facts.sizes[at], limits.size, limits.files):
        members = at[piece]
        size, rows = int(facts.sizes[members].sum()), int(facts.rows[members].sum())
        cut_into, row_groups, trunk = part.grain(facts.request, size, rows)
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
        fits = limits.bytes is None or size + each.bytes <= limits.bytes
        if fits and (limits.files is None or count + files <= limits.files):
            taken.append(each)
            size, count = size + each.bytes, count + files
        else:
            left.append(each)
    return tuple(taken), tuple(left)


def _ratio(rewrite: Rewrite) -> float:
    """Return the rows that filters need not read, per byte; raw partitions come first."""
    return np.inf if rewrite.gain is None else rewrite.gain.rows / max(1, rewrite.bytes)
