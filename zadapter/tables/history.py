"""``history``, ``restore``, ``publish``, ``vacuum``: of tables whose versions zadapter keeps."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from os import PathLike

from pyspark.sql import SparkSession

from zadapter.arguments.options import named
from zadapter.arguments.resolve import open_table
from zadapter.backend.contract import Factory, Versioned
from zadapter.base.translate_errors import explained
from zadapter.errors import UnsupportedError, UsageError
from zadapter.table.snapshot import Commit, Publication

WEEK = timedelta(days=7)


@explained
def history(
    table: str | PathLike[str],
    *,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> list[Commit]:
    """Return the commits of all versions of *table*, newest first.

    Raises:
        UsageError: There is no such table.
        UnsupportedError: The table's format keeps its own history.
        CorruptLogError: An entry of the log is damaged, or the chain is broken.
    """
    with _versioned(table, backend, spark) as opened:
        return opened.history(named(table))


@explained
def restore(
    table: str | PathLike[str],
    version: int,
    *,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> int:
    """Make the rows of an older version those of a new one, and return its number.

    Raises:
        UsageError: There is no such table or version.
        VersionExpiredError: The version's files may be gone.
        ForeignChangeError: Some of its files are gone, or were changed behind the log.
        ConflictError: Another writer was faster; nothing was committed.
        UnknownOutcomeError: It is not known whether the commit landed.
    """
    with _versioned(table, backend, spark) as opened:
        return opened.restore(named(table), version)


@explained
def publish(
    folder: str | PathLike[str],
    *,
    dry_run: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Publication:
    """Make the folder itself the newest version, for engines that list its files.

    Files of the newest version are renamed to visible names; on object stores the store copies
    them. Then the visible files of older versions are deleted, so these can no longer be read.
    While files move, engines that list the folder stop at a file that is no Parquet, and whose name
    says so; zadapter reads and writes the table all the while. A call that was killed is finished
    by the next call of anything that writes.

    Queries that began before the call may fail, since files that they have listed have moved.

    Args:
        folder: A path.
        dry_run: Only say what would be done.
        backend: ``"parquet"``, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Raises:
        UsageError: There is no such table.
        UnsupportedError: Engines that read the table's format know its versions, or a table that
            was migrated in place has the same files.
        ForeignChangeError: Visible files came, changed or went behind the log; nothing was moved.
        ConflictError: Other writers were faster.
        UnknownOutcomeError: It is not known whether the log has taken it up; the next call of
            anything that writes finishes it, or there is nothing to finish.
    """
    with _versioned(folder, backend, spark) as opened:
        return opened.publish_folder(named(folder), dry_run=dry_run)


@explained
def vacuum(
    table: str | PathLike[str],
    *,
    older_than: timedelta = WEEK,
    dry_run: bool = True,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> list[str]:
    """Delete the files that only versions need that were replaced longer ago than *older_than*.

    Versions that lose files can no longer be read. Files that zadapter does not know are never
    touched, nor those of commits that are under way.

    Args:
        table: A path.
        older_than: How long replaced versions are kept. Shorter than the longest query or write, it
            takes files away from under it.
        dry_run: Only say what would be deleted.
        backend: ``"parquet"``, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Returns:
        Paths within the table.

    Raises:
        UsageError: There is no such table, or the time is negative.
        UnsupportedError: The table's format has a clean-up of its own.
        ConflictError: Other writers were faster; nothing was deleted.
        UnknownOutcomeError: It is not known whether the log has taken it up; nothing was deleted.
    """
    if not isinstance(older_than, timedelta):
        raise UsageError(f"older_than= takes a datetime.timedelta, not {older_than!r}")
    if older_than < timedelta(0):
        raise UsageError(f"older_than= takes no negative time: {older_than}")
    with _versioned(table, backend, spark) as opened:
        return opened.vacuum(named(table), older_than, dry_run=dry_run)


@contextmanager
def _versioned(
    table: str | PathLike[str], backend: str | Factory | None, spark: SparkSession | None
) -> Iterator[Versioned]:
    session, factory = open_table(named(table), backend, spark)
    with closing(factory(session)) as opened:
        if not isinstance(opened, Versioned):
            raise UnsupportedError(
                f"{table}: its format keeps its own versions; use DESCRIBE HISTORY, RESTORE and "
                "VACUUM for Delta, and the procedures of Iceberg's catalog"
            )
        yield opened
