"""Cost of a rewrite: seconds, and metrics of Spark and the JVM."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from integration.bench.measures.calls import Clock


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost of one rewrite.

    Attributes:
        seconds: Wall-clock time.
        core_seconds: Seconds of CPU of this process and its JVM, which other work hardly changes.
        rows_read: Rows read from files.
        bytes_read: Bytes read from files by Spark's metrics, which omit vectored reads.
        bytes_shuffled: Bytes of shuffle writes.
        bytes_spilled: Bytes spilled to disk.
        task_seconds: Total time of all tasks.
        cpu_seconds: CPU time of all tasks, which other load on the machine hardly affects.
        heap: Peak bytes of the JVM's heap.
    """

    seconds: float
    core_seconds: float = 0
    rows_read: int = 0
    bytes_read: int = 0
    bytes_shuffled: int = 0
    bytes_spilled: int = 0
    task_seconds: float = 0
    cpu_seconds: float = 0
    heap: int = 0


def measured(spark: SparkSession, work: Callable[[], object]) -> Effort:
    """Run *work* and return its cost, after flushing disks and collecting garbage."""
    os.sync()
    jvm = spark._jvm  # noqa: SLF001 - listeners and the JVM have no public door
    jvm.System.gc()
    pools = list(jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans())
    heaps = [pool for pool in pools if str(pool.getType().name()) == "HEAP"]
    for pool in heaps:
        pool.resetPeakUsage()
    before = _stages(spark)
    clock = Clock.of(spark)
    work()
    passed = clock.since()
    stages = [stage for number, stage in _stages(spark).items() if number not in before]
    return Effort(
        seconds=round(passed.seconds, 3),
        core_seconds=round(passed.core_seconds, 2),
        rows_read=sum(stage.inputRecords() for stage in stages),
        bytes_read=sum(stage.inputBytes() for stage in stages),
        bytes_shuffled=sum(stage.shuffleWriteBytes() for stage in stages),
        bytes_spilled=sum(stage.diskBytesSpilled() for stage in stages),
        task_seconds=sum(stage.executorRunTime() for stage in stages) / 1_000,
        cpu_seconds=round(sum(stage.executorCpuTime() for stage in stages) / 1e9, 3),
        heap=sum(pool.getPeakUsage().getUsed() for pool in heaps),
    )


def _stages(spark: SparkSession) -> dict[tuple[int, int], object]:
    """Return Spark's stages so far, after all listener events have arrived."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001
    context.listenerBus().waitUntilEmpty()
    lists = spark._jvm.java.util.ArrayList  # noqa: SLF001
    quantiles = spark.sparkContext._gateway.new_array(spark._jvm.double, 0)  # noqa: SLF001
    stages = context.statusStore().stageList(lists(), False, False, quantiles, lists())  # noqa: FBT003
    every = [stages.apply(at) for at in range(stages.size())]
    return {(stage.stageId(), stage.attemptId()): stage for stage in every}
