"""Removal of the files of a failed write, which no log references."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from zadapter.base.interrupts import TAG, Interrupted

_POLL, _PATIENCE = 0.1, 300
"""Seconds between two polls of cancelled tasks, and the maximum number of polls."""


@contextmanager
def removing(spark: Any, remove: Callable[[], None]) -> Iterator[None]:
    """Remove the files of a write that fails.

    Args:
        spark: The session that writes.
        remove: Deletes the files that only this write can have created.
    """
    try:
        yield
    except (Exception, Interrupted):
        with suppress(Exception):  # the error of the write is raised instead
            settle(spark)
            remove()
        raise


def settle(spark: Any) -> None:
    """Wait for the tasks of this run that are still active and may write files."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    # PySpark's tracker cannot look up jobs by tag
    by_tag = context._jsc.sc().statusTracker().getJobIdsForTag  # noqa: SLF001
    tags = [tag for tag in context.getJobTags() if tag.startswith(TAG)]
    jobs = [tracker.getJobInfo(int(job)) for tag in tags for job in by_tag(tag)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    for _ in range(_PATIENCE):
        infos = (tracker.getStageInfo(stage) for stage in stages)
        if not any(stage.numActiveTasks for stage in infos if stage is not None):
            return
        time.sleep(_POLL)


def remove_folder(spark: Any, folder: str) -> None:
    """Delete a folder and its contents.

    Args:
        spark: A session.
        folder: Location, unescaped.
    """
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001 - there is no public door
    _files(spark, path).delete(path, True)  # noqa: FBT003


def remove_named(spark: Any, folder: str, prefix: str) -> None:
    """Delete the files anywhere in *folder* whose names start with *prefix*.

    Args:
        spark: A session.
        folder: Location, unescaped.
        prefix: A prefix that no other file's name has.
    """
    for status in named(spark, folder, prefix):
        _files(spark, status.getPath()).delete(status.getPath(), False)  # noqa: FBT003


def named(spark: Any, folder: str, prefix: str) -> Iterator[Any]:
    """Yield the ``FileStatus`` of each file in *folder*, at any depth, named with *prefix*."""
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)  # noqa: SLF001 - there is no public door
    listed = _files(spark, path).listFiles(path, True)  # noqa: FBT003
    while listed.hasNext():
        status = listed.next()
        if str(status.getPath().getName()).startswith(prefix):
            yield status


def _files(spark: Any, path: Any) -> Any:
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
