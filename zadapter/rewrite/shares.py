"""Shares of rows that range filters read, in files and row groups as they are and as planned."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.ranks import Ints, rank
from zadapter.layout import assign, predict
from zadapter.layout.layout import Request
from zadapter.layout.predict import RankedSample
from zadapter.planning import table_sample
from zadapter.planning.effect import Effect
from zadapter.planning.file_size import find_requests
from zadapter.planning.table_sample import Placed, TableSample
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
Sample = RankedSample | TableSample
"""Sampled rows of the replaced files; filters are drawn from these, or from the whole table."""


def rank_sample(planned: Sequence[PlannedJob]) -> RankedSample:
    """Return the sampled rows of several jobs together, in common ranks."""
    if not planned:
        return RankedSample((), ())
    sample = planned[0].sample
    if len(planned) == 1:
        return sample
    columns = zip(*(each.keys for each in planned), strict=True)
    return replace(sample, ranked=tuple(rank(pa.concat_arrays(list(part))) for part in columns))


def sample_table(planned: Sequence[PlannedJob], others: pa.Table) -> Sample:
    """Return the sampled rows of several jobs, and filters on the whole table.

    Args:
        planned: The jobs.
        others: Files that are not replaced.
    """
    sampled = rank_sample(planned)
    if sampled.filters or not len(sampled) or not others.num_rows:
        return sampled
    rows = sum(int(row_counts(each.job.files).sum()) for each in planned)
    return TableSample(sampled, rows, others)


def share_now(sample: Sample, files: pa.Table) -> float:
    """Return the mean share of the rows of *files* that a range filter reads."""
    if not len(sample):
        return 0.0
    placed, boxes = _place(sample, files)
    return placed.share_read(boxes)


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
    sample: Sample,
    planned: Sequence[PlannedJob],
    kept: pa.Table,
    predicted: Predicted = files_of,
) -> float:
    """Return the predicted mean share of the rows that a range filter will read.

    Args:
        sample: The sampled rows of the jobs.
        planned: The jobs.
        kept: Files that are not replaced.
        predicted: Returns what a job writes.
    """
    if not len(sample):
        return 0.0
    placed, boxes = _place(sample, kept)
    parts, at = [boxes], 0
    for each in planned:
        rows = len(each.root_of)
        parts.append(predicted(each, placed.ranks[at : at + rows]))
        at += rows
    return placed.share_read(predict.concat_boxes(parts))


def effect(backend: Backend, snapshot: Snapshot, request: Request, planned: PlannedJob) -> Effect:
    """Predict the effect of a job on filters, on the files that it replaces."""
    files = planned.job.files
    none = files.slice(0, 0)
    count = sum(group.cut_into for group in planned.job.groups)
    groups_before = groups_after = None
    before = share_now(planned.sample, files)
    picked = pick_files(snapshot, files, FOOTERS, request.row_groups)
    row_groups = read_row_groups(backend, snapshot, picked, request.columns)
    if row_groups is not None and count * request.row_groups <= ROW_GROUPS:
        # the picked files may overlap less or more than all files do
        within = share_now(planned.sample, row_groups)
        are_all = picked.num_rows == files.num_rows
        of_picked = before if are_all else share_now(planned.sample, picked)
        groups_before = before * (within / of_picked if of_picked else 1.0)
        groups_after = predict_share(planned.sample, [planned], none, row_groups_of)
    return Effect(
        rows=int(row_counts(files).sum()),
        files_before=files.num_rows,
        files_after=count,
        clustered=any(
            stored is None or stored.columns != request.columns
            for stored in find_requests(files, snapshot.layouts)
        ),
        share_before=before,
        share_after=predict_share(planned.sample, [planned], none),
        row_group_share_before=groups_before,
        row_group_share_after=groups_after,
    )


def _place(sample: Sample, files: pa.Table) -> tuple[RankedSample | Placed, predict.Boxes]:
    """Return the boxes of files, or of some of many, and the sample in the same ranks."""
    if isinstance(sample, TableSample):
        placed, boxes = sample.place(file_stats.spread(files, table_sample.FILES))
        return placed, _scale_rows(boxes, files)
    some = file_stats.spread(files, predict.BOXES)
    stats = [file_stats.column(some, parts) for parts in sample.columns]
    sample = sample.extend(stats)
    boxes = predict.boxes_of_stats(stats, row_counts(some), sample.ranked)
    return sample, _scale_rows(boxes, files)


def _scale_rows(boxes: predict.Boxes, files: pa.Table) -> predict.Boxes:
    scale = row_counts(files).sum() / max(1, boxes.rows.sum())
    return predict.Boxes(boxes.low, boxes.high, np.rint(boxes.rows * scale).astype(np.int64))
