"""Sampling of jobs, and fitting of their layouts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import uuid4

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import NameParts, join
from zadapter.base.ranks import Ints, rank
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.cold import request_for_cold
from zadapter.layout.layout import Layout, Request
from zadapter.layout.predict import RankedSample
from zadapter.layout.trunk import Trunk, fit_below
from zadapter.planning.file_groups import Job, Root, find_roots, root_limit, roots_of
from zadapter.planning.reading import filter_weights
from zadapter.spark.sample import ROWS_A_FILE, SHARED_ROWS, files_to_read, sample, sample_size
from zadapter.table.file_stats import row_counts
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job with its layout and its sampled rows."""

    job: Job
    layout: Layout
    keys: tuple[pa.Array, ...] = field(repr=False)
    """Sampled values, one array per key column."""
    sample: RankedSample = field(repr=False)
    """The same values in ranks."""
    root_of: Ints = field(repr=False)
    """Root in the layout of each sampled row."""

    @cached_property
    def leaf_of(self) -> Ints:
        """Leaf of each sampled row."""
        return assign.leaves(self.layout, self.sample.ranked, self.root_of)

    @property
    def row_groups(self) -> Ints:
        """Number of row groups of each file."""
        groups = self.job.groups
        counts = np.repeat([g.row_groups for g in groups], [g.cut_into for g in groups])
        if len(counts) == self.layout.files:
            return counts
        # files of several partitions have one group, and stored cuts have files of their own
        return np.full(self.layout.files, groups[0].row_groups)

    @cached_property
    def file_of(self) -> Ints:
        """File of each sampled row."""
        return assign.files(self.layout, self.leaf_of, np.arange(len(self.leaf_of)))


def fit_jobs(
    backend: Backend, snapshot: Snapshot, request: Request, jobs_to_fit: Sequence[Job]
) -> tuple[PlannedJob, ...]:
    """Sample the jobs and fit their layouts.

    Only one sample is in memory at a time. Of many jobs, some of the sampled rows are kept, which
    are enough for predictions.
    """
    trunks = _trunks(backend, snapshot, request, jobs_to_fit)
    partition: list[NameParts] = [(name,) for name in snapshot.partition]
    step = -(-ROWS_A_FILE * sum(map(_file_count, jobs_to_fit)) // SHARED_ROWS)
    planned = list[PlannedJob]()
    for batch in _batches(jobs_to_fit):
        drawn = _draw_sample(backend, snapshot, request, batch, sum(map(_file_count, batch)))
        for job in batch:
            asked = request_for_cold(request) if job.cold else request
            if not job.roots:
                planned.append(_fit_mixed(job, asked, drawn))
                continue
            trunk = trunks.get((job.roots[0], job.cold), job.groups[0].trunk)
            planned.append(_thin_sample(_fit(job, asked, drawn, partition, trunk), step))
    return tuple(planned)


def _file_count(job: Job) -> int:
    return sum(group.cut_into for group in job.groups)


def _trunks(
    backend: Backend, snapshot: Snapshot, request: Request, jobs_to_fit: Sequence[Job]
) -> dict[tuple[Root, bool], Trunk]:
    """Fit the trunks of partitions that have none yet, each to a sample of all of its jobs.

    Cold files of a partition have a trunk of their own.
    """
    parts: dict[tuple[Root, bool], list[Job]] = {}
    for job in jobs_to_fit:
        trunk = job.groups[0].trunk
        if trunk is not None and not trunk.levels:
            parts.setdefault((job.roots[0], job.cold), []).append(job)
    trunks: dict[tuple[Root, bool], Trunk] = {}
    for key, some in parts.items():
        trunk = some[0].groups[0].trunk or Trunk(1)
        drawn = _draw_sample(backend, snapshot, request, some, trunk.boxes)
        keys = [drawn[join(parts)].combine_chunks() for parts in request.columns]
        trunks[key] = trunk.fit(request, keys)
    return trunks


def _batches(jobs_to_fit: Sequence[Job]) -> Iterator[list[Job]]:
    """Yield the jobs of each sample.

    Jobs share a sample while it has enough rows for each file to write. A sampled row belongs to
    the job of its partition. Jobs of one partition, and jobs whose files have rows of several
    partitions, therefore have samples of their own.
    """
    batch, files, roots = list[Job](), 0, set[Root]()
    for job in jobs_to_fit:
        here, more = set(job.roots), _file_count(job)
        alone = not here or not roots or bool(here & roots)
        if batch and (alone or ROWS_A_FILE * (files + more) > SHARED_ROWS):
            yield batch
            batch, files, roots = [], 0, set()
        batch.append(job)
        files += more
        roots |= here
    if batch:
        yield batch


def _draw_sample(
    backend: Backend, snapshot: Snapshot, request: Request, some: Sequence[Job], cut_into: int
) -> pa.Table:
    """Sample the rows of some jobs, to cut them into a number of parts.

    Returns:
        The key columns, then the partition columns.
    """
    read = pa.concat_tables(
        [files_to_read(group.files, request.columns) for job in some for group in job.groups]
    )
    fraction = sample_size(cut_into) / max(1, int(row_counts(read).sum()))
    partition: list[NameParts] = [(name,) for name in snapshot.partition]
    rows = backend.read(snapshot, read)
    return sample(rows, [*request.columns, *partition], min(1.0, fraction))


def _fit_mixed(job: Job, request: Request, drawn: pa.Table) -> PlannedJob:
    """Fit a layout for the partitions in the sample, or for the largest ones if there are too many.

    Rows of other partitions go to the files of the first one; the writer separates them.
    """
    (group,) = job.groups
    keys = tuple(drawn.column(i).combine_chunks() for i in range(len(request.columns)))
    values = [c.combine_chunks() for c in drawn.columns[len(request.columns) :]]
    sampled = _rank(request, keys)
    roots, root_of = roots_of(values, drawn.num_rows)
    rows = np.bincount(root_of, minlength=len(roots))
    share = np.maximum(1, np.rint(rows * group.cut_into / max(1, drawn.num_rows))).astype(np.int64)
    max_roots = root_limit(int(share.max(initial=1)), request)
    largest = np.sort(np.argsort(-rows, kind="stable")[:max_roots])
    layout_root = np.zeros(len(roots), np.int64)
    layout_root[largest] = np.arange(len(largest))
    return PlannedJob(
        job=job,
        layout=fit(
            request,
            sampled.ranked,
            [roots[i] for i in largest] or [tuple(None for _ in values)],
            layout_root[root_of],
            share[largest].tolist() or [1],
        ),
        keys=keys,
        sample=sampled,
        root_of=layout_root[root_of],
    )


def _fit(
    job: Job, request: Request, drawn: pa.Table, partition: Sequence[NameParts], trunk: Trunk | None
) -> PlannedJob:
    values = [drawn[join(parts)].combine_chunks() for parts in partition]
    roots = job.roots if job.kept is None else list(job.kept.roots)
    root_of = find_roots(job.roots, values, drawn.num_rows)
    in_job = drawn.filter(pa.array(root_of >= 0))
    keys = tuple(in_job[join(parts)].combine_chunks() for parts in request.columns)
    sampled = _rank(request, keys)
    among = find_roots(
        roots, [in_job[join(p)].combine_chunks() for p in partition], in_job.num_rows
    )
    files = [group.cut_into for group in job.groups]
    if job.kept is not None:
        file_counts = dict(zip(job.roots, files, strict=True))
        layout = job.kept.regrain([file_counts.get(root, 0) for root in roots])
        return PlannedJob(job=job, layout=layout, keys=keys, sample=sampled, root_of=among)
    if trunk is None:
        layout = fit(request, sampled.ranked, roots, among, files, job.groups[0].ahead)
    else:
        layout = fit_below(trunk, request, sampled.ranked, roots[0], files[0])
        (group,) = job.groups  # there may be more boxes than files of the target size
        parts = max(group.cut_into, trunk.boxes)
        finer = max(1, round(group.row_groups * group.cut_into / parts))
        group = replace(group, cut_into=layout.files, row_groups=finer)
        job = replace(job, groups=(group,))
    layout = replace(layout, run=uuid4().hex)
    return PlannedJob(job=job, layout=layout, keys=keys, sample=sampled, root_of=among)


def _rank(request: Request, keys: Sequence[pa.Array]) -> RankedSample:
    ranked = tuple(map(rank, keys))
    return RankedSample(request.columns, ranked, request.filters, filter_weights(request))


def _thin_sample(planned: PlannedJob, step: int) -> PlannedJob:
    """Keep every *step*-th sampled row."""
    if step <= 1:
        return planned
    keys = tuple(column.take(pa.array(np.arange(0, len(column), step))) for column in planned.keys)
    sampled = replace(planned.sample, ranked=tuple(map(rank, keys)))
    return replace(planned, keys=keys, sample=sampled, root_of=planned.root_of[::step])
