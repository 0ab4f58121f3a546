"""Signals that end a run: recorded on arrival, handled when no work is left unfinished.

An exception during a call to the JVM would leave the call running there, and it could write files
after the clean-up; py4j would also send the call again, or lose the exception. A signal is
therefore only recorded, and so is the exception of a handler of the caller, such as the one of a
time limit. Another thread cancels Spark's jobs, the call fails, and staged files are discarded as
after any failure. During a commit nothing is cancelled, so that its outcome is known.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from types import FrameType
from typing import Any, NoReturn, ParamSpec, TypeVar
from uuid import uuid4

from zadapter.base.java_errors import java_exception
from zadapter.base.printable import abridge
from zadapter.errors import ConflictError, UnknownOutcomeError

P = ParamSpec("P")
R = TypeVar("R")

TAG = "zadapter-"
"""Prefix of the tags of zadapter's Spark jobs."""
POLL = 0.1
"""Seconds between two checks for a signal."""
_ON_CANCEL = "spark.job.interruptOnCancel"
_RAISED_BY_STEPS = frozenset(
    {
        "builtins",
        *sys.stdlib_module_names,
        *("click", "filelock", "fsspec", "matplotlib", "numpy", "obstore", "opentelemetry"),
        *("py4j", "pyarrow", "pyiceberg", "pyspark", "rich", "tomli", "typer"),
    }
)
"""Packages whose exceptions the steps of a call raise themselves, besides zadapter's."""
_DEEPEST = 32


class Interrupted(KeyboardInterrupt):
    """A signal has ended a run, after its clean-up.

    Attributes:
        number: Number of the signal.
    """

    def __init__(self, number: int, message: str) -> None:
        self.number = number
        super().__init__(message)


class Watch:
    """The signal, or the exception of a handler, and the commits of a run."""

    def __init__(self, advice: str) -> None:
        self.advice = advice
        self.number: int | None = None
        self.raised: BaseException | None = None
        self.deferring = False
        self.versions: list[int | None] = []

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Record a signal; later signals are ignored, since the run is already ending."""
        self.number = self.number or number

    @property
    def is_ending(self) -> bool:
        """Return whether a signal ends the run."""
        return self.number is not None or self.raised is not None

    def ending(self, unknown: str = "") -> BaseException:
        """Return the exception that ends the run."""
        numbers = [version for version in self.versions if version is not None]
        done = "nothing was committed"
        if self.versions:
            done = f"versions committed by this call: {abridge(numbers) or 'unknown'}"
        text = ". ".join(filter(None, (unknown or done, self.advice)))
        if self.raised is None:
            return Interrupted(self.number or signal.SIGINT, f"interrupted; {text}")
        add_note = getattr(self.raised, "add_note", None)  # since Python 3.11
        if add_note is not None and text not in getattr(self.raised, "__notes__", ()):
            add_note(text)
        return self.raised


@dataclass(frozen=True, slots=True)
class Recorder:
    """Handler of a signal during a run, in place of the caller's."""

    watch: Watch
    handler: Callable[[int, FrameType | None], object]
    """The caller's handler. It runs when the signal arrives; its exception waits."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Run the caller's handler, and record its exception."""
        try:
            self.handler(number, frame)
        except BaseException as error:  # noqa: BLE001 - raised at the end of the run
            self.watch.raised = self.watch.raised or error


_watches: list[Watch] = []
"""Watches of the runs in the main thread, innermost last."""
_held: ContextVar[Watch | None] = ContextVar("zadapter_held", default=None)
"""Watch of the block of :func:`holding_signals` around, also in threads with its context."""
_given: ContextVar[Watch | None] = ContextVar("zadapter_given", default=None)
"""Watch of the block of :func:`watching` around."""


def terminate(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise Interrupted, as Ctrl-C does; a handler for SIGTERM."""
    raise Interrupted(number, "interrupted")


def callers_exception(error: BaseException) -> BaseException | None:
    """Return the exception of the caller that *error* is, or was raised for; None if there is none.

    A time limit, or another thread, can raise it between any two steps of a call. It states nothing
    about the step that it stopped, so it must neither be ignored nor be taken for a failure of
    Spark or of a store. Exceptions of packages that zadapter does not use are the caller's, and so
    are those of the caller's own modules. Contexts do not count: they may be exceptions that the
    caller handles while it calls.
    """
    link: BaseException | None = error
    for _ in range(_DEEPEST):
        if link is None or isinstance(link, ConflictError):  # a backend states what it has met
            return None
        package = type(link).__module__.partition(".")[0]
        if java_exception(link) is not None:
            return None
        if package not in _RAISED_BY_STEPS and not package.startswith("zadapter"):
            return link
        link = link.__cause__
    return None


def reraise(error: BaseException) -> None:
    """Raise the exception of the caller that led to *error*, if there is one."""
    found = callers_exception(error)
    if found is not None:
        raise found


@contextmanager
def ignoring_errors() -> Iterator[None]:
    """Ignore an error of the steps of a block, which the call can do without."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the block is one that may fail in any way
        reraise(error)


def defer_signals(commit: Callable[P, R]) -> Callable[P, R]:
    """Defer signals until *commit* returns; its result has a ``version``.

    Raises:
        Interrupted: A signal arrived before the commit; nothing was sent.
    """

    @wraps(commit)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        watch = _innermost()
        if watch is None:
            return commit(*args, **kwargs)
        watch.deferring = True
        try:
            if watch.is_ending:
                raise watch.ending()
            landed = commit(*args, **kwargs)
            watch.versions.append(getattr(landed, "version", None))
            return landed
        finally:
            watch.deferring = False

    return wrapped


@contextmanager
def accepting_signals() -> Iterator[None]:
    """Accept signals within a function of :func:`defer_signals`, before a commit is sent.

    Raises:
        Interrupted: A signal has arrived; no commit of the block was sent.
    """
    watch = _innermost()
    if watch is None:
        yield
        return
    watch.deferring = False
    try:
        yield
    finally:
        watch.deferring = True
    if watch.is_ending:
        raise watch.ending()


@contextmanager
def interruptible(context: Any, advice: str = "") -> Iterator[None]:
    """Tag the Spark jobs of a run; a signal cancels them and ends the run.

    Outside the main thread, where no signals arrive, jobs are only tagged, unless the thread has a
    watch (:func:`watching`). A handler of the caller runs when its signal arrives; if it raises an
    exception, that ends the run.

    Args:
        context: The SparkContext.
        advice: Advice to the user after an interruption.

    Raises:
        Interrupted: A signal has ended the run, and the clean-up is done.
        BaseException: A handler of the caller has raised it, and the clean-up is done.
    """
    tag = f"{TAG}{uuid4().hex}"
    before = context.getLocalProperty(_ON_CANCEL)
    context.addJobTag(tag)
    context.setInterruptOnCancel(True)
    try:
        watch = Watch(advice) if _is_main() else _given.get()
        if watch is None:
            yield
            return
        with _watch_signals(context, tag, watch):
            yield
    finally:
        with ignoring_errors():  # the JVM may be gone
            context.removeJobTag(tag)
            context.setLocalProperty(_ON_CANCEL, before)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let a watch end the runs of this thread, which gets no signals: another thread notes one."""
    token = _given.set(watch)
    try:
        yield
    finally:
        _given.reset(token)


def _innermost() -> Watch | None:
    """Return the watch of the innermost run in this thread; None if there is none."""
    if not _is_main():
        return _given.get()
    return _watches[-1] if _watches else None


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def holding_signals() -> Iterator[Watch]:
    """Record signals for a block that ends its work by itself, as it sees from the watch.

    Nothing is cancelled and nothing is raised: the caller raises the exception of the watch when
    the outcome of the work is recorded. Outside the main thread, no signals arrive.
    """
    watch, taken = Watch(""), dict[int, Any]()
    token = _held.set(watch)
    try:
        if _is_main():
            _take_over(watch, taken)
        yield watch
    finally:
        _held.reset(token)
        _restore(taken)


def is_held() -> bool:
    """Return whether a signal has arrived in a block of :func:`holding_signals` around."""
    watch = _held.get()
    return watch is not None and watch.is_ending


def is_interrupted() -> bool:
    """Return whether a signal ends the run around, or the block of :func:`holding_signals`."""
    given = _given.get()
    watches = [*(_watches if _is_main() else ()), *(() if given is None else (given,))]
    return is_held() or any(watch.is_ending for watch in watches)


@contextmanager
def _watch_signals(context: Any, tag: str, watch: Watch) -> Iterator[None]:
    ended, taken = threading.Event(), dict[int, Any]()
    canceller = threading.Thread(target=cancel, args=(context, tag, watch, ended), daemon=True)
    canceller.start()
    try:
        if _is_main():
            _watches.append(watch)
            _take_over(watch, taken)
        yield
    except Exception as error:
        if not watch.is_ending:
            raise
        unknown = str(error) if isinstance(error, UnknownOutcomeError) else ""
        raise watch.ending(unknown) from None
    finally:
        ended.set()
        canceller.join()
        _watches[:] = [each for each in _watches if each is not watch]
        _restore(taken)
    if watch.is_ending:
        raise watch.ending()


def _take_over(watch: Watch, taken: dict[int, Any]) -> None:
    """Replace the handlers that may raise an exception, and add the replaced ones to *taken*."""
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if not callable(handler) or _is_recorded(handler):
            continue
        pyspark = str(getattr(handler, "__module__", "")).startswith("pyspark.")
        is_ours = pyspark or handler in (signal.default_int_handler, terminate)
        taken[number] = handler
        signal.signal(number, watch.note if is_ours else Recorder(watch, handler))


def _restore(taken: Mapping[int, Any]) -> None:
    """Restore all handlers, and then raise what the first of them has raised meanwhile."""
    left, raised = dict(taken), list[BaseException]()
    while left:
        try:
            for number, handler in taken.items():
                signal.signal(number, handler)
                left.pop(number, None)
        except BaseException as error:  # noqa: BLE001, PERF203 - of a handler that is restored
            raised.append(error)
    if raised:
        raise raised[0]


def _is_recorded(handler: object) -> bool:
    """Return whether a call around this one already records what a handler raises."""
    return isinstance(handler, Recorder) or isinstance(getattr(handler, "__self__", None), Watch)


def cancel(context: Any, tag: str, watch: Watch, ended: threading.Event) -> None:
    """Cancel a run's jobs, including those it starts later, after a signal.

    Args:
        context: The SparkContext.
        tag: Tag of the run's jobs.
        watch: Watch of the run.
        ended: Event that is set when the run has ended.
    """
    while not ended.wait(POLL):
        if watch.is_ending and not watch.deferring:
            with ignoring_errors():  # the JVM may be gone
                context.cancelJobsWithTag(tag)
