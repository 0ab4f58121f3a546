"""Jobs of one call that run side by side.

Rows are written and verified in threads. Each thread has a clone of the session and a backend of
its own, since writes change settings of their session. Commits are made one by one in the thread of
the call, where signals are deferred until the outcome is known.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend, Factory
from zadapter.base.interrupts import Interrupted, ignoring_errors
from zadapter.errors import ConflictError, UnknownOutcomeError
from zadapter.rewrite.job import (
    AnyJob,
    Ready,
    RewriteContext,
    commit_job,
    prepare_job,
    record_conflict,
)
from zadapter.rewrite.tally import Tally
from zadapter.spark.clone import scratch
from zadapter.spark.files import discard
from zadapter.spark.jvm.gateway import scala_context
from zadapter.spark.jvm.spark_classes import activate

Place = tuple[SparkSession, Backend]
Prepared = tuple[Ready, Tally]


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Threads that write jobs, each with a session and a backend of its own."""

    call: RewriteContext
    pool: ThreadPoolExecutor = field(repr=False)
    places: "SimpleQueue[Place]" = field(repr=False)
    properties: Any = field(repr=False)
    """Local properties of Spark in the thread of the call, such as tags of its jobs."""

    def start(self, job: AnyJob) -> "Future[Prepared]":
        """Start a job in one of the threads."""
        return self.pool.submit(copy_context().run, self._prepare, job)

    def _prepare(self, job: AnyJob) -> Prepared:
        spark, backend = place = self.places.get()
        try:
            with activate(spark):
                scala = scala_context(spark.sparkContext)
                scala.setLocalProperties(self.properties.clone())
                plan, tally = replace(self.call.plan, backend=backend), Tally()
                return prepare_job(replace(self.call, plan=plan, spark=spark), job, tally), tally
        finally:
            self.places.put(place)


@contextmanager
def threads(
    call: RewriteContext, user_session: SparkSession, factory: Factory
) -> Iterator[Threads]:
    """Open a session and a backend for each of the jobs that may run side by side."""
    count = call.options.max_concurrent_jobs
    with ExitStack() as opened:
        places: SimpleQueue[Place] = SimpleQueue()
        for _ in range(count):
            clone = opened.enter_context(scratch(user_session))
            places.put((clone, opened.enter_context(closing(factory(clone)))))
        opened.enter_context(activate(call.spark))
        properties = scala_context(call.spark.sparkContext).getLocalProperties()
        pool = opened.enter_context(ThreadPoolExecutor(count))
        yield Threads(call=call, pool=pool, places=places, properties=properties)


def run(writing: Threads, tally: Tally, late: Callable[[], bool]) -> list[ConflictError]:
    """Run the jobs of a plan side by side; return the conflicts that stopped some.

    After a failure, no further job starts, and the error is raised when the running ones have
    landed.

    Args:
        writing: The threads.
        tally: Gets the results.
        late: Returns whether no further job is to start; one job runs anyway.
    """
    flow = _Flow(writing=writing, tally=tally, waiting=list(writing.call.jobs))
    try:
        while flow.start(late):
            flow.finish()
    except BaseException:
        flow.discard()
        raise
    if flow.failures:
        unknown = (each for each in flow.failures if isinstance(each, UnknownOutcomeError))
        raise next(unknown, flow.failures[0])
    return flow.errors


@dataclass(kw_only=True)
class _Flow:
    """The jobs of a run: those that wait, and those that threads write."""

    writing: Threads
    tally: Tally
    waiting: list[AnyJob]
    running: "dict[Future[Prepared], AnyJob]" = field(default_factory=dict)
    errors: list[ConflictError] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    started: int = 0

    def start(self, late: Callable[[], bool]) -> bool:
        """Start jobs until the threads are busy; return whether any job is running."""
        while self.waiting and len(self.running) < self.writing.call.options.max_concurrent_jobs:
            if self.failures or (self.started and late()):
                self.tally.jobs_left, self.waiting = len(self.waiting), []
                break
            job = self.waiting.pop(0)
            self.running[self.writing.start(job)] = job
            self.started += 1
        return bool(self.running)

    def finish(self) -> None:
        """Wait for jobs, and commit those that are ready."""
        for each in wait(self.running, return_when=FIRST_COMPLETED).done:
            job = self.running.pop(each)  # from now on, its files may be committed
            self._land(each, job)

    def _land(self, done: "Future[Prepared]", job: AnyJob) -> None:
        """Commit a job that a thread has prepared, or note the error that stopped it."""
        call = self.writing.call
        try:
            ready, own = done.result()
            self.tally.add(own)
            error = commit_job(call, ready, self.tally)
        except ConflictError as conflict:
            error = record_conflict(call, job, conflict, self.tally)
        except (Exception, Interrupted) as failure:  # noqa: BLE001 - raised when all have landed
            self.failures.append(failure)
            return
        self.errors += [] if error is None else [error]

    def discard(self) -> None:
        """Wait for jobs that will not be committed, and discard their files."""
        for each in wait(self.running).done:
            with ignoring_errors():
                ready, _ = each.result()
                discard(self.writing.call.spark, ready.written)
