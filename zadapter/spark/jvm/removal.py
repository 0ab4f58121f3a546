"""Removal of the files of a write that no log references."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from zadapter.base.interrupts import TAG, ignoring_errors, reraise
from zadapter.spark.jvm.gateway import job_status, stages_by_job
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_loops import loops_of

_POLL, _PATIENCE = 0.1, 300
"""Seconds between two polls of cancelled tasks, and the maximum number of polls."""
_STATUS = "org.apache.hadoop.fs.FileStatus"
_EVENTS = 10_000
"""Milliseconds to wait for Spark's events of a write."""


@contextmanager
def removing(spark: Any, remove: Callable[[Collection[str]], None]) -> Iterator[set[str]]:
    """Remove what a write leaves besides its result.

    These are all files if it fails. If it succeeds, they are those of tasks that Spark ran again
    after a failure, or a second time as a speculation: not all writers remove these.

    Args:
        spark: The session that writes.
        remove: Deletes the files that only this write can have created, except those of the given
            names.

    Yields:
        A set that takes the names of the result's files. If it stays empty, nothing is removed
        after a success.
    """
    context, tag, kept = spark.sparkContext, f"{TAG}files-{uuid4().hex}", set[str]()
    context.addJobTag(tag)
    try:
        yield kept
        if kept and _has_repeated(context, tag):
            with ignoring_errors():  # no reader sees these files
                settle(spark)
                remove(kept)
    except BaseException:
        with ignoring_errors():  # the error of the write is raised instead
            settle(spark)
            remove(())
        raise
    finally:
        context.removeJobTag(tag)


def _has_repeated(context: Any, tag: str) -> bool:
    """Return whether Spark may have run a task of the jobs of *tag* more than once."""
    try:
        status = job_status(context)
        status.events.waitUntilEmpty(_EVENTS)
        ids = {stage for job in stages_by_job(context, tag) for stage in job}
        # PySpark's tracker knows no attempts
        stages = [status.stages.lastStageAttempt(stage) for stage in ids]
        return any(
            # a copy of a task that still runs, or hangs, is not counted as killed yet
            stage.attemptId()
            or stage.numFailedTasks()
            or stage.numKilledTasks()
            or stage.numActiveTasks()
            for stage in stages
        )
    except Exception as error:  # noqa: BLE001 - Spark has forgotten a stage: better look
        reraise(error)
        return True


def settle(spark: Any) -> None:
    """Wait for the tasks of this run that are still active and may write files."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    tags = [tag for tag in context.getJobTags() if tag.startswith(TAG)]
    stages = {stage for tag in tags for job in stages_by_job(context, tag) for stage in job}
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
    path = java_classes(spark).org.apache.hadoop.fs.Path(folder)
    _files(spark, path).delete(path, True)  # noqa: FBT003


def remove_named(spark: Any, folder: str, prefix: str, kept: Collection[str] = ()) -> None:
    """Delete the files anywhere in *folder* whose names start with *prefix*.

    Args:
        spark: A session.
        folder: Location, unescaped.
        prefix: A prefix that no other file's name has.
        kept: Names of files that stay.
    """
    for status in find_files(spark, folder, prefix):
        if str(status.getPath().getName()) in kept:
            continue
        _files(spark, status.getPath()).delete(status.getPath(), False)  # noqa: FBT003


def find_files(spark: Any, folder: str, prefix: str) -> Iterator[Any]:
    """Yield the ``FileStatus`` of each file in *folder*, at any depth, named with *prefix*.

    Hadoop's own recursion starts a process for each file on a local disk.
    """
    jvm = java_classes(spark)
    loops = loops_of(spark)
    starts = loops.method("java.lang.String", "startsWith", "java.lang.String")
    path = loops.method(_STATUS, "getPath")
    name = loops.chain(path, loops.method("org.apache.hadoop.fs.Path", "getName"))
    is_named = loops.chain(name, loops.bind(starts, 1, prefix))
    wanted = loops.either(loops.method(_STATUS, "isDirectory"), is_named)
    root = jvm.org.apache.hadoop.fs.Path(folder)
    files, folders = _files(spark, root), [root]
    while folders:
        found = loops.filter_iterator(files.listStatusIterator(folders.pop()), wanted)
        while found.hasNext():
            status = found.next()
            if status.isDirectory():
                folders.append(status.getPath())
            else:
                yield status


def _files(spark: Any, path: Any) -> Any:
    return path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001
