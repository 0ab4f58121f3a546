"""``history``, ``restore``, ``publish`` and ``vacuum`` for plain Parquet tables."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from os import PathLike

from pyspark.sql import SparkSession

from zadapter.backend.contract import Factory, VersionedBackend, is_versioned
from zadapter.base.outcome import sending
from zadapter.base.phases import phase
from zadapter.base.quantities import parse_age
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UnsupportedError, UsageError
from zadapter.planning.options import check_flags, check_table
from zadapter.report.write_result import Cleanup, Publication, WriteResult
from zadapter.spark.jobs import call
from zadapter.spark.opening import open_in, session_for
from zadapter.table.snapshot import Commit

WEEK = timedelta(days=7)


@translates_errors
def history(
    table: str | PathLike[str],
    *,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> list[Commit]:
    """Return the commits of all versions of *table*, newest first.

    Example:
        ```python
        for commit in zadapter.history("lake/visits"):
            print(commit.version, commit.operation)
        ```

    Raises:
        UsageError: The table does not exist, or it is the file of a lake.
        UnsupportedError: The table's format keeps its own history.
        CorruptLogError: An entry of the log is damaged, or the chain is broken.
    """
    if check_table(table).endswith(".toml"):
        raise UsageError(
            f"{table} is the file of a lake: zadapter history {table} in a shell lists its runs; "
            "in Python, read the table of its [journal], which has a row for each table and run"
        )
    with (
        _open_versions("history", table, backend, spark, {}) as opened,
        phase("plan", check_table(table)),
    ):
        return opened.history(check_table(table))


@translates_errors
def restore(
    table: str | PathLike[str],
    version: int,
    *,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Commit the rows of an older version as a new version.

    Example:
        ```python
        zadapter.restore("lake/visits", 1)
        ```

    Raises:
        UsageError: The table or the version does not exist.
        UnsupportedError: The table's format keeps its own versions.
        VersionExpiredError: Files of the version may be deleted.
        ForeignChangeError: Files of the version were deleted or changed outside the log.
        ConflictError: Another writer was faster; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed.
    """
    if isinstance(version, bool) or not isinstance(version, int):
        raise UsageError(f"version must be an integer, not {version!r}")
    seconds = dict[str, float]()
    with (
        _open_versions("restore", table, backend, spark, seconds) as opened,
        phase("commit", check_table(table), seconds) as step,
    ):
        with sending():
            commit = opened.restore(check_table(table), version)
        step.note(version=commit.version)
    return WriteResult(
        table=check_table(table),
        versions=(commit.version,),
        files_added=commit.files_added,
        files_removed=commit.files_removed,
        rows_added=commit.rows_added,
        rows_removed=commit.rows_removed,
        seconds=seconds,
    )


@translates_errors
def publish(
    folder: str | PathLike[str],
    *,
    dry_run: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Publication:
    """Make the visible files of a folder the newest version, for engines that list its files.

    Files of the newest version are renamed to visible names. Object stores copy them. Then the
    visible files of older versions are deleted, so older versions can no longer be read. While
    files move, engines that list the folder fail at a marker file that is not Parquet. Its name
    states the reason. zadapter can read and write the table throughout. If the call is killed, the
    next call that writes to the table finishes it.

    Queries that started before the call may fail, since the files that they listed have moved.

    Example:
        ```python
        print(zadapter.publish("lake/visits", dry_run=True))
        ```

    Args:
        folder: A path.
        dry_run: Only report what would be done.
        backend: ``"parquet"`` or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The table does not exist.
        UnsupportedError: The engines of the table's format read its versions, or a table that was
            migrated in place shares the files.
        ForeignChangeError: Visible files were added, changed or deleted outside the log; no file
            was moved.
        ConflictError: Other writers were faster.
        UnknownOutcomeError: It is unknown whether the log records the publication. If it does, the
            next call that writes to the table finishes it.
    """
    check_flags(dry_run=dry_run)
    seconds = dict[str, float]()
    with (
        _open_versions("publish", folder, backend, spark, seconds) as opened,
        phase("plan" if dry_run else "commit", check_table(folder), seconds) as step,
    ):
        with nullcontext() if dry_run else sending():
            published = opened.publish_folder(check_table(folder), dry_run=dry_run)
        step.note(version=published.version, files=len(published.moved))
    return Publication(
        table=published.table,
        versions=published.versions,
        seconds=seconds,
        shown=published.version,
        moved=published.moved,
        removed=published.removed,
        dry_run=published.dry_run,
    )


@translates_errors
def vacuum(
    table: str | PathLike[str],
    *,
    older_than: str | timedelta = WEEK,
    dry_run: bool = True,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Cleanup:
    """Delete files needed only by versions that were replaced more than *older_than* ago.

    Versions that lose files can no longer be read. Files unknown to zadapter and files of commits
    in progress are never deleted.

    Example:
        ```python
        cleanup = zadapter.vacuum("lake/visits")
        print(cleanup.paths)
        ```

    Args:
        table: A path.
        older_than: Retention of replaced versions, such as ``"7d"`` or ``timedelta(days=7)``. It
            must exceed the duration of the longest query or write. Otherwise these lose their
            files.
        dry_run: Only report what would be deleted.
        backend: ``"parquet"`` or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Returns:
        The paths of the deleted files; the versions are those that record the vacuum.

    Raises:
        UsageError: The table does not exist, or the time is negative.
        UnsupportedError: The table's format has its own clean-up.
        ConflictError: Other writers were faster; nothing was deleted.
        UnknownOutcomeError: It is unknown whether the log records the vacuum; nothing was deleted.
    """
    check_flags(dry_run=dry_run)
    retention = _check_age(older_than)
    seconds = dict[str, float]()
    with (
        _open_versions("vacuum", table, backend, spark, seconds) as opened,
        phase("plan" if dry_run else "commit", check_table(table), seconds) as step,
    ):
        with nullcontext() if dry_run else sending():
            deleted = opened.vacuum(check_table(table), retention, dry_run=dry_run)
        step.note(files=len(deleted.paths))
    return Cleanup(
        table=check_table(table),
        versions=deleted.versions,
        files_removed=0 if dry_run else len(deleted.paths),
        seconds=seconds,
        paths=tuple(deleted.paths),
        dry_run=dry_run,
    )


def _check_age(given: object) -> timedelta:
    """Return ``older_than`` as a duration; zero is one.

    Raises:
        UsageError: It is no duration, or negative.
    """
    found = parse_age(given, "older_than=") if isinstance(given, str) else given
    if not isinstance(found, timedelta):
        raise UsageError(
            f"older_than= must be a duration such as '7d' or a datetime.timedelta, not {given!r}"
        )
    if found < timedelta(0):
        raise UsageError(f"older_than= must not be negative: {found}")
    return found


@contextmanager
def _open_versions(
    verb: str,
    table: str | PathLike[str],
    backend: str | Factory | None,
    spark: SparkSession | None,
    seconds: MutableMapping[str, float],
) -> Iterator[VersionedBackend]:
    session = session_for([check_table(table)], backend, spark)
    with (
        # no clone: a publication refreshes what the caller's session has cached of the catalog
        open_in(session, check_table(table), backend, session) as found,
        call(verb, check_table(table), found.user_session, seconds),
    ):
        if not is_versioned(found.backend):
            raise UnsupportedError(
                f"{table}: zadapter manages versions of plain Parquet tables only; use DESCRIBE "
                "HISTORY, RESTORE and VACUUM for Delta, and the catalog's procedures for Iceberg"
            )
        yield found.backend
