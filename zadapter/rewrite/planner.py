"""Planning of a rewrite: snapshot, files, sample, layouts and prediction."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from itertools import chain

import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import NameParts, join
from zadapter.base.phases import phase
from zadapter.errors import MissingStatsError, UsageError
from zadapter.layout.layout import Request
from zadapter.planning.effect import Effect, compute_gain, row_group_shares
from zadapter.planning.file_groups import Job, jobs, reasons
from zadapter.planning.maintenance import Maintenance, maintenance
from zadapter.planning.merges import Reason, Renewal, Rewrite, groups_of
from zadapter.planning.options import Options
from zadapter.planning.request import key_columns, request_of
from zadapter.planning.tiers import Tiers
from zadapter.predicates.predicate import Predicate
from zadapter.report.plan import Plan
from zadapter.rewrite.compaction_plan import CompactionPlan, compaction_plan, ordering_columns
from zadapter.rewrite.file_selection import SelectedFiles, follow_layout, predicate_of, select_files
from zadapter.rewrite.fitting import PlannedJob, fit_jobs
from zadapter.rewrite.shares import Sample, effect, predict_share, sample_table, share_now
from zadapter.table import file_stats
from zadapter.table.file_stats import find_constant, row_counts
from zadapter.table.snapshot import Snapshot, select_paths, without

PREDICTED = 16
"""Maximum number of jobs for which the effect is predicted though they are run anyway."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A job, and whether it pays."""

    planned: PlannedJob
    runs: bool
    effect: Effect | None
    """None: not predicted."""


@dataclass(frozen=True, kw_only=True)
class RewritePlan:
    """A rewrite of a table: its jobs, and the files and options that they were planned from."""

    backend: Backend
    snapshot: Snapshot
    asked: SelectedFiles
    """The files, with stats of the key columns, and those that may be rewritten."""
    request: Request
    maintenance: Maintenance
    """What was chosen to be rewritten, and what was not."""
    judged: tuple[Judged, ...]
    """All jobs that could be run."""
    tiers: Tiers | None
    """Which of the candidates are hot or cold; None for neither."""

    @property
    def files(self) -> pa.Table:
        """All live files of the table, with stats of the key columns."""
        return self.asked.files

    @cached_property
    def jobs(self) -> tuple[PlannedJob, ...]:
        """The jobs to run."""
        return tuple(each.planned for each in self.judged if each.runs)

    @cached_property
    def declined(self) -> tuple[PlannedJob, ...]:
        """Jobs that would bring nothing, or make filters read more."""
        return tuple(each.planned for each in self.judged if not each.runs)

    @property
    def effects(self) -> tuple[Effect | None, ...]:
        """Predicted effects of the jobs to run, or of the declined ones if none is to run."""
        runs = bool(self.jobs)
        return tuple(each.effect for each in self.judged if each.runs == runs)

    def share_read(self, files: pa.Table) -> float:
        """Return the mean share of rows of *files* that range filters on the table read."""
        return share_now(self._sample, files)

    @cached_property
    def _sample(self) -> Sample:
        return sample_table(self._predicted, self._kept)

    @cached_property
    def _paths(self) -> set[str]:
        """Paths of the files of the jobs."""
        paths = (each.job.files["path"].to_pylist() for each in self._predicted)
        return set(chain.from_iterable(paths))

    @cached_property
    def _kept(self) -> pa.Table:
        """The other files."""
        return without(self.files, self._paths)

    @property
    def _predicted(self) -> tuple[PlannedJob, ...]:
        return self.jobs or self.declined

    @property
    def sampled(self) -> int:
        """Number of sampled rows."""
        return sum(len(planned.root_of) for planned in self._predicted)

    @cached_property
    def prediction(self) -> Plan:
        """The predicted effect of the rewrite."""
        removed = select_paths(self.files, self._paths if self.jobs else set())
        groups = row_group_shares(self.effects)
        before = self.share_read(self.files)
        after = predict_share(self._sample, self._predicted, self._kept)
        inside = before if removed.num_rows == self.files.num_rows else self._part_read(removed)
        gain = compute_gain(self.effects, before, after, inside)
        return Plan(
            table=self.snapshot.table,
            format=self.snapshot.format,
            version=self.snapshot.version,
            columns=tuple(join(parts) for parts in self.request.columns),
            curve=self.request.curve.value,
            filters=len(self.request.filters),
            bloom_filters=tuple(join(parts) for parts in self.request.bloom_filters),
            target_file_size=self.request.target_file_size,
            groups=sum(len(planned.job.groups) for planned in self.jobs),
            jobs=len(self.jobs),
            groups_declined=sum(len(planned.job.groups) for planned in self.declined),
            files_before=self.files.num_rows,
            files_asked=self.asked.candidates.num_rows,
            files_young=self.asked.young,
            files_rewritten=removed.num_rows,
            files_written=sum(g.cut_into for planned in self.jobs for g in planned.job.groups),
            bytes_rewritten=file_stats.total(removed, "size"),
            rows=file_stats.live_rows(removed),
            share_before=before,
            share_after=after,
            alike=tuple(join(parts) for parts in find_constant(self.files, self.request.columns)),
            gain=gain if self.jobs else 0.0,
            row_group_share_before=None if groups is None else groups[0],
            row_group_share_after=None if groups is None else groups[1],
            reasons=reasons(group for planned in self.jobs for group in planned.job.groups),
            groups_left=len(self.maintenance.left),
            sort_order=self.snapshot.sort_order,
            files_owned=self.maintenance.owned,
            rows_waiting=sum(each.raw for each in self.maintenance.declined if not each.cold),
            tiers={} if self.tiers is None else self.tiers.counts(self.asked.candidates),
            tiers_by="" if self.tiers is None else str(self.tiers),
            bytes_left=sum(rewrite.bytes for rewrite in self.maintenance.left),
            bytes_anew=sum(rewrite.bytes for rewrite in self._anew),
            saved_anew=self._saved_anew,
            files=self.files if self.tiers is None else self.tiers.add_tier(self.files),
        )

    def _part_read(self, files: pa.Table) -> float:
        """Return the mean share of the table's rows that range filters read of some files."""
        if not files.num_rows:
            return 0.0
        some, every = (int(row_counts(each).sum()) for each in (files, self.files))
        return self.share_read(files) * some / max(1, every)

    @property
    def _anew(self) -> list[Rewrite]:
        """New fits of partitions that are not chosen."""
        chosen_anew = {id(rewrite) for rewrite in self.maintenance.rewrites}
        return [rewrite for rewrite in self.maintenance.anew if id(rewrite) not in chosen_anew]

    @property
    def _saved_anew(self) -> float:
        """Share of what filters read from these partitions that new fits would save."""
        gains = [rewrite.gain for rewrite in self._anew if rewrite.gain is not None]
        read = sum(gain.read for gain in gains)
        return sum(gain.rows for gain in gains) / read if read else 0.0


def prepare(
    options: Options,
    backend: Backend,
    seconds: MutableMapping[str, float],
    *,
    write: bool,
    snapshot: Snapshot | None = None,
) -> RewritePlan | CompactionPlan:
    """Plan the rewrite of a table, and predict its effect.

    A table without a layout, for which no key columns are given, is compacted.

    Args:
        options: The caller's options.
        backend: The table's backend.
        seconds: Gets the duration of each phase.
        write: Whether ``collect_stats`` may change the table's properties.
        snapshot: The version that was read already; None: read the current one.

    Raises:
        UsageError: An argument is invalid for this table.
        MissingStatsError: The log collects no stats for a key column.
        UnsupportedError: The table uses a feature that zadapter cannot preserve.
    """
    with phase("plan", options.name, seconds) as step:
        snapshot = snapshot or backend.snapshot(options.name)
        snapshot.check_rewritable()
        predicate = predicate_of(options.where, backend, snapshot)
        keyed = follow_layout(options, backend, snapshot)
        if keyed is None:
            compacting = _compacting(options, backend, snapshot, predicate)
            step.note(version=snapshot.version, **compacting.replaced)
            return compacting
        options, columns = keyed, key_columns(keyed, snapshot)
        ages, now = options.tier_ages, datetime.now(timezone.utc)
        tiers = None if ages is None else ages.at(now, snapshot)
        columns = columns if tiers is None else tiers.with_column(columns, snapshot.partition)
        snapshot = with_stats(backend, snapshot, columns, options, write=write)
        found = select_files(options, backend, snapshot, columns, predicate)
        request = request_of(options, snapshot, found.files)
        maintained = _plan_maintenance(options, snapshot, found.candidates, request, tiers)
        jobs_to_fit = jobs(groups_of(maintained.rewrites), request, max_job_bytes=options.job_bytes)
        replaced = file_stats.totals(job.files for job in jobs_to_fit)
        step.note(version=snapshot.version, **replaced)
    with phase("fit", options.name, seconds) as step:
        judged = _judge_jobs(backend, snapshot, request, jobs_to_fit, force=options.force)
        plan = RewritePlan(
            backend=backend,
            snapshot=snapshot,
            asked=found,
            request=request,
            maintenance=maintained,
            judged=judged,
            tiers=tiers,
        )
        step.note(files=plan.prediction.files_written, rows=plan.sampled)
    return plan


def _compacting(
    options: Options, backend: Backend, snapshot: Snapshot, predicate: Predicate | None
) -> CompactionPlan:
    """Plan the compaction of a table without a layout.

    Raises:
        UsageError: Tiers or Bloom filters are asked for.
    """
    for argument, given in (("tiers", options.tiers), ("bloom_filters", options.bloom_filters)):
        if given:
            raise UsageError(f"{snapshot.table} is not clustered; pass by= (--by) with {argument}=")
    found = select_files(options, backend, snapshot, ordering_columns(snapshot), predicate)
    return compaction_plan(options, backend, snapshot, found)


def _plan_maintenance(
    options: Options,
    snapshot: Snapshot,
    files: pa.Table,
    request: Request,
    tiers: Tiers | None,
) -> Maintenance:
    """Choose the files to rewrite, among those that have other Bloom filters than requested."""
    is_sized = options.file_bytes is not None
    renewal = Renewal.of(files, snapshot.layouts, request, every=options.force, is_sized=is_sized)
    names = tuple(snapshot.partition)
    return maintenance(files, request, names, options.limits, renewal=renewal, tiers=tiers)


def with_stats(
    backend: Backend,
    snapshot: Snapshot,
    columns: tuple[NameParts, ...],
    options: Options,
    *,
    write: bool,
) -> Snapshot:
    """Return a snapshot that collects statistics of the key columns.

    Raises:
        MissingStatsError: The table collects none, and the options do not allow to change that.
    """
    missing = [parts for parts in columns if parts in snapshot.without_stats]
    if missing and not options.collect_stats:
        raise MissingStatsError(snapshot.table, [join(parts) for parts in missing])
    return backend.collect_stats(snapshot, missing) if missing and write else snapshot


def _judge_jobs(
    backend: Backend,
    snapshot: Snapshot,
    request: Request,
    jobs_to_fit: Sequence[Job],
    *,
    force: bool,
) -> tuple[Judged, ...]:
    """Fit the jobs, and predict the effect of those that run only if they pay."""
    planned = fit_jobs(backend, snapshot, request, jobs_to_fit) if jobs_to_fit else ()
    judged = []
    for each in planned:
        optional = not force and _is_optional(each, request)
        predicted = None
        if optional or len(planned) <= PREDICTED:
            predicted = effect(backend, snapshot, request, each)
        runs = not optional or predicted is None or predicted.pays
        judged.append(Judged(planned=each, runs=runs, effect=predicted))
    return tuple(judged)


def _is_optional(planned: PlannedJob, request: Request) -> bool:
    """Return whether a job is run only if it pays.

    These are the first rewrites of files, unless they get Bloom filters, whose effect is not among
    the predicted ones. Whether others pay was predicted when they were chosen.
    Each layout is judged by the filters that it is for: a learned one by its own, a weighted or
    linear one by ranges on its columns as often as its weights say.
    """
    is_first = all(group.reason == Reason.FIRST for group in planned.job.groups)
    return is_first and not request.bloom_filters
