"""Execution of one job of a rewrite: write, verify, commit, and record the result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.commit import commit_change
from zadapter.backend.contract import is_rebasing, is_recoverable
from zadapter.base.commit_attempts import Attempts
from zadapter.base.phases import job, phase
from zadapter.errors import ConflictError, StaleRewriteError, VerificationError
from zadapter.layout.layout import Layout
from zadapter.planning.file_groups import FileGroup, find_roots
from zadapter.planning.options import Options
from zadapter.report.course import Course
from zadapter.rewrite.compaction_plan import CompactionPlan, JoiningJob, write_joined
from zadapter.rewrite.fitting import PlannedJob
from zadapter.rewrite.moved_rows import RowFollower, is_reserved
from zadapter.rewrite.planner import RewritePlan
from zadapter.rewrite.rebase import Rebaser, is_hopeless
from zadapter.rewrite.recovery.notes import Driver, Run, begin_run
from zadapter.rewrite.tally import Tally
from zadapter.rewrite.verify import check_contents, check_rows, stage_and_check
from zadapter.rewrite.write import Aim, ClusteredRows, encoding, write
from zadapter.spark.files import discard, discarding
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Operation, Staged, Written
from zadapter.table.staged_files import StagedWrite, new_id

AnyPlan = RewritePlan | CompactionPlan
AnyJob = PlannedJob | JoiningJob

LASTING = 8
"""Cuts are stored if a job rewrites at least one part of this many of the table's bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A job whose rows are written and verified, but not committed."""

    planned: AnyJob
    write: StagedWrite
    written: Written
    staged: Staged
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteContext:
    """A call of optimize that has planned its jobs."""

    plan: AnyPlan
    jobs: Sequence[AnyJob]
    options: Options
    spark: SparkSession
    run: Run
    course: Course

    @classmethod
    def begin(
        cls, plan: AnyPlan, options: Options, spark: SparkSession, run: str
    ) -> "RewriteContext":
        """Begin the jobs of a plan.

        Args:
            plan: The plan.
            options: The caller's options.
            spark: The session of the commits.
            run: Id of the run.
        """
        sizes = [file_stats.total(each.job.files, "size") for each in plan.jobs]
        backend = plan.backend
        side_files = backend.side_files(plan.snapshot) if is_recoverable(backend) else None
        return cls(
            plan=plan,
            jobs=plan.jobs,
            options=options,
            spark=spark,
            run=begin_run(side_files, plan.snapshot, Driver.of(spark), run, len(sizes)),
            course=Course(run=run, table=options.name, sizes=sizes),
        )

    def number(self, planned: AnyJob) -> int:
        """Return the place of a job among those of the plan."""
        return next(at for at, each in enumerate(self.jobs) if each is planned)

    def name(self, planned: AnyJob) -> str:
        """Return the name of a job, such as ``job 2 of 5``."""
        return self.course.name(self.number(planned))


def rewrite(call: RewriteContext, planned: AnyJob, tally: Tally) -> ConflictError | None:
    """Write, verify and commit one job; return the conflict that stopped it, if any."""
    try:
        ready = prepare_job(call, planned, tally)
    except ConflictError as error:
        return record_conflict(call, planned, error, tally)
    return commit_job(call, ready, tally)


def record_conflict(
    call: RewriteContext, planned: AnyJob, error: ConflictError, tally: Tally
) -> ConflictError:
    """Record a job that another writer has stopped, and return the conflict."""
    tally.stale.append(str(error))
    call.course.end(call.number(planned), "lost to another writer")
    return error


def prepare_job(call: RewriteContext, planned: AnyJob, tally: Tally) -> Ready:
    """Write and verify one job; nothing stays if that fails."""
    with job(call.name(planned)):
        if call.number(planned):  # the first job follows the plan at once
            _stop_early(call, planned)
        return _write_and_verify(call, planned, tally)


def _stop_early(call: RewriteContext, planned: AnyJob) -> None:
    """Look at the table before a job is written.

    Raises:
        StaleRewriteError: Other writers have changed so much that it could not be committed.
    """
    plan = call.plan
    head = plan.backend.snapshot(plan.snapshot.table, since=plan.snapshot)
    if head.version == plan.snapshot.version:
        return
    groups = [group.files for group in planned.job.groups]
    live = plan.backend.files(head)
    if is_hopeless(groups, plan.snapshot, head, live, call.options.max_rebase):
        raise StaleRewriteError(plan.snapshot.table, groups[0]["path"].to_pylist())


def _write_and_verify(call: RewriteContext, planned: AnyJob, tally: Tally) -> Ready:
    layout = None if isinstance(planned, JoiningJob) else planned.layout.id
    write = StagedWrite(id=new_id(), layout=layout)
    call.run.start(write)
    output = written, _ = _write(call, planned, write.id, tally)
    with discarding(call.spark, [written]):
        staged_files, exchanges = _verify_files(call, planned, output, tally)
    return Ready(
        planned=planned, write=write, written=written, staged=staged_files, exchanges=exchanges
    )


def commit_job(call: RewriteContext, ready: Ready, tally: Tally) -> ConflictError | None:
    """Commit one job; return the conflict that stopped it, if any."""
    plan = call.plan
    change = Change(
        base=plan.snapshot,
        operation=Operation.OPTIMIZE,
        exchanges=ready.exchanges,
        staged=(ready.staged,),
        layouts=_layouts_to_store(call, ready.planned),
    )
    attempts, written = Attempts(call.options.backoff), [ready.written]
    rebaser = _rebaser(call, ready, written)
    try:
        with (
            job(call.name(ready.planned)),
            discarding(call.spark, written, attempts),
            call.run.sending(ready.write, attempts),
            phase("commit", call.options.name, tally.seconds) as step,
        ):
            done = commit_change(plan.backend, change, attempts, rebaser)
            step.note(version=done.version, **file_stats.totals([done.change.added]))
    except ConflictError as error:
        return record_conflict(call, ready.planned, error, tally)
    if not done.doubtful:
        discard(call.spark, _find_unused(written, done.change))
    tally.note(done, rebaser.result, rebaser.stale)
    call.course.end(call.number(ready.planned), f"committed, {_version(done.version)}")
    return None


def _rebaser(call: RewriteContext, ready: Ready, written: list[Written]) -> Rebaser:
    """Return what bases the job's change on commits of other writers."""
    backend, snapshot = call.plan.backend, call.plan.snapshot
    follow = None
    if is_rebasing(backend) and not any(map(is_reserved, snapshot.schema.names)):
        follow = RowFollower(
            backend=backend,
            planned=snapshot,
            staged=ready.staged,
            spark=call.spark,
            checksum=call.options.verify == "checksum",
            write_again=partial(_write_again, call, ready.planned, written),
        )
    return Rebaser(follow=follow, max_rebase=call.options.max_rebase, written=written)


def _write_again(
    call: RewriteContext, planned: AnyJob, written: list[Written], rows: DataFrame
) -> Staged:
    """Write rows of a job that are in the order of its files, each partition as one file.

    No note has this write: a later call must not delete its files if this one dies, because the
    commit may have landed. Clean-ups of the format delete them if it has not.
    """
    plan, layout, chosen = call.plan, None, Encoding()
    if not isinstance(planned, JoiningJob):
        layout = planned.layout
        chosen = encoding(
            plan.backend, plan.snapshot, planned.job, layout.request, call.spark, planned
        )
    again = plan.backend.write(plan.snapshot, rows, layout, chosen)
    written.append(again)
    return stage_and_check(plan.backend, plan.snapshot, again, call.spark)


def _write(
    call: RewriteContext, planned: AnyJob, write_id: str, tally: Tally
) -> tuple[Written, ClusteredRows]:
    size, options = file_stats.total(planned.job.files, "size"), call.options
    with phase("write", options.name, tally.seconds, expected=size) as step:
        written, shuffled = _write_files(call, planned, write_id)
        step.note(
            files=len(written.paths), bytes=size, rows=file_stats.live_rows(planned.job.files)
        )
    tally.untested = tally.untested or shuffled.untested
    tally.bytes_read += size
    return written, shuffled


def _write_files(
    call: RewriteContext, planned: AnyJob, write_id: str
) -> tuple[Written, ClusteredRows]:
    plan = call.plan
    if isinstance(planned, JoiningJob):
        return write_joined(plan.backend, plan.snapshot, planned, write_id)
    whole = planned.job.files.num_rows == plan.files.num_rows
    checksum = call.options.verify == "checksum"
    aim = Aim(write_id=write_id, whole=whole, checksum=checksum)
    return write(plan.backend, plan.snapshot, planned, call.spark, aim)


def _verify_files(
    call: RewriteContext, planned: AnyJob, output: tuple[Written, ClusteredRows], tally: Tally
) -> tuple[Staged, tuple[Exchange, ...]]:
    plan, options = call.plan, call.options
    written, shuffled = output
    contents = options.verify == "checksum" or shuffled.untested is not None
    with phase("verify", options.name, tally.seconds) as step:
        staged_files = stage_and_check(plan.backend, plan.snapshot, written, call.spark)
        exchanges = _exchanges(plan, planned, staged_files)
        if contents:
            files, observed = planned.job.files, shuffled.read_totals()
            twice = check_contents(plan.backend, plan.snapshot, files, staged_files, observed)
            tally.read_twice |= twice
            tally.bytes_read += file_stats.total(staged_files.files, "size")
            tally.bytes_read += file_stats.total(files, "size") if twice else 0
        step.note(**file_stats.totals([staged_files.files]))
    return staged_files, exchanges


def _exchanges(plan: AnyPlan, planned: AnyJob, staged_files: Staged) -> tuple[Exchange, ...]:
    """Check the staged files of each partition, and pair them with the files they replace."""
    snapshot, exchanges = plan.snapshot, list[Exchange]()
    if not planned.job.roots:
        (group,) = planned.job.groups
        check_rows(group, file_stats.total(staged_files.files, "rows"), _rows_in(plan, group))
        return (Exchange(removed=group.files, added=staged_files.files),)
    of_root = find_roots(
        planned.job.roots,
        [file_stats.partition(staged_files.files, name) for name in snapshot.partition],
        staged_files.files.num_rows,
    )
    for number, group in enumerate(planned.job.groups):
        in_group = of_root == number
        added = staged_files.files.filter(pa.array(in_group))
        check_rows(group, file_stats.total(added, "rows"), _rows_in(plan, group))
        exchanges.append(Exchange(removed=group.files, added=added))
    if sum(exchange.added.num_rows for exchange in exchanges) != staged_files.files.num_rows:
        raise VerificationError(
            "a written file belongs to another partition; nothing was committed. Please report this"
        )
    return tuple(exchanges)


def _rows_in(plan: AnyPlan, group: FileGroup) -> int:
    """Return the live rows of the replaced files; count them where the log has no row count."""
    rows = file_stats.live_rows(group.files)
    return plan.backend.read(plan.snapshot, group.files).count() if rows is None else rows


def _layouts_to_store(call: RewriteContext, planned: AnyJob) -> tuple[Layout, ...]:
    """Return the layout, if any; its cuts last if it places a large part of the table."""
    if isinstance(planned, JoiningJob):
        return ()
    every = call.plan.files
    rewritten, all_bytes = (file_stats.total(f, "size") for f in (planned.job.files, every))
    lasting, of_part = LASTING * rewritten >= all_bytes, not call.options.is_for_table
    return (replace(planned.layout, lasting=lasting, of_part=of_part),)


def _version(version: int | None) -> str:
    return "version unknown" if version is None else f"version {version}"


def _find_unused(written: Sequence[Written], landed: Change) -> Written:
    """Return the files of *written* that a change which landed does not contain."""
    data = {path for each in landed.staged for path in each.files["path"].to_pylist()}
    marks = {path for each in landed.staged for path in each.paths} - data
    used = {*landed.added["path"].to_pylist(), *marks}
    paths = {path: uri for each in written for path, uri in each.paths.items()}
    return Written(paths={path: uri for path, uri in paths.items() if path not in used})
