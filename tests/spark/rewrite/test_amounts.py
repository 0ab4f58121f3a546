"""What Spark's tasks have taken, where Spark runs stages again."""

from itertools import product
from pathlib import Path

from zadapter.base.interrupts import stages_by_job
from zadapter.spark.jobs import processed


def test_the_cost_of_repeated_stages_is_measured(spark):
    """Spark runs the stages again that wrote lost shuffle files, and those that failed to read."""
    context = spark.sparkContext
    before = set(shuffle_files(context))
    numbers = context.parallelize(range(1_000), 2)
    rows = numbers.union(numbers.map(lambda n: (n % 7, n)).groupByKey(2))
    rows.count()
    for file in set(shuffle_files(context)) - before:
        file.unlink()
    context.addJobTag("zadapter-repeated")
    try:
        rows.count()
    finally:
        context.removeJobTag("zadapter-repeated")
    context._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 - no public door

    found = processed(context, "zadapter-repeated")

    tasks = tasks_of(context, "zadapter-repeated")
    assert {attempt for attempt, *_ in tasks} == {0, 1}
    assert found.core_seconds == sum(milliseconds for _, milliseconds, _ in tasks) / 1_000
    assert found.shuffled == sum(written for *_, written in tasks) > 0


def shuffle_files(context):
    """Return the shuffle files that the session's process has written."""
    env = context._jvm.org.apache.spark.SparkEnv.get()  # noqa: SLF001 - no public door
    for folder in env.blockManager().diskBlockManager().localDirs():
        yield from Path(folder.getPath()).rglob("shuffle_*")


def tasks_of(context, tag):
    """Return attempt, run time and shuffled bytes of each task of a tag's jobs."""
    store, found = context._jsc.sc().statusStore(), []  # noqa: SLF001 - no public door
    stages = {stage for job in stages_by_job(context, tag) for stage in job}
    for stage, attempt in product(stages, range(2)):
        if attempt <= store.lastStageAttempt(stage).attemptId():
            tasks = store.taskList(stage, attempt, 100)
            metrics = [tasks.apply(at).taskMetrics() for at in range(tasks.size())]
            found += [
                (attempt, each.get().executorRunTime(), written_by(each.get()))
                for each in metrics
                if each.isDefined()
            ]
    return found


def written_by(metrics):
    """Return the bytes that a task has written for a shuffle."""
    return metrics.shuffleWriteMetrics().bytesWritten()
