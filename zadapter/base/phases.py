"""Phases of a call: their seconds, log lines and spans, and observers such as a progress bar.

The library prints nothing. Each phase that ends without an error logs one line to ``LOGGER`` at
level INFO; its facts are attributes of the log record, too. An error is raised, not logged.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from zadapter.base.interrupts import ignoring_errors
from zadapter.base.java_errors import first_line
from zadapter.base.quantities import show, show_count
from zadapter.base.secrets import mask_secrets

LOGGER = logging.getLogger("zadapter.phases")

_SHOWN: Mapping[str, Callable[[int], str]] = {
    "version": "version {}".format,
    "files": lambda number: show_count(number, "files"),
    "bytes": show,
    "rows": lambda number: show_count(number, "rows"),
}
"""The facts of a phase, and their text in a log line."""

PREFIX = "zadapter."
"""Prefix of the names of spans and of their attributes."""


class Amounts(NamedTuple):
    """What the Spark jobs of a write have processed so far."""

    share_read: float
    """Share of the rows, from 0 to 1, that were read and shuffled; known before the first write."""
    written: int
    """Bytes of the new files."""
    shuffled: int = 0
    """Bytes written for shuffles, as they are compressed."""
    core_seconds: float = 0.0
    """Seconds that tasks ran, added up."""


@dataclass(slots=True, kw_only=True, eq=False)
class Phase:
    """A phase of a call, or the whole call."""

    name: str
    """``plan``, ``fit``, ``write``, ``verify`` or ``commit``; of a call, the public function."""
    table: str
    """The table, with secrets masked."""
    call: "Phase | None" = None
    """The call that the phase belongs to; None: it is a call."""
    job: str = ""
    """Which of several jobs the phase belongs to, such as ``job 2 of 5``."""
    expected: int | None = None
    """Bytes to be written; None if it is unknown. Of a call, it is set after planning."""
    measure: Callable[[], Amounts] | None = None
    """Returns what was processed so far; None: it is not measured."""
    seconds: float = 0.0
    """Duration, when the phase has ended."""
    facts: dict[str, int] = field(default_factory=dict[str, int])
    """Version, files, bytes and rows, if they are known."""

    def note(self, **facts: int | None) -> None:
        """Add known facts: ``version``, ``files``, ``bytes`` and ``rows``."""
        self.facts |= {name: value for name, value in facts.items() if value is not None}

    def attributes(self) -> dict[str, str | int | float]:
        """Return the table, the seconds and the facts."""
        return {"table": self.table, "seconds": self.seconds, **self.facts}

    def __str__(self) -> str:
        shown = [text(self.facts[name]) for name, text in _SHOWN.items() if name in self.facts]
        named = f"{self.job}, " if self.job else ""
        return f"{self.name} {self.table}: {named}{', '.join([f'{self.seconds:.1f} s', *shown])}"


Observer = Callable[[Phase], AbstractContextManager[None]]
"""Returns a context that is entered when a phase starts, and left when it ends."""

_call: ContextVar[Phase | None] = ContextVar("zadapter_call", default=None)
_job: ContextVar[str] = ContextVar("zadapter_job", default="")
_observers: ContextVar[tuple[Observer, ...]] = ContextVar("zadapter_observers", default=())


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Show *observer* the phases of calls in this thread."""
    token = _observers.set((*_observers.get(), observer))
    try:
        yield
    finally:
        _observers.reset(token)


@contextmanager
def job(name: str) -> Iterator[None]:
    """Name the job that phases in this thread belong to."""
    token = _job.set(name)
    try:
        yield
    finally:
        _job.reset(token)


@contextmanager
def call(
    name: str, table: str, seconds: MutableMapping[str, float] | None = None
) -> Iterator[Phase]:
    """Run a public function as a call, to which the phases within it belong.

    Args:
        name: Name of the function.
        table: The table as the caller named it.
        seconds: Gets the duration as ``total``.
    """
    whole = Phase(name=name, table=mask_secrets(table))
    token = _call.set(whole)
    try:
        with _running(whole, {} if seconds is None else seconds, "total"):
            yield whole
    finally:
        _call.reset(token)


@contextmanager
def phase(
    name: str,
    table: str,
    seconds: MutableMapping[str, float] | None = None,
    *,
    expected: int | None = None,
) -> Iterator[Phase]:
    """Run a phase; the facts that are noted within it are logged at its end.

    Args:
        name: ``plan``, ``fit``, ``write``, ``verify`` or ``commit``.
        table: The table as the caller named it.
        seconds: The duration is added to this mapping.
        expected: Bytes to be written; None if it is unknown.
    """
    step = Phase(
        name=name, table=mask_secrets(table), call=_call.get(), job=_job.get(), expected=expected
    )
    with _running(step, {} if seconds is None else seconds, name):
        yield step


@contextmanager
def _running(step: Phase, seconds: MutableMapping[str, float], key: str) -> Iterator[None]:
    with ExitStack() as observed:
        for observer in (_span, *_observers.get()):
            observed.enter_context(_harmless(observer, step))
        start = time.perf_counter()
        try:
            yield
        finally:
            step.seconds = time.perf_counter() - start
            seconds[key] = seconds.get(key, 0.0) + step.seconds
    with ignoring_errors():
        LOGGER.info("%s", step, extra={"phase": step.name, **step.attributes()})


def _span(step: Phase) -> AbstractContextManager[None]:
    return span(step.name, step.attributes)


@contextmanager
def _harmless(observer: Observer, step: Phase) -> Iterator[None]:
    """Ignore errors of an observer: the call does not depend on it."""
    with ExitStack() as observed:
        with ignoring_errors():
            context = observer(step)
            context.__enter__()
            observed.push(_quiet(context))
        yield


def _quiet(context: AbstractContextManager[None]) -> Callable[[Any, Any, Any], bool]:
    def leave(*error: Any) -> bool:
        with ignoring_errors():
            context.__exit__(*error)
        return False

    return leave


@contextmanager
def span(name: str, attributes: Callable[[], Mapping[str, str | int | float]]) -> Iterator[None]:
    """Run a span if OpenTelemetry is installed; without a configured SDK, spans are not recorded.

    Args:
        name: Name of the span, without the prefix.
        attributes: Returns the attributes at the end of the span.
    """
    trace = _api()
    if trace is None:
        yield
        return
    # the API would record messages of errors with their secrets
    silent = {"record_exception": False, "set_status_on_exception": False}
    with trace.get_tracer("zadapter").start_as_current_span(PREFIX + name, **silent) as current:
        try:
            yield
        except BaseException as error:
            text = f"{type(error).__name__}: {first_line(error)}"
            current.set_status(trace.Status(trace.StatusCode.ERROR, text))
            raise
        finally:
            current.set_attributes({PREFIX + key: value for key, value in attributes().items()})


@cache
def _api() -> Any:
    """Return the module ``opentelemetry.trace``, or None."""
    try:
        return import_module("opentelemetry.trace")
    except ImportError:
        return None
