"""Progress of calls in a terminal or a notebook: phase by phase, with the bytes processed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from threading import Event, Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from zadapter.base.interrupts import ignoring_errors
from zadapter.base.phases import Amounts, Phase, observing
from zadapter.base.quantities import show_part
from zadapter.report.course import seconds_left, show_seconds

POLL = 0.5
"""Seconds between two measurements."""
WATCHER = "zadapter-progress"
"""Name of the thread that measures."""

_LABELS = {
    "plan": "planning",
    "fit": "sampling",
    "write": "writing",
    "verify": "verifying",
    "commit": "committing",
    "discover": "finding tables",
    "weigh": "reading the query log",
    "clean": "cleaning up",
}


@contextmanager
def progress(console: Console | None = None) -> Iterator[None]:
    """Show the progress of zadapter's calls in this thread.

    A line shows the table, the phase and, while rows are written, the bytes written so far. It
    disappears at the end. Notebooks need ``ipywidgets``.

    Example:
        ```python
        with zadapter.progress():
            zadapter.optimize("lake/events")
        ```

    Args:
        console: A console of rich; None: standard error. Nothing is shown if it is neither a
            terminal nor a notebook.
    """
    console = Console(stderr=True) if console is None else console
    if not (console.is_terminal or console.is_jupyter):
        yield
        return
    columns = (
        TextColumn("{task.fields[table]}", markup=False),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)

    @contextmanager
    def show_phase(step: Phase) -> Iterator[None]:
        observer = nullcontext() if step.call is not None else observing(_Call(bar, step).show)
        with observer:
            yield

    with _harmless():
        bar.start()
    try:
        with observing(show_phase):
            yield
    finally:
        with _harmless():
            bar.stop()


@contextmanager
def _harmless() -> Iterator[None]:
    """Ignore a terminal that is gone: rich ends the process at a broken pipe."""
    with suppress(SystemExit), ignoring_errors():
        yield


class _Call:
    """The progress of a call."""

    def __init__(self, bar: Progress, call: Phase) -> None:
        self.bar = bar
        self.call = call
        self.written = 0
        """Bytes of the writes that have ended: a call writes job by job."""
        self.started: float | None = None
        """When the first write began."""

    @contextmanager
    def show(self, step: Phase) -> Iterator[None]:
        """Show a phase until it ends."""
        label = _LABELS.get(step.name, step.name) + _part(step.job)
        task: TaskID | None = None
        with _harmless():
            task = self.bar.add_task(label, total=None, table=step.table)
        try:
            if step.expected is None or task is None:
                yield
            else:
                with self._measure_write(task, step, step.expected):
                    yield
        finally:
            if task is not None:
                with _harmless():
                    self.bar.remove_task(task)

    @contextmanager
    def _measure_write(self, task: TaskID, step: Phase, expected: int) -> Iterator[None]:
        """Show the bytes of a write, which another thread measures until the write ends."""

        def update(amounts: Amounts) -> None:
            total = max(self.call.expected or 0, self.written + expected)
            text, done = describe(amounts, expected, self.written, total)
            left = seconds_left(time.monotonic() - started, done, total)
            text += _part(step.job) + _part("" if left is None else f"{show_seconds(left)} left")
            with _harmless():
                self.bar.update(task, description=text, completed=done, total=total, refresh=True)

        def watch() -> None:
            with ignoring_errors():  # the JVM may be gone; the call itself raises the error
                while not ended.wait(POLL):
                    if step.measure is not None:
                        update(step.measure())

        started = self.started = time.monotonic() if self.started is None else self.started
        ended = Event()
        watcher = Thread(target=watch, name=WATCHER, daemon=True)
        update(Amounts(share_read=0.0, written=0))
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        update(Amounts(share_read=1.0, written=expected))
        self.written += expected


def _part(text: str) -> str:
    return f", {text}" if text else ""


def describe(amounts: Amounts, expected: int, before: int, total: int) -> tuple[str, int]:
    """Return the text of a write, and the bytes done.

    All rows are read and shuffled before the first one is written. Each is half of the work.

    Args:
        amounts: What was processed so far.
        expected: Bytes of the write.
        before: Bytes of earlier writes of the call.
        total: Bytes of all writes of the call.

    >>> describe(Amounts(share_read=0.5, written=0), 2048, 0, 4096)
    ('reading 1 of 4 KB', 512)
    >>> describe(Amounts(share_read=1.0, written=512), 2048, 2048, 4096)
    ('writing 2.5 of 4 KB', 3328)
    """
    reading = amounts.share_read and not amounts.written
    read, written = int(amounts.share_read * expected), min(amounts.written, expected)
    processed = show_part(before + (read if reading else written), total)
    done = before + (read + written) // 2
    return f"{'reading' if reading else 'writing'} {processed}", done
