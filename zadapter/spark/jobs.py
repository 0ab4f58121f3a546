"""Descriptions of Spark jobs by the phase that starts them, and the bytes they write."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from zadapter.base import phases
from zadapter.base.interrupts import TAG, ignoring_errors
from zadapter.base.phases import Amounts, Phase
from zadapter.spark.jvm.gateway import gateway_of, job_status, jvm_of, stages_by_job
from zadapter.spark.jvm.java_classes import java_classes

_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"
_PATIENCE = 1_000
"""Milliseconds that a phase waits for Spark's metrics; of slower listeners they stay unknown."""


@contextmanager
def call(
    name: str, table: str, spark: SparkSession, seconds: MutableMapping[str, float] | None = None
) -> Iterator[Phase]:
    """Run a public function as a call, and describe the Spark jobs of its phases in Spark's UI.

    Args:
        name: Name of the function.
        table: The table as the caller named it.
        spark: A session; the caller's description of jobs is restored.
        seconds: Gets the duration as ``total``.
    """
    observer = partial(describe_jobs, spark.sparkContext)
    with phases.observing(observer), phases.call(name, table, seconds) as whole:
        yield whole


@contextmanager
def group_jobs(spark: SparkSession, run: str) -> Iterator[None]:
    """Put the Spark jobs of a run into a group of its id, unless the caller has set a group.

    Args:
        spark: A session.
        run: Id of the run; ``cancelJobGroup`` takes it.
    """
    context = spark.sparkContext
    if context.getLocalProperty(_GROUP) is not None:
        yield
        return
    context.setLocalProperty(_GROUP, run)
    try:
        yield
    finally:
        with ignoring_errors():  # the JVM may be gone
            context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]


@contextmanager
def describe_jobs(context: Any, step: Phase) -> Iterator[None]:
    """Describe the Spark jobs of a phase, such as ``zadapter: write t, job 2 of 5``; measure them.

    Errors do not reach the call: see ``zadapter.base.phases``.

    Args:
        context: The SparkContext.
        step: The phase.
    """
    tag = f"{TAG}{step.name}-{uuid4().hex}"
    before = context.getLocalProperty(_DESCRIPTION)
    context.addJobTag(tag)
    part = f", {step.job}" if step.job else ""
    context.setLocalProperty(_DESCRIPTION, f"zadapter: {step.name} {step.table}{part}")
    step.measure = partial(read_amounts, context, tag)
    try:
        yield
    finally:
        context.removeJobTag(tag)
        context.setLocalProperty(_DESCRIPTION, before)


def read_amounts(context: Any, tag: str) -> Amounts:
    """Return what the jobs of *tag* have processed, from Spark's metrics.

    Reads are counted by tasks: Spark knows no bytes of reads that bypass Hadoop's statistics.

    Args:
        context: The SparkContext.
        tag: Tag of the jobs.
    """
    jobs = stages_by_job(context, tag)
    if not jobs:
        return Amounts(share_read=0.0, written=0)
    store = job_status(context).stages
    found = {stage: store.lastStageAttempt(stage) for job in jobs for stage in job}
    # the last stage of a job writes, unless it is the only one
    reads = [found[stage] for job in jobs[-1:] for stage in job[: max(1, len(job) - 1)]]
    tasks = sum(stage.numTasks() for stage in reads)
    every = [each for stage in found.values() for each in _attempts(context, store, stage)]
    return Amounts(
        share_read=sum(stage.numCompleteTasks() for stage in reads) / tasks if tasks else 0.0,
        written=sum(stage.outputBytes() for stage in every),
        shuffled=sum(stage.shuffleWriteBytes() for stage in every),
        core_seconds=sum(stage.executorRunTime() for stage in every) / 1_000,
    )


def _attempts(context: Any, store: Any, last: Any) -> list[Any]:
    """Return the attempts of a stage: Spark repeats tasks of a stage whose results are lost."""
    if last.attemptId() == 0:
        return [last]
    lists = java_classes(context).java.util.ArrayList
    no_quantiles = gateway_of(context).new_array(jvm_of(context).double, 0)
    found = store.stageData(last.stageId(), False, lists(), False, no_quantiles)  # noqa: FBT003
    return [found.apply(at) for at in range(found.size())]


@contextmanager
def measure_phases(context: Any, spent: list[Amounts | None]) -> Iterator[None]:
    """Measure what the phases of calls in this thread take; see :func:`call`.

    Args:
        context: The SparkContext.
        spent: Gets the amounts of each phase that ends; None: Spark does not tell.
    """

    @contextmanager
    def observer(step: Phase) -> Iterator[None]:
        try:
            yield
        finally:
            spent.append(_spent(context, step))

    with phases.observing(observer):
        yield


def _spent(context: Any, step: Phase) -> Amounts | None:
    with ignoring_errors():
        # metrics of the last tasks may still be on their way to the status store
        job_status(context).events.waitUntilEmpty(_PATIENCE)
        return None if step.measure is None else step.measure()
    return None
