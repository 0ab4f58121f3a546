"""Execution of one job of a rewrite: write, verify, commit, and record the result."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.arguments.options import Options
from zadapter.backend.commit import Landed, publish
from zadapter.base.interrupts import Interrupted
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    UnknownOutcomeError,
    VerificationError,
    ZadapterError,
)
from zadapter.layout.layout import Layout
from zadapter.planning.file_groups import Group, find_roots
from zadapter.reports.optimize import Verification
from zadapter.reports.phases import phase
from zadapter.rewrite.compaction import CompactionPlan, JoiningJob, write_joined
from zadapter.rewrite.fitting import PlannedJob
from zadapter.rewrite.planner import RewritePlan
from zadapter.rewrite.shuffle import Clustered
from zadapter.rewrite.verify import check_contents, check_rows, staged
from zadapter.rewrite.write import write
from zadapter.spark.files import discard
from zadapter.table import file_stats
from zadapter.table.snapshot import Change, Exchange, Operation, Staged, Written

AnyPlan = RewritePlan | CompactionPlan
AnyJob = PlannedJob | JoiningJob

LASTING = 8
"""Cuts are stored if a job rewrites at least one part of this many of the table's bytes."""


@dataclass(slots=True)
class Tally:
    """Results of the jobs that a run has finished."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    versions: list[int | None] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    jobs_left: int = 0
    read_twice: bool = False
    untested: str | None = None

    def note(self, landed: Landed, exchanges: Sequence[Exchange]) -> None:
        """Record a rewrite that landed."""
        self.versions.append(landed.version)
        self.exchanges += [e for e in exchanges if e not in landed.stale]
        self.stale += [
            f"{e.removed.num_rows} files changed by another writer, first: {e.removed['path'][0]}"
            for e in landed.stale
        ]

    def add(self, other: "Tally") -> None:
        """Add what was found before the commit of a job."""
        for name, duration in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + duration
        self.read_twice |= other.read_twice
        self.untested = self.untested or other.untested

    def facts(self) -> dict[str, int | None]:
        """Return the newest version, and the files, bytes and rows of all commits."""
        version = self.versions[-1] if self.versions else None
        return {"version": version, **file_stats.totals(e.added for e in self.exchanges)}

    def verification(self, requested: str) -> Verification:
        """Return how rows were compared, given the *requested* option."""
        by = "checksum" if self.untested else requested
        return Verification(by=by, read_twice=self.read_twice, untested=self.untested)

    @contextmanager
    def reporting_versions(self) -> Iterator[None]:
        """Add the versions that are already committed to the message of an error."""
        try:
            yield
        except ZadapterError as error:
            if self.versions:
                error.args = (f"{error}. Versions committed by this call: {self.versions}",)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A job whose rows are written and verified, but not committed."""

    planned: AnyJob
    written: Written
    staged: Staged
    exchanges: tuple[Exchange, ...]


def rewrite(
    plan: AnyPlan, planned: AnyJob, spark: SparkSession, options: Options, tally: Tally
) -> ConflictError | None:
    """Write, verify and commit one job; return the conflict that stopped it, if any."""
    try:
        ready = prepared(plan, planned, spark, options, tally)
    except ConflictError as error:
        tally.stale.append(str(error))
        return error
    return landed(plan, ready, spark, options, tally)


def prepared(
    plan: AnyPlan, planned: AnyJob, spark: SparkSession, options: Options, tally: Tally
) -> Ready:
    """Write and verify one job; nothing stays if that fails."""
    output = written, _ = _write(plan, planned, spark, options, tally)
    with _discarding(spark, written):
        staged_files, exchanges = _verified(plan, planned, output, spark, options, tally)
    return Ready(planned=planned, written=written, staged=staged_files, exchanges=exchanges)


def landed(
    plan: AnyPlan, ready: Ready, spark: SparkSession, options: Options, tally: Tally
) -> ConflictError | None:
    """Commit one job; return the conflict that stopped it, if any."""
    change = Change(
        base=plan.snapshot,
        operation=Operation.OPTIMIZE,
        exchanges=ready.exchanges,
        staged=(ready.staged,),
        layouts=_stored(plan, ready.planned),
    )
    facts = file_stats.totals([ready.staged.files])
    try:
        with (
            _discarding(spark, ready.written),
            phase("commit", options.name, tally.seconds) as step,
        ):
            done = publish(plan.backend, change, options.backoff)
            step.note(version=done.version, **({} if done.stale else facts))
    except ConflictError as error:
        tally.stale.append(str(error))
        return error
    if done.stale and not done.doubtful:
        discard(spark, _only(ready.staged, done.stale))
    tally.note(done, ready.exchanges)
    return None


@contextmanager
def _discarding(spark: SparkSession, written: Written) -> Iterator[None]:
    """Discard the files if what follows fails, unless somebody may still need them."""
    try:
        yield
    except (UnknownOutcomeError, ReplacedTableError):
        # they may be committed, or a copy of the dropped table may reference them
        raise
    except (Exception, Interrupted):
        # nothing was committed: an unknown outcome raises UnknownOutcomeError
        discard(spark, written)
        raise


def _write(
    plan: AnyPlan, planned: AnyJob, spark: SparkSession, options: Options, tally: Tally
) -> tuple[Written, Clustered]:
    size = file_stats.total(planned.job.files, "size")
    with phase("write", options.name, tally.seconds, expected=size) as step:
        written, shuffled = _written(plan, planned, spark, checksum=options.verify == "checksum")
        step.note(
            files=len(written.paths), bytes=size, rows=file_stats.live_rows(planned.job.files)
        )
    tally.untested = tally.untested or shuffled.untested
    return written, shuffled


def _written(
    plan: AnyPlan, planned: AnyJob, spark: SparkSession, *, checksum: bool
) -> tuple[Written, Clustered]:
    if isinstance(planned, JoiningJob):
        return write_joined(plan.backend, plan.snapshot, planned)
    whole = planned.job.files.num_rows == plan.files.num_rows
    return write(plan.backend, plan.snapshot, planned, spark, whole=whole, checksum=checksum)


def _verified(
    plan: AnyPlan,
    planned: AnyJob,
    output: tuple[Written, Clustered],
    spark: SparkSession,
    options: Options,
    tally: Tally,
) -> tuple[Staged, tuple[Exchange, ...]]:
    written, shuffled = output
    contents = options.verify == "checksum" or shuffled.untested is not None
    with phase("verify", options.name, tally.seconds) as step:
        staged_files = staged(plan.backend, plan.snapshot, written, spark)
        exchanges = _exchanges(plan, planned, staged_files)
        if contents:
            files, observed = planned.job.files, shuffled.observed()
            tally.read_twice |= check_contents(
                plan.backend, plan.snapshot, files, staged_files, observed
            )
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
            "a written file belongs to another partition; nothing was committed"
        )
    return tuple(exchanges)


def _rows_in(plan: AnyPlan, group: Group) -> int:
    """Return the live rows of the replaced files; count them where the log has no row count."""
    rows = file_stats.live_rows(group.files)
    return plan.backend.read(plan.snapshot, group.files).count() if rows is None else rows


def _stored(plan: AnyPlan, planned: AnyJob) -> tuple[Layout, ...]:
    """Return the layout, if any; its cuts last if it places a large part of the table."""
    if isinstance(planned, JoiningJob):
        return ()
    rewritten, all_bytes = (file_stats.total(f, "size") for f in (planned.job.files, plan.files))
    return (replace(planned.layout, lasting=LASTING * rewritten >= all_bytes),)


def _only(staged_files: Staged, exchanges: Sequence[Exchange]) -> Written:
    """Return the part of *staged_files* that belongs to *exchanges*."""
    paths = {path for exchange in exchanges for path in exchange.added["path"].to_pylist()}
    return Written(paths={path: uri for path, uri in staged_files.paths.items() if path in paths})
