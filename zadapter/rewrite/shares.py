"""Shares of rows that range filters read, in files and row groups as they are and as planned."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.ranks import Ints, Ranked
from zadapter.layout import assign, predict
from zadapter.layout.filters import rank_filters
from zadapter.layout.layout import Request
from zadapter.planning.effect import Effect
from zadapter.planning.file_size import find_requests
from zadapter.rewrite.fitting import PlannedJob
from zadapter.spark.footer_reader import pick_files, read_row_groups
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts
from zadapter.table.snapshot import Snapshot

FOOTERS = 16
"""Maximum number of files of a job whose footers are read for a prediction."""
ROW_GROUPS = 200_000
"""Maximum number of row groups of a job whose boxes are predicted."""

Predicted = Callable[[PlannedJob, Ints], predict.Boxes]


def share_now(request: Request, planned: Sequence[PlannedJob], files: pa.Table) -> float:
    """Return the mean share of the rows of *files* that a range filter on the sample reads."""
    if not _has_sample(planned):
        return 0.0
    ranked, boxes = _rank_sample(request, planned, files)
    return _share(request, ranked, boxes)


def files_of(planned: PlannedJob, ranks: Ints) -> predict.Boxes:
    """Return the predicted boxes of the files that *planned* will write."""
    boxes = predict.boxes_of_rows(ranks, planned.file_of, planned.layout.files)
    return _scale_rows(boxes, planned.job.files)


def row_groups_of(planned: PlannedJob, ranks: Ints) -> predict.Boxes:
    """Return the predicted boxes of the row groups that *planned* will write."""
    count = int(planned.row_groups.sum())
    group_of = assign.row_groups(
        planned.layout, planned.leaf_of, planned.file_of, planned.row_groups
    )
    return _scale_rows(predict.boxes_of_rows(ranks, group_of, count), planned.job.files)


def predict_share(
    request: Request,
    planned: Sequence[PlannedJob],
    kept: pa.Table,
    predicted: Predicted = files_of,
) -> float:
    """Return the predicted mean share of the rows that a range filter on the sample will read.

    Args:
        request: The requested layout.
        planned: The jobs.
        kept: Files that are not replaced.
        predicted: Returns what a job writes.
    """
    if not _has_sample(planned):
        return 0.0
    ranked, boxes = _rank_sample(request, planned, kept)
    ranks, parts, at = _of_rows(ranked), [boxes], 0
    for each in planned:
        rows = len(each.root_of)
        parts.append(predicted(each, ranks[at : at + rows]))
        at += rows
    return _share(request, ranked, predict.concat_boxes(parts))


def effect(backend: Backend, snapshot: Snapshot, request: Request, planned: PlannedJob) -> Effect:
    """Predict the effect of a job on filters, on the files that it replaces."""
    files = planned.job.files
    count = sum(group.cut_into for group in planned.job.groups)
    groups_before = groups_after = None
    before = share_now(request, [planned], files)
    picked = pick_files(snapshot, files, FOOTERS, request.row_groups)
    row_groups = read_row_groups(backend, snapshot, picked, request.columns)
    if row_groups is not None and count * request.row_groups <= ROW_GROUPS:
        # the picked files may overlap less or more than all files do
        within = share_now(request, [planned], row_groups)
        are_all = picked.num_rows == files.num_rows
        of_picked = before if are_all else share_now(request, [planned], picked)
        groups_before = before * (within / of_picked if of_picked else 1.0)
        groups_after = predict_share(request, [planned], files.slice(0, 0), row_groups_of)
    return Effect(
        rows=int(row_counts(files).sum()),
        files_before=files.num_rows,
        files_after=count,
        clustered=any(
            stored is None or stored.columns != request.columns
            for stored in find_requests(files, snapshot.layouts)
        ),
        share_before=before,
        share_after=predict_share(request, [planned], files.slice(0, 0)),
        row_group_share_before=groups_before,
        row_group_share_after=groups_after,
    )


def _has_sample(planned: Sequence[PlannedJob]) -> bool:
    return any(len(each.root_of) for each in planned)


def _share(request: Request, ranked: Sequence[Ranked], boxes: predict.Boxes) -> float:
    """Return the mean share that filters read: those of the request, or ranges of the columns."""
    if not request.filters:
        return predict.share_read(boxes, predict.queries(_of_rows(ranked)))
    asked = rank_filters(request.filters, request.columns, [each.distinct for each in ranked])
    return float(np.average(predict.shares_by_filter(boxes, asked), weights=asked.weight))


def _of_rows(ranked: Sequence[Ranked]) -> Ints:
    """Return the ranks of the sampled rows, shape (rows, columns)."""
    return np.stack([each.ranks for each in ranked], axis=1)


def _rank_sample(
    request: Request, planned: Sequence[PlannedJob], files: pa.Table
) -> tuple[list[Ranked], predict.Boxes]:
    parts = [each.keys for each in planned]
    sample = [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
    some = file_stats.spread(files, predict.BOXES)
    stats = [file_stats.column(some, parts) for parts in request.columns]
    ranked, boxes = predict.rank_with_stats(sample, stats, row_counts(some))
    return ranked, _scale_rows(boxes, files)


def _scale_rows(boxes: predict.Boxes, files: pa.Table) -> predict.Boxes:
    scale = row_counts(files).sum() / max(1, boxes.rows.sum())
    return predict.Boxes(boxes.low, boxes.high, np.rint(boxes.rows * scale).astype(np.int64))
