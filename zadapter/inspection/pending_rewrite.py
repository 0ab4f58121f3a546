"""Whether a rewrite is due, by the rule of the maintenance planner, and what it would bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.layout.box_rows import A_CELL, Cells, draw_positions, predict_cells, rows_of_files
from zadapter.layout.layout import Request
from zadapter.planning.effect import Effect, compute_gain
from zadapter.planning.file_groups import jobs, reasons
from zadapter.planning.maintenance import Limits, Maintenance, maintenance
from zadapter.planning.merges import Reason, Renewal, Rewrite, groups_of
from zadapter.planning.reading import DRAWN
from zadapter.report.plan import Plan
from zadapter.table.overlap.extents import Space, part

PREDICTED = 4
"""Number of rewrites, those of most bytes, whose effect is predicted; others are like them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRewrite:
    """What ``optimize`` would rewrite now, and what filters would read afterwards."""

    due: bool
    """Whether a rewrite is due."""
    jobs: int
    files: int
    """Number of files to be replaced."""
    bytes: int
    """Their bytes."""
    files_written: int
    reasons: Mapping[str, int]
    """Number of files to be replaced, by the reason why."""
    share_before: float
    """Mean share of the table's rows, from 0 to 1, in files that a range filter reads now."""
    share_after: float
    """The predicted share after the rewrite."""
    gain: float
    """Share of the data scanned by range filters that the rewrite saves, from 0 to 1."""
    planned: bool
    """Whether :func:`zadapter.plan` predicted the effect. Otherwise it is predicted from the bounds
    of files alone, and ``plan`` may judge a first rewrite differently."""
    rows_waiting: int
    """Number of new rows that are not worth a rewrite yet."""


def from_plan(plan: Plan) -> PendingRewrite:
    """Return what a plan would rewrite."""
    return PendingRewrite(
        due=not plan.nothing_to_do,
        jobs=plan.jobs,
        files=plan.files_rewritten,
        bytes=plan.bytes_rewritten,
        files_written=plan.files_written,
        reasons=plan.reasons,
        share_before=plan.share_before,
        share_after=plan.share_before if plan.nothing_to_do else plan.share_after,
        gain=plan.gain,
        planned=True,
        rows_waiting=plan.rows_waiting,
    )


def find_pending(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    limits: Limits,
    space: Space,
    renewal: Renewal,
) -> PendingRewrite:
    """Return what would be rewritten.

    Args:
        files: The files, with stats of the key columns.
        request: The layout that the table has, or is to get.
        partition_columns: The table's partition columns.
        limits: Limits of one run of ``optimize``.
        space: The files' boxes in the key columns.
        renewal: Clustered files that are rewritten, and how files count.
    """
    found = maintenance(files, request, partition_columns, limits, renewal=renewal)
    before = space.share_now
    first = [each for each in found.rewrites if each.reason is Reason.FIRST]
    chosen = list(found.rewrites)
    after = _after(request, space, chosen, before)
    alone = after if len(first) == len(chosen) else _after(request, space, first, before)
    if first and not first_pays(request, first, (before, alone)):
        chosen = [each for each in chosen if each.reason is not Reason.FIRST]
        after = _after(request, space, chosen, before)
    groups = groups_of(chosen)
    return PendingRewrite(
        due=bool(chosen),
        jobs=len(jobs(groups, request, max_job_bytes=limits.job_bytes)),
        files=sum(len(each.members) for each in chosen),
        bytes=sum(each.bytes for each in chosen),
        files_written=sum(each.cut_into for each in chosen),
        reasons=reasons(groups),
        share_before=before,
        share_after=after,
        gain=compute_gain((), before, after, 0),
        planned=False,
        rows_waiting=_waiting(found),
    )


def _waiting(found: Maintenance) -> int:
    return sum(rewrite.raw for rewrite in found.declined)


def first_pays(
    request: Request,
    first: Sequence[Rewrite],
    by_file: tuple[float, float],
    by_row_group: tuple[float, float] | None = None,
) -> bool:
    """Return whether the first rewrite of files pays, judged by the bounds of files.

    Args:
        request: The layout that they get.
        first: The rewrites.
        by_file: Mean share of rows in files that a filter reads before and after.
        by_row_group: The same in row groups; None: it is not predicted.
    """
    if request.bloom_filters:
        return True  # they are for other filters than those that are predicted
    layouts = [each.table["layout"].take(pa.array(each.members)) for each in first]
    groups = by_row_group or (None, None)
    return Effect(
        rows=sum(each.rows for each in first),
        files_before=sum(len(each.members) for each in first),
        files_after=sum(each.cut_into for each in first),
        clustered=any(each.null_count < len(each) for each in layouts),
        share_before=by_file[0],
        share_after=by_file[1],
        row_group_share_before=groups[0],
        row_group_share_after=groups[1],
    ).pays


def _after(request: Request, space: Space, chosen: Sequence[Rewrite], before: float) -> float:
    """Return the mean share of rows that filters read if *chosen* are rewritten."""
    if not chosen:
        return before
    rows, total = space.boxes.rows, max(1, int(space.boxes.rows.sum()))
    largest = sorted(chosen, key=lambda each: -each.bytes)[:PREDICTED]
    read = sum(float(rows_of_files(space.ranges, request, space.rows_at, cells).sum())
               for cells in (cells_after(request, space, each) for each in largest))  # fmt: skip
    replaced = np.concatenate([each.members for each in chosen])
    predicted = sum(int(rows[each.members].sum()) for each in largest)
    read *= int(rows[replaced].sum()) / max(1, predicted)
    stays = np.ones(len(rows), np.bool_)
    stays[replaced] = False
    kept = np.flatnonzero(stays)
    read += space.share_of(kept) * int(rows[kept].sum()) if len(kept) else 0.0
    return min(1.0, read / total)


def cells_after(request: Request, space: Space, rewrite: Rewrite) -> Cells:
    """Return the boxes of the files that a rewrite writes."""
    boxes, members = space.boxes, rewrite.members
    replaced = part(boxes, members)
    inside: Ints = draw_positions(
        replaced.low, replaced.high, replaced.rows, int(np.clip(A_CELL * rewrite.cut_into, *DRAWN))
    )
    return predict_cells(
        request, inside, rewrite.ahead, rewrite.rows, rewrite.cut_into, rewrite.row_groups
    )
