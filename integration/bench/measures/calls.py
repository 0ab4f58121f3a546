"""Cost of one call: seconds, those of the cores, commands to the JVM and jobs of Spark."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

_FINALIZER = "m\n"
"""How py4j's commands begin that forget an object of Java."""


@dataclass(frozen=True)
class Cost:
    """Cost of one call.

    Attributes:
        seconds: Wall-clock time.
        core_seconds: Seconds of CPU of this process and its JVM, which other work hardly changes.
        commands: Commands to the JVM by py4j, without those that forget objects.
        jobs: Jobs of Spark.
    """

    seconds: float
    core_seconds: float
    commands: int = 0
    jobs: int = 0

    def __str__(self) -> str:
        return (
            f"{self.seconds:.2f} s, {self.core_seconds:.2f} core s, {self.commands} commands, "
            f"{self.jobs} jobs"
        )


@dataclass(frozen=True)
class Clock:
    """Time, and seconds of CPU of this process and its JVM."""

    java: int
    seconds: float
    busy: float

    @classmethod
    def of(cls, spark: SparkSession) -> "Clock":
        """Read the clocks."""
        java = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 - no door
        return cls(java, time.perf_counter(), _busy(java))

    def since(self) -> Cost:
        """Return what has passed."""
        return Cost(time.perf_counter() - self.seconds, _busy(self.java) - self.busy)


def cost(spark: SparkSession, work: Callable[[], object]) -> Cost:
    """Run *work*, and return what it has cost."""
    jobs = _jobs(spark)
    clock = Clock.of(spark)
    with _counted(spark) as commands:
        work()
        passed = clock.since()
    return Cost(passed.seconds, passed.core_seconds, len(commands), _jobs(spark) - jobs)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        median(each.seconds for each in costs),
        median(each.core_seconds for each in costs),
        round(median(each.commands for each in costs)),
        round(median(each.jobs for each in costs)),
    )


@contextmanager
def _counted(spark: SparkSession) -> Iterator[list[str]]:
    """Collect the commands that this process sends to the JVM."""
    client = spark._jvm._gateway_client  # noqa: SLF001 - py4j counts nothing itself
    send, commands = client.send_command, list[str]()

    def counted(command: str, *arguments: object, **options: object) -> object:
        if not command.startswith(_FINALIZER):
            commands.append(command)
        return send(command, *arguments, **options)

    client.send_command = counted
    try:
        yield commands
    finally:
        client.send_command = send


def _jobs(spark: SparkSession) -> int:
    """Return the number of Spark's jobs so far, after all listener events have arrived."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - the status store has no public door
    context.listenerBus().waitUntilEmpty()
    return int(context.statusStore().jobsList(spark._jvm.java.util.ArrayList()).size())  # noqa: SLF001


def _busy(java: int) -> float:
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()
