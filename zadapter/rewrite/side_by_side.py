"""Jobs of one call that run side by side.

Rows are written and verified in threads. Each thread has a clone of the session and a backend of
its own, since writes change settings of their session. Commits are made one by one in the thread of
the call, where signals are deferred until the outcome is known.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from py4j.clientserver import ClientServer
from pyspark.sql import SparkSession

from zadapter.arguments.options import Options
from zadapter.backend.contract import Backend, Factory
from zadapter.base.interrupts import Interrupted
from zadapter.errors import ConflictError, UnknownOutcomeError
from zadapter.releases.spark_classes import activated
from zadapter.rewrite.job import AnyJob, AnyPlan, Ready, Tally, landed, prepared
from zadapter.spark.clone import scratch
from zadapter.spark.files import discard

Place = tuple[SparkSession, Backend]
Prepared = tuple[Ready, Tally]


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Threads that write jobs, each with a session and a backend of its own."""

    plan: AnyPlan
    options: Options
    pool: ThreadPoolExecutor = field(repr=False)
    places: "SimpleQueue[Place]" = field(repr=False)
    properties: Any = field(repr=False)
    """Local properties of Spark in the thread of the call, such as tags of its jobs."""

    def start(self, job: AnyJob) -> "Future[Prepared]":
        """Start a job in one of the threads."""
        return self.pool.submit(copy_context().run, self._prepared, job)

    def _prepared(self, job: AnyJob) -> Prepared:
        spark, backend = place = self.places.get()
        try:
            with activated(spark):
                scala = spark.sparkContext._jsc.sc()  # noqa: SLF001 - there is no public way
                scala.setLocalProperties(self.properties.clone())
                plan, tally = replace(self.plan, backend=backend), Tally()
                return prepared(plan, job, spark, self.options, tally), tally
        finally:
            self.places.put(place)


def possible(spark: SparkSession) -> bool:
    """Return whether each thread of Python has a thread of Java, with properties of its own."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - as pyspark.util does
    return isinstance(gateway, ClientServer)


@contextmanager
def threads(
    plan: AnyPlan,
    options: Options,
    spark: SparkSession,
    user_session: SparkSession,
    factory: Factory,
) -> Iterator[Threads]:
    """Open a session and a backend for each of the jobs that may run side by side."""
    with ExitStack() as opened:
        places: SimpleQueue[Place] = SimpleQueue()
        for _ in range(options.max_concurrent_jobs):
            clone = opened.enter_context(scratch(user_session))
            places.put((clone, opened.enter_context(closing(factory(clone)))))
        opened.enter_context(activated(spark))
        properties = spark.sparkContext._jsc.sc().getLocalProperties()  # noqa: SLF001
        pool = opened.enter_context(ThreadPoolExecutor(options.max_concurrent_jobs))
        yield Threads(plan=plan, options=options, pool=pool, places=places, properties=properties)


def run(
    writing: Threads, spark: SparkSession, tally: Tally, late: Callable[[], bool]
) -> list[ConflictError]:
    """Run the jobs of a plan side by side; return the conflicts that stopped some.

    After a failure, no further job starts, and the error is raised when the running ones have
    landed.

    Args:
        writing: The threads.
        spark: The session of the commits.
        tally: Gets the results.
        late: Returns whether no further job is to start; one job runs anyway.
    """
    course = _Course(writing=writing, spark=spark, tally=tally, waiting=list(writing.plan.jobs))
    try:
        while course.start(late):
            course.finish()
    except BaseException:
        course.discard()
        raise
    if course.failures:
        unknown = (each for each in course.failures if isinstance(each, UnknownOutcomeError))
        raise next(unknown, course.failures[0])
    return course.errors


@dataclass(kw_only=True)
class _Course:
    """The jobs of a run: those that wait, and those that threads write."""

    writing: Threads
    spark: SparkSession
    tally: Tally
    waiting: list[AnyJob]
    running: "set[Future[Prepared]]" = field(default_factory=set)
    errors: list[ConflictError] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    started: int = 0

    def start(self, late: Callable[[], bool]) -> bool:
        """Start jobs until the threads are busy; return whether any job is running."""
        while self.waiting and len(self.running) < self.writing.options.max_concurrent_jobs:
            if self.failures or (self.started and late()):
                self.tally.jobs_left, self.waiting = len(self.waiting), []
                break
            self.running.add(self.writing.start(self.waiting.pop(0)))
            self.started += 1
        return bool(self.running)

    def finish(self) -> None:
        """Wait for jobs, and commit those that are ready."""
        for each in wait(self.running, return_when=FIRST_COMPLETED).done:
            self.running.remove(each)  # whatever happens now, its files may be committed
            self._land(each)

    def _land(self, done: "Future[Prepared]") -> None:
        """Commit a job that a thread has prepared, or note the error that stopped it."""
        writing = self.writing
        try:
            ready, own = done.result()
            self.tally.add(own)
            error = landed(writing.plan, ready, self.spark, writing.options, self.tally)
        except ConflictError as conflict:
            self.tally.stale.append(str(conflict))
            error = conflict
        except (Exception, Interrupted) as failure:  # noqa: BLE001 - raised when all have landed
            self.failures.append(failure)
            return
        self.errors += [] if error is None else [error]

    def discard(self) -> None:
        """Wait for jobs that will not be committed, and discard their files."""
        for each in wait(self.running).done:
            with suppress(Exception):
                ready, _ = each.result()
                discard(self.spark, ready.written)
