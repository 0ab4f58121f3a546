"""Run as a script: stages that Spark runs again in a session of its own, and what they took.

A local session that has lost shuffle files takes its own process for a lost executor, and ends the
process sixty heartbeats later: no other test may use it.
"""

import json
from itertools import product
from pathlib import Path

from pyspark.sql import SparkSession

from zadapter.spark.jobs import read_amounts
from zadapter.spark.jvm.gateway import stages_by_job


def main():
    """Print what ``read_amounts`` says of repeated stages, and each task of theirs, as JSON."""
    # tasks without a preferred place run in their order: those that can succeed come first
    nowhere = SparkSession.builder.config("spark.shuffle.reduceLocality.enabled", "false")
    session = nowhere.master("local[2]").getOrCreate()
    context = session.sparkContext
    numbers = context.parallelize(range(1_000), 2)
    rows = numbers.union(numbers.map(lambda n: (n % 7, n)).groupByKey(2))
    rows.count()
    for file in shuffle_files(context):
        file.unlink()
    context.addJobTag("zadapter-repeated")
    rows.count()
    context._jsc.sc().listenerBus().waitUntilEmpty()  # noqa: SLF001 - no public door
    found = read_amounts(context, "zadapter-repeated")
    tasks = list(tasks_of(context, "zadapter-repeated"))
    print(json.dumps([found.core_seconds, found.shuffled, tasks]))
    session.stop()


def shuffle_files(context):
    """Return the shuffle files that the session's process has written."""
    env = context._jvm.org.apache.spark.SparkEnv.get()  # noqa: SLF001 - no public door
    folders = [Path(each.getPath()) for each in env.blockManager().diskBlockManager().localDirs()]
    return [file for folder in folders for file in folder.rglob("shuffle_*")]


def tasks_of(context, tag):
    """Yield attempt, run time and shuffled bytes of each task of a tag's jobs."""
    store = context._jsc.sc().statusStore()  # noqa: SLF001 - no public door
    stages = {stage for job in stages_by_job(context, tag) for stage in job}
    for stage, attempt in product(stages, range(2)):
        if attempt <= store.lastStageAttempt(stage).attemptId():
            tasks = store.taskList(stage, attempt, 100)
            found = [tasks.apply(at).taskMetrics() for at in range(tasks.size())]
            for metrics in (each.get() for each in found if each.isDefined()):
                written = metrics.shuffleWriteMetrics().bytesWritten()
                yield attempt, metrics.executorRunTime(), written


if __name__ == "__main__":
    main()
