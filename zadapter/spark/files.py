"""Files outside of logs: uncommitted files, and markers of unfinished migrations."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from zadapter.backend.plugins import formats
from zadapter.base.commit_attempts import Attempts
from zadapter.base.interrupts import ignoring_errors, reraise
from zadapter.base.java_errors import first_line
from zadapter.errors import ReplacedTableError, StoreError, UnknownOutcomeError, UsageError
from zadapter.spark.jvm.gateway import hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.table.snapshot import Written

_MARKERS, _MARKER_PREFIX = "_zadapter", "migration-"


def begin(spark: SparkSession, folder: str, migration: str) -> None:
    """Write a marker that *folder* has an unfinished migration, which a retry recognises.

    Args:
        spark: A session.
        folder: URI of a folder that is empty, missing, or has the same marker.
        migration: Identifies the migration.

    Raises:
        UsageError: The folder has other files, or the marker of another migration.
        StoreError: The folder cannot be written.
    """
    jvm = java_classes(spark)
    path_of, marker = jvm.org.apache.hadoop.fs.Path, _marker_name(migration)
    root, markers = path_of(folder), path_of(folder, _MARKERS)
    files = root.getFileSystem(_conf(spark))
    if not files.exists(path_of(markers, marker)):
        if files.exists(root) and (files.getFileStatus(root).isFile() or files.listStatus(root)):
            raise UsageError(f"{folder} is not empty; pass an empty or new folder")
        try:
            files.create(path_of(markers, marker), True).close()  # noqa: FBT003 - overwrite it
        except Exception as error:
            reraise(error)
            raise StoreError(
                f"{folder} cannot be written: {first_line(error)}; check the permissions, and retry"
            ) from error
    # of two concurrent migrations, the later one sees both markers
    names = [str(status.getPath().getName()) for status in files.listStatus(markers)]
    if [name for name in names if name.startswith(_MARKER_PREFIX) and name != marker]:
        files.delete(path_of(markers, marker), False)  # noqa: FBT003
        raise UsageError(
            f"{folder} has an unfinished migration of another table; pass another folder, or "
            "delete this one if no migration is running"
        )


def end(spark: SparkSession, folder: str, migration: str) -> None:
    """Delete the marker that :func:`begin` has written, if it exists."""
    jvm = java_classes(spark)
    path = jvm.org.apache.hadoop.fs.Path(folder, f"{_MARKERS}/{_marker_name(migration)}")
    path.getFileSystem(_conf(spark)).delete(path, False)  # noqa: FBT003


def refuse_others(spark: SparkSession, folder: str) -> None:
    """Refuse a folder that a catalog has chosen if it holds a table of another format.

    Raises:
        UsageError: There is such a table. Its clean-ups would delete the new table's files.
    """
    jvm = java_classes(spark)
    try:
        files = jvm.org.apache.hadoop.fs.Path(folder).getFileSystem(_conf(spark))
    except Exception as error:  # noqa: BLE001 - a store that only the catalog's classes can read
        reraise(error)
        return
    for log in filter(None, (form.log for form in formats().values())):
        if files.exists(jvm.org.apache.hadoop.fs.Path(folder, log)):
            raise UsageError(f"{folder} contains {log} of another table; pass another target")


def _marker_name(migration: str) -> str:
    return _MARKER_PREFIX + hashlib.sha256(migration.encode()).hexdigest()[:16]


def _conf(spark: SparkSession) -> Any:
    return hadoop_conf(spark)


def discard(spark: SparkSession, written: Written) -> None:
    """Delete files that were written and certainly not committed; see :func:`discarding`.

    If the store fails, the remaining files are left to the format's own clean-up, so that the
    original error is raised without delay.
    """
    jvm = java_classes(spark)
    with ignoring_errors():
        conf = _conf(spark)
        for uri in written.paths.values():
            path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
            path.getFileSystem(conf).delete(path, False)  # noqa: FBT003


@contextmanager
def discarding(
    spark: SparkSession, written_files: Sequence[Written], attempts: Attempts | None = None
) -> Iterator[None]:
    """Delete written files if the block ends by an exception and none of them can be committed.

    What the exception is does not matter: a time limit can be raised right after the commit.

    Args:
        spark: A session.
        written_files: The files; the block may add some.
        attempts: The attempts to commit the files within the block; None: it commits nothing.
    """
    try:
        yield
    except (UnknownOutcomeError, ReplacedTableError):
        raise  # they may be live, or a copy of the dropped table may reference them
    except BaseException:
        if attempts is None or not attempts.may_have_landed:
            for written in written_files:
                discard(spark, written)
        raise
