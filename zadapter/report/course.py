"""The course of a run: jobs and bytes done and left, and the seconds left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zadapter.base.interrupts import ignoring_errors
from zadapter.base.phases import LOGGER
from zadapter.base.quantities import show, show_part
from zadapter.base.secrets import mask_secrets

_MINUTE, _HOUR = 60, 3600
_SOON = 100
"""Seconds up to which a duration is shown in seconds."""


@dataclass(slots=True, kw_only=True)
class Course:
    """Progress of a run. Only the thread of the call changes it."""

    run: str
    """Id of the run."""
    table: str
    """The table as the caller named it."""
    sizes: Sequence[int]
    """Bytes of the files that each job replaces."""
    done: int = 0
    """Number of jobs that have ended, committed or not."""
    bytes_done: int = 0
    """Bytes of the files that they were to replace."""
    clock: Callable[[], float] = time.monotonic
    started: float = 0.0

    def begin(self) -> None:
        """Log the run, its jobs and their bytes."""
        self.started = self.clock()
        jobs = f"{len(self.sizes)} job{'s' * (len(self.sizes) != 1)}"
        self._log("run", f"{self.run}, {jobs} of {show(sum(self.sizes))}", self.facts(0.0))

    def name(self, number: int) -> str:
        """Return the name of a job among several, counted from 0; empty if it is the only one."""
        return f"job {number + 1} of {len(self.sizes)}" if len(self.sizes) > 1 else ""

    def end(self, number: int, outcome: str) -> None:
        """Count a job that has ended, and log what is left, unless it is the only job."""
        self.done += 1
        self.bytes_done += self.sizes[number]
        if len(self.sizes) > 1:
            elapsed, total = self.clock() - self.started, sum(self.sizes)
            text = f"{self.name(number)} {outcome}, {show_part(self.bytes_done, total)} done"
            left = seconds_left(elapsed, self.bytes_done, total)
            ahead = "" if left is None else f", {show_seconds(left)} left"
            self._log("job", f"{text} in {show_seconds(elapsed)}{ahead}", self.facts(elapsed))

    def facts(self, elapsed: float) -> dict[str, str | int | float | None]:
        """Return jobs and bytes done and left, and the seconds left, None while they are unknown.

        Args:
            elapsed: Seconds since the run began.
        """
        total = sum(self.sizes)
        return {
            "run": self.run,
            "jobs_done": self.done,
            "jobs_left": len(self.sizes) - self.done,
            "bytes_done": self.bytes_done,
            "bytes_left": total - self.bytes_done,
            "seconds_left": seconds_left(elapsed, self.bytes_done, total),
        }

    def _log(self, kind: str, text: str, facts: dict[str, str | int | float | None]) -> None:
        table = mask_secrets(self.table)
        extra = {"phase": kind, "table": table, **facts}
        with ignoring_errors():  # of handlers of the log
            LOGGER.info("%s %s: %s", kind, table, text, extra=extra)


def seconds_left(elapsed: float, done: int, total: int) -> float | None:
    """Return the seconds that the rest takes at the same rate; None if nothing is done yet.

    >>> seconds_left(30.0, 1024, 4096)
    90.0
    """
    return elapsed * (total - done) / done if done else None


def show_seconds(seconds: float) -> str:
    """Return a duration as text.

    >>> show_seconds(42.3), show_seconds(600), show_seconds(9000)
    ('42 s', '10 min', '2 h 30 min')
    """
    if seconds < _SOON:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE)
    hours, rest = divmod(minutes, _HOUR // _MINUTE)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"
