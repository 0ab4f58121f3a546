"""Sampling of jobs, and fitting of their layouts."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import uuid4

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import Parts, join
from zadapter.base.ranks import Ints
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Layout, Request
from zadapter.planning.file_groups import Job, find_roots, root_limit, roots_of
from zadapter.spark.sample import files_to_read, sample, sample_size
from zadapter.table.file_stats import row_counts
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """A job with its layout and its sampled rows."""

    job: Job
    layout: Layout
    keys: tuple[pa.Array, ...] = field(repr=False)
    """Sampled values, one array per key column."""
    root_of: Ints = field(repr=False)
    """Root in the layout of each sampled row."""

    @cached_property
    def leaf_of(self) -> Ints:
        """Leaf of each sampled row."""
        return assign.leaves(self.layout, self.keys, self.root_of)

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


def fitted(
    backend: Backend, snapshot: Snapshot, request: Request, jobs_to_fit: Sequence[Job]
) -> tuple[PlannedJob, ...]:
    """Sample the jobs and fit their layouts.

    All jobs share one sample, except jobs whose files have rows of several partitions: each of
    these is sampled by itself.
    """
    mixed, plain = (
        [job for job in jobs_to_fit if not job.roots],
        [job for job in jobs_to_fit if job.roots],
    )
    planned = [_fit_mixed(job, request, _drawn(backend, snapshot, request, [job])) for job in mixed]
    if plain:
        drawn = _drawn(backend, snapshot, request, plain)
        partition: list[Parts] = [(name,) for name in snapshot.partition]
        planned += [_fit(job, request, drawn, partition) for job in plain]
    return tuple(planned)


def _drawn(
    backend: Backend, snapshot: Snapshot, request: Request, jobs_to_fit: Sequence[Job]
) -> pa.Table:
    """Sample the rows of *jobs_to_fit*: key columns, then partition columns."""
    read = pa.concat_tables(
        [files_to_read(group.files, request.columns) for job in jobs_to_fit for group in job.groups]
    )
    cut_into = sum(group.cut_into for job in jobs_to_fit for group in job.groups)
    fraction = sample_size(cut_into) / max(1, int(row_counts(read).sum()))
    partition: list[Parts] = [(name,) for name in snapshot.partition]
    rows = backend.read(snapshot, read)
    return sample(rows, [*request.columns, *partition], min(1.0, fraction))


def _fit_mixed(job: Job, request: Request, drawn: pa.Table) -> PlannedJob:
    """Fit a layout for the partitions in the sample, or for the largest ones if there are too many.

    Rows of other partitions go to the files of the first one; the writer separates them.
    """
    (group,) = job.groups
    keys = tuple(drawn.column(i).combine_chunks() for i in range(len(request.columns)))
    values = [c.combine_chunks() for c in drawn.columns[len(request.columns) :]]
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
            keys,
            [roots[i] for i in largest] or [tuple(None for _ in values)],
            layout_root[root_of],
            share[largest].tolist() or [1],
        ),
        keys=keys,
        root_of=layout_root[root_of],
    )


def _fit(job: Job, request: Request, drawn: pa.Table, partition: Sequence[Parts]) -> PlannedJob:
    values = [drawn[join(parts)].combine_chunks() for parts in partition]
    roots = job.roots if job.kept is None else list(job.kept.roots)
    root_of = find_roots(job.roots, values, drawn.num_rows)
    in_job = drawn.filter(pa.array(root_of >= 0))
    keys = tuple(in_job[join(parts)].combine_chunks() for parts in request.columns)
    among = find_roots(
        roots, [in_job[join(p)].combine_chunks() for p in partition], in_job.num_rows
    )
    if job.kept is None:
        files, ahead = [group.cut_into for group in job.groups], job.groups[0].ahead
        layout = replace(fit(request, keys, roots, among, files, ahead), run=uuid4().hex)
        return PlannedJob(job=job, layout=layout, keys=keys, root_of=among)
    file_counts = dict(zip(job.roots, (group.cut_into for group in job.groups), strict=True))
    layout = job.kept.regrained([file_counts.get(root, 0) for root in roots])
    return PlannedJob(job=job, layout=layout, keys=keys, root_of=among)
