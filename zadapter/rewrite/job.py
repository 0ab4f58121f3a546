"""Execution of one job of a rewrite: write, verify, commit, and record the result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.backend.commit import commit_change
from zadapter.backend.contract import is_recoverable
from zadapter.base.commit_attempts import Attempts
from zadapter.base.phases import job, phase
from zadapter.errors import ConflictError, VerificationError
from zadapter.layout.layout import Layout
from zadapter.planning.file_groups import FileGroup, find_roots
from zadapter.planning.options import Options
from zadapter.report.course import Course
from zadapter.rewrite.compaction_plan import CompactionPlan, JoiningJob, write_joined
from zadapter.rewrite.fitting import PlannedJob
from zadapter.rewrite.planner import RewritePlan
from zadapter.rewrite.recovery.notes import Driver, Run, begin_run
from zadapter.rewrite.tally import Tally
from zadapter.rewrite.verify import check_contents, check_rows, stage_and_check
from zadapter.rewrite.write import Aim, ClusteredRows, write
from zadapter.spark.files import discard, discarding
from zadapter.table import file_stats
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
        return _write_and_verify(call, planned, tally)


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
        layouts=_layouts_to_store(plan, ready.planned),
    )
    facts = file_stats.totals([ready.staged.files])
    attempts = Attempts(call.options.backoff)
    try:
        with (
            job(call.name(ready.planned)),
            discarding(call.spark, [ready.written], attempts),
            call.run.sending(ready.write, attempts),
            phase("commit", call.options.name, tally.seconds) as step,
        ):
            done = commit_change(plan.backend, change, attempts)
            step.note(version=done.version, **({} if done.stale else facts))
    except ConflictError as error:
        return record_conflict(call, ready.planned, error, tally)
    if done.stale and not done.doubtful:
        discard(call.spark, _only(ready.staged, done.stale))
    tally.note(done, ready.exchanges)
    call.course.end(call.number(ready.planned), f"committed, {_version(done.version)}")
    return None


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


def _layouts_to_store(plan: AnyPlan, planned: AnyJob) -> tuple[Layout, ...]:
    """Return the layout, if any; its cuts last if it places a large part of the table."""
    if isinstance(planned, JoiningJob):
        return ()
    rewritten, all_bytes = (file_stats.total(f, "size") for f in (planned.job.files, plan.files))
    return (replace(planned.layout, lasting=LASTING * rewritten >= all_bytes),)


def _version(version: int | None) -> str:
    return "version unknown" if version is None else f"version {version}"


def _only(staged_files: Staged, exchanges: Sequence[Exchange]) -> Written:
    """Return the part of *staged_files* that belongs to *exchanges*."""
    paths = {path for exchange in exchanges for path in exchange.added["path"].to_pylist()}
    return Written(paths={path: uri for path, uri in staged_files.paths.items() if path in paths})
