"""Runs of ``optimize`` and ``plan``, by their options: the table is opened, planned, rewritten."""

import logging
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend, Factory, is_recoverable
from zadapter.base.interrupts import is_held
from zadapter.base.outcome import stating
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import ConflictError, StaleRewriteError
from zadapter.inspection.advise.choice import follow_queries
from zadapter.planning.cost import object_store
from zadapter.planning.options import Options
from zadapter.report import lineage
from zadapter.report.optimize_report import Report
from zadapter.report.plan import Plan
from zadapter.rewrite.job import AnyPlan, RewriteContext, rewrite
from zadapter.rewrite.kept_plan import KeptPlan
from zadapter.rewrite.planner import prepare
from zadapter.rewrite.recovery.leftovers import clear
from zadapter.rewrite.self_test import before_writing
from zadapter.rewrite.side_by_side import run as side_by_side
from zadapter.rewrite.side_by_side import threads
from zadapter.rewrite.tally import Tally
from zadapter.spark.clone import refresh
from zadapter.spark.jobs import call, group_jobs, measure_phases
from zadapter.spark.jvm.gateway import has_own_threads
from zadapter.spark.opening import open_table
from zadapter.spark.where import check_functions
from zadapter.table import file_stats
from zadapter.table.file_stats import select_stats
from zadapter.table.snapshot import Snapshot, without
from zadapter.table.staged_files import new_id

_logger = logging.getLogger("zadapter")


def run_optimize(
    options: Options, backend: str | Factory | None, spark: SparkSession | None
) -> Report:
    """Rewrite a table; see :func:`zadapter.optimize`.

    Args:
        options: The options of the call.
        backend: A format or a backend's class; None: detect it.
        spark: The caller's session.
    """
    with _open_call(options, backend, spark) as opened:
        prepared = partial(
            prepare, opened.options, opened.backend, write=True, snapshot=opened.snapshot
        )
        return _run(opened, prepared)


def run_plan(options: Options, backend: str | Factory | None, spark: SparkSession | None) -> Plan:
    """Predict the effect of :func:`run_optimize`, and write nothing; the plan can be run."""
    with (
        _open_call(options, backend, spark) as opened,
        call("plan", opened.options.name, opened.spark),
    ):
        found = prepare(opened.options, opened.backend, {}, write=False, snapshot=opened.snapshot)
        kept = KeptPlan.of(found, opened.options)
        runner = _Runner(kept=kept, factory=opened.factory, spark=spark)
        return replace(_price_plan(found, opened.options), _runner=runner)


@dataclass(frozen=True, kw_only=True)
class _Runner:
    """What runs a plan."""

    kept: KeptPlan
    factory: Factory
    spark: SparkSession | None
    """The caller's session; None: the active one, as in a process that has unpickled the plan."""

    def __call__(self) -> Report:
        options = self.kept.options
        with stating(), translate_errors(options.name):
            try:
                with _open_call(options, self.factory, self.spark) as opened:
                    return _run(opened, partial(self.kept.renewed, opened.backend))
            except StaleRewriteError as error:
                error.retryable = False  # the plan will not hold for a later version either
                raise

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "spark": None}


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """A table that is open, in a clone of the user's session."""

    options: Options
    """The options of the call; keys that a query log decides are known."""
    backend: Backend
    spark: SparkSession
    user_session: SparkSession
    factory: Factory
    snapshot: Snapshot | None
    """The version to plan from; None: the current one."""


@contextmanager
def _open_call(
    options: Options, backend: str | Factory | None, spark: SparkSession | None
) -> Iterator[_Opened]:
    """Open the table in a clone of the user's session, and choose the keys by the queries."""
    queries = options.queries
    expressions = options.where is not None
    with open_table(options.name, backend, spark, writes=True, expressions=expressions) as table:
        check_functions(options.where, table.user_session)
        if queries is not None:
            options = follow_queries(options, table.backend, table.snapshot(), table.user_session)
        yield _Opened(
            options=options,
            backend=table.backend,
            spark=table.spark,
            user_session=table.user_session,
            factory=table.factory,
            snapshot=table.detected if queries is None else None,
        )


def _run(opened: _Opened, prepared: Callable[[MutableMapping[str, float]], AnyPlan]) -> Report:
    """Run a plan.

    Args:
        opened: The table.
        prepared: Returns the plan, and notes the seconds of its phases.
    """
    options, spark, run = opened.options, opened.spark, new_id()
    before_writing(opened.backend.format, opened.user_session)
    tally, start = Tally(), time.monotonic()
    with (
        call("optimize", options.name, spark, tally.seconds) as whole,
        measure_phases(spark.sparkContext, tally.spent),
        group_jobs(spark, run),
    ):
        rewrite_plan = prepared(tally.seconds)
        whole.expected = rewrite_plan.prediction.bytes_rewritten
        tally.earlier = _clear(rewrite_plan)
        with (
            tally.reporting_versions(),
            _lineage(rewrite_plan, opened, tally, run),
            translate_errors(options.name),
        ):
            errors = _run_jobs(
                RewriteContext.begin(rewrite_plan, options, spark, run), opened, tally, start
            )
            if errors and not tally.versions:
                raise errors[-1]
        whole.note(**tally.facts())
    if tally.versions:
        refresh(opened.user_session, rewrite_plan.snapshot)
    with tally.reporting_versions():
        return _report(rewrite_plan, tally, options, run)


def _lineage(
    plan: AnyPlan, opened: _Opened, tally: Tally, run: str
) -> AbstractContextManager[None]:
    """Return a block in which a rewrite sends its events; without a rewrite there are none."""
    if plan.prediction.nothing_to_do:
        return nullcontext()

    def dataset() -> lineage.Dataset:
        conf = opened.user_session.conf
        return lineage.dataset_of(plan.snapshot, lambda name: conf.get(name, None))

    return lineage.rewriting(run, opened.options.name, dataset, tally.facts)


def _price_plan(plan: AnyPlan, options: Options) -> Plan:
    """Return the prediction of a plan, with what its cost in money depends on."""
    store = object_store(plan.snapshot.location, renames=plan.backend.format.renames)
    return replace(
        plan.prediction,
        object_store=store,
        prices=options.prices,
        relearning=options.relearning,
        unchosen=options.unchosen,
    )


def _clear(plan: AnyPlan) -> tuple[str, ...]:
    """Remove the files that dead runs have left; return lines for the report."""
    if not is_recoverable(plan.backend):
        return ()
    return clear(plan.backend.side_files(plan.snapshot), plan.snapshot, plan.files)


def _run_jobs(
    rewriting: RewriteContext, opened: _Opened, tally: Tally, start: float
) -> list[ConflictError]:
    """Run jobs, at least one, and return the conflicts that stopped some.

    No further one begins when the time is over, or a signal waits.
    """
    options, jobs = rewriting.options, rewriting.jobs

    def late() -> bool:
        limit = options.max_seconds
        return is_held() or (limit is not None and time.monotonic() - start > limit)

    if not jobs:
        return []
    rewriting.course.begin()
    with closing(rewriting.run):
        if len(jobs) > 1 and _may_run_side_by_side(options.max_concurrent_jobs, rewriting.spark):
            with threads(rewriting, opened.user_session, opened.factory) as writing:
                return side_by_side(writing, tally, late)
        errors = list[ConflictError]()
        for number, job in enumerate(jobs):
            if number and late():
                tally.jobs_left = len(jobs) - number
                break
            error = rewrite(rewriting, job, tally)
            errors += [] if error is None else [error]
        return errors


def _may_run_side_by_side(concurrent: int, spark: SparkSession) -> bool:
    """Return whether jobs are to run side by side, and warn if they should and cannot."""
    if concurrent > 1 and not has_own_threads(spark):
        _logger.warning(
            "max_concurrent_jobs=%d has no effect without PySpark's pinned threads; unset "
            "PYSPARK_PIN_THREAD",
            concurrent,
        )
        return False
    return concurrent > 1


def _report(rewrite_plan: AnyPlan, tally: Tally, options: Options, run: str) -> Report:
    empty = rewrite_plan.files.slice(0, 0)
    names = rewrite_plan.files.schema
    removed = pa.concat_tables([empty, *(exchange.removed for exchange in tally.exchanges)])
    added = [exchange.added for exchange in tally.exchanges]
    gone = set(removed["path"].to_pylist())
    files_after = pa.concat_tables(
        [without(rewrite_plan.files, gone), *(select_stats(table, names) for table in added)]
    )
    rows = sum(file_stats.total(table, "rows") for table in added)
    plan_of_call = _price_plan(rewrite_plan, options)
    return Report(
        table=plan_of_call.table,
        plan=plan_of_call,
        versions=tuple(tally.versions),
        files_removed=removed.num_rows,
        files_added=sum(table.num_rows for table in added),
        bytes_removed=file_stats.total(removed, "size"),
        bytes_added=sum(file_stats.total(table, "size") for table in added),
        rows_added=rows,
        rows_removed=rows,  # as many, which is verified before each commit
        share_after=rewrite_plan.share_read(files_after),
        stale=tuple(tally.stale),
        rebased=tally.rebased,
        jobs_left=tally.jobs_left,
        run=run,
        cost=tally.cost(plan_of_call),
        earlier_runs=tally.earlier,
        seconds=dict(tally.seconds),
        verification=tally.verification(options.verify),
        files=files_after,
    )
