"""Planning of a rewrite: snapshot, files, sample, layouts and prediction."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from zadapter.arguments.options import Options
from zadapter.arguments.resolve import request_of
from zadapter.arguments.where import condition
from zadapter.backend.contract import Backend
from zadapter.base.names import Parts, join
from zadapter.base.ranks import Ints
from zadapter.errors import MissingStatsError
from zadapter.filters.predicate import Predicate
from zadapter.filters.predicate import columns as columns_of
from zadapter.filters.pruning import matching
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Layout, Request
from zadapter.planning import predict
from zadapter.planning.file_groups import Job, find_roots, jobs, root_limit, roots_of
from zadapter.reports.optimize import Plan
from zadapter.reports.phases import phase
from zadapter.spark.sample import files_to_read, sample, sample_size
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot, chosen

BYTES_A_ROW = 64
"""Assumed bytes per row of files whose log entry has no row count."""


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

    @cached_property
    def file_of(self) -> Ints:
        """File of each sampled row."""
        return assign.files(self.layout, self.leaf_of, np.arange(len(self.leaf_of)))


@dataclass(frozen=True, kw_only=True)
class RewritePlan:
    """A rewrite of a table: its jobs, and the files and options that they were planned from."""

    backend: Backend
    snapshot: Snapshot
    files: pa.Table = field(repr=False)
    """All live files of the table, with stats of the key columns."""
    candidates: int
    """Number of live files that may hold rows matching ``where``."""
    request: Request
    jobs: tuple[PlannedJob, ...]

    def share_read(self, files: pa.Table) -> float:
        """Return the mean share of rows of *files* that range queries on the sample read."""
        if not self.sampled:
            return 0.0
        ranks, boxes = self._ranked(files)
        return predict.share_read(boxes, predict.queries(ranks))

    @property
    def sampled(self) -> int:
        """Number of sampled rows."""
        return sum(len(planned.root_of) for planned in self.jobs)

    def _sample(self) -> list[pa.Array]:
        parts = [planned.keys for planned in self.jobs]
        return [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]

    @cached_property
    def prediction(self) -> Plan:
        """The predicted effect of the rewrite."""
        removed_paths = {
            path for planned in self.jobs for path in planned.job.files["path"].to_pylist()
        }
        removed = chosen(self.files, removed_paths)
        share_before, share_after = self._shares(removed_paths)
        return Plan(
            table=self.snapshot.table,
            format=self.snapshot.format,
            version=self.snapshot.version,
            columns=tuple(join(parts) for parts in self.request.columns),
            curve=self.request.curve.value,
            groups=sum(len(planned.job.groups) for planned in self.jobs),
            files_before=self.files.num_rows,
            files_asked=self.candidates,
            files_rewritten=len(removed_paths),
            files_written=sum(g.cut_into for planned in self.jobs for g in planned.job.groups),
            bytes_rewritten=file_stats.total(removed, "size"),
            rows=None if removed["rows"].null_count else file_stats.total(removed, "rows"),
            share_before=share_before,
            share_after=share_after,
        )

    def _shares(self, removed_paths: set[str]) -> tuple[float, float]:
        if not self.sampled:
            return 0.0, 0.0
        remaining = chosen(self.files, set(self.files["path"].to_pylist()) - removed_paths)
        ranks, boxes = self._ranked(remaining)
        parts, at = [boxes], 0
        for planned in self.jobs:
            rows = len(planned.root_of)
            parts.append(_predicted(planned, ranks[at : at + rows]))
            at += rows
        after = predict.share_read(predict.joined(parts), predict.queries(ranks))
        return self.share_read(self.files), after

    def _ranked(self, files: pa.Table) -> tuple[Ints, predict.Boxes]:
        stats = [file_stats.column(files, parts) for parts in self.request.columns]
        return predict.boxes_of_stats(self._sample(), stats, _weights(files))


def _predicted(planned: PlannedJob, ranks: Ints) -> predict.Boxes:
    """Return the predicted boxes of the files that *planned* will write."""
    boxes = predict.boxes_of_rows(ranks, planned.file_of, planned.layout.files)
    scale = _weights(planned.job.files).sum() / max(1, boxes.rows.sum())
    return predict.Boxes(boxes.low, boxes.high, np.rint(boxes.rows * scale).astype(np.int64))


def _weights(files: pa.Table) -> Ints:
    """Return the number of rows per file, estimated where the log has no row count."""
    rows = files["rows"].combine_chunks().to_numpy(zero_copy_only=False)
    guess = np.maximum(files["size"].to_numpy() // BYTES_A_ROW, 1)
    return np.asarray(np.where(np.isnan(rows), guess, rows), np.int64)


def prepare(
    options: Options, backend: Backend, seconds: MutableMapping[str, float], *, write: bool
) -> RewritePlan:
    """Plan the rewrite of a table, and predict its effect.

    Args:
        options: The caller's options.
        backend: The table's backend.
        seconds: Gets the duration of each phase.
        write: Whether ``widen_stats`` may change the table's properties.

    Raises:
        UsageError: An argument is invalid for this table.
        MissingStatsError: The log collects no stats for a key column.
        UnsupportedError: The table uses a feature that zadapter cannot preserve.
    """
    with phase("plan", options.name, seconds) as step:
        snapshot = backend.snapshot(options.name)
        request = request_of(options, snapshot)
        predicate = None if options.where is None else _predicate(options.where, backend, snapshot)
        snapshot = _with_stats(backend, snapshot, request, options, write=write)
        used = () if predicate is None else tuple(sorted(columns_of(predicate)))
        files = backend.files(snapshot, tuple(dict.fromkeys((*request.columns, *used))))
        candidates = (
            files if predicate is None else files.filter(pa.array(matching(predicate, files)))
        )
        jobs_to_fit = jobs(
            candidates,
            request,
            tuple(snapshot.partition),
            snapshot.layouts,
            max_group_bytes=options.group_bytes,
            force=options.force,
        )
        replaced = file_stats.totals(job.files for job in jobs_to_fit)
        step.note(version=snapshot.version, **replaced)
    with phase("fit", options.name, seconds) as step:
        plan = RewritePlan(
            backend=backend,
            snapshot=snapshot,
            files=files,
            candidates=candidates.num_rows,
            request=request,
            jobs=fitted(backend, snapshot, request, jobs_to_fit) if jobs_to_fit else (),
        )
        step.note(files=plan.prediction.files_written, rows=plan.sampled)
    return plan


def _with_stats(
    backend: Backend, snapshot: Snapshot, request: Request, options: Options, *, write: bool
) -> Snapshot:
    """Return a snapshot that collects stats of the key columns, as far as the options allow it."""
    missing = [parts for parts in request.columns if parts in snapshot.without_stats]
    if missing and not options.widen_stats:
        raise MissingStatsError(snapshot.table, [join(parts) for parts in missing])
    return backend.widen_stats(snapshot, missing) if missing and write else snapshot


def _predicate(where: str, backend: Backend, snapshot: Snapshot) -> Predicate:
    """Convert the condition to a predicate for the files of the current snapshot."""
    no_files = file_stats.empty({}, snapshot.partition)
    return condition(
        where, backend.read(snapshot, no_files), snapshot.schema, later=False
    ).predicate


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
    fraction = sample_size(cut_into) / max(1, int(_weights(read).sum()))
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
        files = [group.cut_into for group in job.groups]
        return PlannedJob(
            job=job, layout=fit(request, keys, roots, among, files), keys=keys, root_of=among
        )
    file_counts = dict(zip(job.roots, (group.cut_into for group in job.groups), strict=True))
    layout = job.kept.regrained([file_counts.get(root, 0) for root in roots])
    return PlannedJob(job=job, layout=layout, keys=keys, root_of=among)
