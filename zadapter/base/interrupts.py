"""Signals that end a run: recorded on arrival, handled when no work is left unfinished.

An exception during a call to the JVM would leave the call running there, and it could write files
after the clean-up. A signal is therefore only recorded. Another thread cancels Spark's jobs, the
call fails, and staged files are discarded as after any failure. During a commit nothing is
cancelled, so that its outcome is known.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar
from uuid import uuid4

from zadapter.errors import UnknownOutcomeError

P = ParamSpec("P")
R = TypeVar("R")

TAG = "zadapter-"
"""Prefix of the tags of zadapter's Spark jobs."""
POLL = 0.1
"""Seconds between two checks for a signal."""
_ON_CANCEL = "spark.job.interruptOnCancel"


class Interrupted(KeyboardInterrupt):
    """A signal has ended a run, after its clean-up.

    Attributes:
        number: Number of the signal.
    """

    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(message)


class Watch:
    """The signal and the commits of a run."""

    def __init__(self, advice: str) -> None:
        self.advice = advice
        self.number: int | None = None
        self.deferring = False
        self.versions: list[int | None] = []

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Record a signal; later signals are ignored, since the run is already ending."""
        self.number = self.number or number

    def ending(self, unknown: str = "") -> Interrupted:
        """Return the exception that ends the run."""
        numbers = [version for version in self.versions if version is not None]
        done = "nothing was committed"
        if self.versions:
            done = f"versions committed by this call: {', '.join(map(str, numbers)) or 'unknown'}"
        parts = (f"interrupted; {unknown or done}", self.advice)
        return Interrupted(self.number or signal.SIGINT, ". ".join(filter(None, parts)))


_watches: list[Watch] = []
"""Watches of the runs in the main thread, innermost last."""


def terminate(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise Interrupted, as Ctrl-C does; a handler for SIGTERM."""
    raise Interrupted(number, "interrupted")


def deferred(commit: Callable[P, R]) -> Callable[P, R]:
    """Defer signals until *commit* returns; its result has a ``version``.

    Raises:
        Interrupted: A signal arrived before the commit; nothing was sent.
    """

    @wraps(commit)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.current_thread() is not threading.main_thread() or not _watches:
            return commit(*args, **kwargs)
        watch = _watches[-1]
        watch.deferring = True
        try:
            if watch.number is not None:
                raise watch.ending()
            landed = commit(*args, **kwargs)
            watch.versions.append(getattr(landed, "version", None))
            return landed
        finally:
            watch.deferring = False

    return wrapped


def stages_by_job(context: Any, tag: str) -> list[list[int]]:
    """Return the ids of the stages of each Spark job with a tag, both in ascending order."""
    # PySpark's tracker knows no tags
    tracker = context._jsc.sc().statusTracker()  # noqa: SLF001 - there is no public way
    infos = [tracker.getJobInfo(job) for job in sorted(tracker.getJobIdsForTag(tag))]
    return [sorted(info.get().stageIds()) for info in infos if info.isDefined()]


@contextmanager
def interruptible(context: Any, advice: str = "") -> Iterator[None]:
    """Tag the Spark jobs of a run; a signal cancels them and ends the run.

    Outside the main thread, where no signals arrive, jobs are only tagged. Signal handlers other
    than those of Python and PySpark, and :func:`terminate`, are not replaced.

    Args:
        context: The SparkContext.
        advice: Advice to the user after an interruption.

    Raises:
        Interrupted: A signal has ended the run, and the clean-up is done.
    """
    tag = f"{TAG}{uuid4().hex}"
    before = context.getLocalProperty(_ON_CANCEL)
    context.addJobTag(tag)
    context.setInterruptOnCancel(True)
    try:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        with _watched(context, tag, Watch(advice)):
            yield
    finally:
        with suppress(Exception):  # the JVM may be gone
            context.removeJobTag(tag)
            context.setLocalProperty(_ON_CANCEL, before)


@contextmanager
def _watched(context: Any, tag: str, watch: Watch) -> Iterator[None]:
    ended = threading.Event()
    canceller = threading.Thread(target=cancel, args=(context, tag, watch, ended), daemon=True)
    _watches.append(watch)
    canceller.start()
    taken = _take_over(watch)
    try:
        yield
    except Exception as error:
        if watch.number is None:
            raise
        unknown = str(error) if isinstance(error, UnknownOutcomeError) else ""
        raise watch.ending(unknown) from None
    finally:
        ended.set()
        canceller.join()
        for number, handler in taken.items():
            signal.signal(number, handler)
        _watches.remove(watch)
    if watch.number is not None:
        raise watch.ending()


def _take_over(watch: Watch) -> dict[int, Any]:
    """Replace the handlers that would raise an exception; return the replaced handlers."""
    taken: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        pyspark = str(getattr(handler, "__module__", "")).startswith("pyspark.")
        if pyspark or handler in (signal.default_int_handler, terminate):
            taken[number] = signal.signal(number, watch.note)
    return taken


def cancel(context: Any, tag: str, watch: Watch, ended: threading.Event) -> None:
    """Cancel a run's jobs, including those it starts later, after a signal.

    Args:
        context: The SparkContext.
        tag: Tag of the run's jobs.
        watch: Watch of the run.
        ended: Event that is set when the run has ended.
    """
    while not ended.wait(POLL):
        if watch.number is not None and not watch.deferring:
            with suppress(Exception):  # the JVM may be gone
                context.cancelJobsWithTag(tag)
