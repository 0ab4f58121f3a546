"""Signals that end a run: noted when they come, obeyed where nothing is left half done.

An exception in the middle of a call to the JVM would leave the call running there, with files that
come after the clean-up.  So a signal is only noted.  Spark's jobs are cancelled by another thread,
the call returns with their failure, and what was staged is discarded like after any failure.  While
a commit is under way nothing is cancelled, so that its outcome is known.
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
"""Start of the tag of our Spark jobs."""
POLL = 0.1
"""Seconds between two looks at whether a signal has come."""
_ON_CANCEL = "spark.job.interruptOnCancel"


class Interrupted(KeyboardInterrupt):
    """A run that a signal has ended, after its clean-up.

    Attributes:
        number: The signal.
    """

    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(message)


class Watch:
    """What signals have come during a run, and what was committed."""

    def __init__(self, advice: str) -> None:
        self.advice = advice
        self.number: int | None = None
        self.deferring = False
        self.versions: list[int | None] = []

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal; later ones find the run ending already."""
        self.number = self.number or number

    def ending(self, unknown: str = "") -> Interrupted:
        """Return the exception that ends the run."""
        numbers = [each for each in self.versions if each is not None]
        done = "nothing was committed"
        if self.versions:
            done = f"committed before, and to stay: {', '.join(map(str, numbers)) or 'a version'}"
        said = (f"interrupted; {unknown or done}", self.advice)
        return Interrupted(self.number or signal.SIGINT, ". ".join(filter(None, said)))


_watches: list[Watch] = []
"""Those of runs in the main thread, innermost last."""


def terminate(number: int, _frame: FrameType | None) -> NoReturn:
    """End the process as Ctrl-C does; a handler for SIGTERM."""
    raise Interrupted(number, "interrupted")


def deferred(commit: Callable[P, R]) -> Callable[P, R]:
    """Let a commit end before a signal is obeyed; *commit* returns what has a ``version``.

    Raises:
        Interrupted: A signal had come before; nothing was sent.
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


@contextmanager
def interruptible(context: Any, advice: str = "") -> Iterator[None]:
    """Tag the Spark jobs of a run, and have a signal cancel these and end the run.

    In other threads than the main one, where no signals arrive, jobs are tagged only.  A handler
    that is neither Python's, PySpark's nor :func:`terminate` stays in charge.

    Args:
        context: The SparkContext.
        advice: What to do after an interruption.

    Raises:
        Interrupted: A signal has come, and everything was cleaned up.
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
    """Handle the signals that would raise; return what has handled them before."""
    taken: dict[int, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(number)
        pyspark = str(getattr(handler, "__module__", "")).startswith("pyspark.")
        if pyspark or handler in (signal.default_int_handler, terminate):
            taken[number] = signal.signal(number, watch.note)
    return taken


def cancel(context: Any, tag: str, watch: Watch, ended: threading.Event) -> None:
    """Cancel a run's jobs, and those it starts later, once a signal has come.

    Args:
        context: The SparkContext.
        tag: Of the run's jobs.
        watch: Of the run.
        ended: Is set when the run has ended.
    """
    while not ended.wait(POLL):
        if watch.number is not None and not watch.deferring:
            with suppress(Exception):  # the JVM may be gone
                context.cancelJobsWithTag(tag)
