"""Files that no log speaks of: those that were written, and the note of who is about to write."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession

from zadapter.base.interrupts import Interrupted
from zadapter.base.java_errors import first_line
from zadapter.errors import ReplacedTableError, StoreError, UnknownOutcomeError, UsageError
from zadapter.table.snapshot import Written

_NOTES, _NOTE = "_zadapter", "migration-"
_LOGS = ("_delta_log", f"{_NOTES}/log")
"""What only a table of another format has in its folder."""


def begin(spark: SparkSession, folder: str, what: str) -> None:
    """Note that *folder* is about to become *what*, so that a second try finds its own.

    Args:
        spark: A session.
        folder: URI of a folder that is empty, not there yet, or has such a note already.
        what: Which table it becomes.

    Raises:
        UsageError: Something else is in it, or is about to be.
        StoreError: Nothing can be written there.
    """
    jvm: Any = spark._jvm  # noqa: SLF001
    of, ours = jvm.org.apache.hadoop.fs.Path, _note(what)
    root, notes = of(folder), of(folder, _NOTES)
    files = root.getFileSystem(_conf(spark))
    if not files.exists(of(notes, ours)):
        if files.exists(root) and (files.getFileStatus(root).isFile() or files.listStatus(root)):
            raise UsageError(f"{folder} holds files already; name an empty folder, or a new one")
        try:
            files.create(of(notes, ours), True).close()  # noqa: FBT003 - or made anew
        except Exception as error:
            raise StoreError(f"{folder} cannot be written: {first_line(error)}") from error
    # whoever comes second sees both
    found = [str(each.getPath().getName()) for each in files.listStatus(notes)]
    if [name for name in found if name.startswith(_NOTE) and name != ours]:
        files.delete(of(notes, ours), False)  # noqa: FBT003
        raise UsageError(
            f"{folder} is about to become another table, or was to and nobody has finished it; "
            "name another folder, or remove this one if nobody is at work in it"
        )


def end(spark: SparkSession, folder: str, what: str) -> None:
    """Remove the note that :func:`begin` has made, if it is there."""
    jvm: Any = spark._jvm  # noqa: SLF001
    path = jvm.org.apache.hadoop.fs.Path(folder, f"{_NOTES}/{_note(what)}")
    path.getFileSystem(_conf(spark)).delete(path, False)  # noqa: FBT003


def refuse_others(spark: SparkSession, folder: str) -> None:
    """Refuse a folder that a catalog has chosen, but where a table of another format lies.

    Raises:
        UsageError: There is one, whose clean-ups would delete the new table's files.
    """
    jvm: Any = spark._jvm  # noqa: SLF001
    try:
        files = jvm.org.apache.hadoop.fs.Path(folder).getFileSystem(_conf(spark))
    except Exception:  # noqa: BLE001 - a store that only the catalog's own classes can read
        return
    for log in _LOGS:
        if files.exists(jvm.org.apache.hadoop.fs.Path(folder, log)):
            raise UsageError(f"{folder} holds {log}, so another table lies there; name another one")


def _note(what: str) -> str:
    return _NOTE + hashlib.sha256(what.encode()).hexdigest()[:16]


def _conf(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001


def discard(spark: SparkSession, written: Written) -> None:
    """Remove what was written; never after an unknown outcome.

    If the store fails, the rest is left to the format's own clean-up: what the caller has to know
    is why the files are not wanted, and not to wait for each of them.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    with suppress(Exception):
        conf = _conf(spark)
        for uri in written.paths.values():
            path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
            path.getFileSystem(conf).delete(path, False)  # noqa: FBT003


@contextmanager
def discarding(spark: SparkSession, done: Sequence[Written]) -> Iterator[None]:
    """Remove what was written if it will certainly not be committed."""
    try:
        yield
    except (UnknownOutcomeError, ReplacedTableError):
        raise
    except (Exception, Interrupted):
        for written in done:
            discard(spark, written)
        raise
