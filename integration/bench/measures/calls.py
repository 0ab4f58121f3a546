"""Cost of one call: seconds, those of the cores, commands to the JVM and jobs of Spark."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

_FINALIZER = "m\n"
"""How py4j's commands begin that forget an object of Java."""
_LOOK = 0.2
"""Seconds between two looks at the processes of a command."""


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
        spent = f"{self.seconds:.2f} s, {self.core_seconds:.2f} core s"
        counts = f", {self.commands} commands, {self.jobs} jobs" if self.commands else ""
        return spent + counts


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
    return _core_seconds(_stat(java)) + time.process_time()


def _stat(process: int | str) -> list[str]:
    """Return the fields of ``/proc/<pid>/stat`` behind the name, which may contain spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _core_seconds(stat: Sequence[str]) -> float:
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def run_process(command: Sequence[str]) -> Cost:
    """Run a command, and return what it and its processes have cost.

    A JVM outlives the Python that waits for no child, so all are looked at while they run. What
    they do between the last look and their end is missed.

    Raises:
        CalledProcessError: The command has failed.
    """
    start, spent = time.perf_counter(), dict[str, float]()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while process.poll() is None:
            spent |= _spent_in_session(process.pid)
            time.sleep(_LOOK)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - start, sum(spent.values()))


def _spent_in_session(session: int) -> dict[str, float]:
    """Return the core seconds of each process of a session of the system, by its id."""
    found = dict[str, float]()
    for folder in Path("/proc").iterdir():
        with suppress(OSError, IndexError):  # no process, or it has ended
            if folder.name.isdecimal() and int((stat := _stat(folder.name))[3]) == session:
                found[folder.name] = _core_seconds(stat)
    return found
