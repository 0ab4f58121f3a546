"""Progress bar of Spark's stages on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark import StatusTracker

POLL = 0.2
"""Seconds between two updates."""
WATCHER = "zadapter-progress"
"""Name of the thread that updates the bar."""


@contextmanager
def progress(tracker: "StatusTracker", console: Console) -> Iterator[None]:
    """Show the progress of Spark's active stages on *console* if it is a terminal.

    Args:
        tracker: Spark's status tracker.
        console: The console; nothing is printed if it is not a terminal.
    """
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    stopped = Event()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        watcher = Thread(target=_watch, args=(tracker, bar, stopped), name=WATCHER, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stopped.set()
            watcher.join()


def _watch(tracker: "StatusTracker", bar: Progress, stopped: Event) -> None:
    task = bar.add_task("Spark", total=None)
    with suppress(Exception):  # errors of the progress bar are ignored
        while not stopped.wait(POLL):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in infos if stage is not None]
            bar.update(
                task,
                description=stages[-1].name if stages else "Spark",
                completed=sum(stage.numCompletedTasks for stage in stages),
                total=sum(stage.numTasks for stage in stages) or None,
            )
