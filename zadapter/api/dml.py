"""``append``, ``overwrite`` and ``delete`` for tables whose versions zadapter manages."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.api.read import prune_files
from zadapter.backend.commit import commit_change
from zadapter.backend.contract import Factory, VersionedBackend, is_versioned
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.base.locations import bare
from zadapter.base.phases import Phase, phase
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import (
    StaleRewriteError,
    UnsupportedError,
    UsageError,
    VerificationError,
)
from zadapter.planning.options import check_deleted, check_table
from zadapter.report.write_result import Deletion, WriteResult
from zadapter.rewrite.file_by_file import ONE_TASK_A_FILE, count_matches, with_layouts
from zadapter.rewrite.self_test import before_writing
from zadapter.rewrite.verify import stage_and_check
from zadapter.spark.caller_rows import attach_rows, fitting
from zadapter.spark.clone import UNPUSHED, set_all
from zadapter.spark.files import discarding
from zadapter.spark.jobs import call
from zadapter.spark.opening import OpenTable, open_table
from zadapter.spark.where import check_functions
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Operation, Snapshot

T = TypeVar("T")


@translates_errors
def append(
    table: str | PathLike[str],
    rows: DataFrame,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Append *rows* to *table* in one commit.

    Example:
        ```python
        new = spark.createDataFrame([(7, "a")], "user_id BIGINT, page STRING")
        zadapter.append("lake/visits", new)
        ```

    Args:
        table: A path.
        rows: A DataFrame with columns of the table, matched by name, with the same types. Missing
            columns are null.
        backend: ``"parquet"`` or a backend's class. Detected by default.
        backoff: Retry policy for commits that lose a race.
        spark: A Spark session. Defaults to the session of *rows*.

    Raises:
        UsageError: The columns or types of *rows* differ from those of the table.
        UnsupportedError: The table has another format than Parquet, whose engines write rows.
        ConflictError: All attempts lost a race to other writers; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed; nothing was deleted.
    """
    with _writing("append", table, backend, _session(rows, spark), backoff) as write:
        return write.retrying(lambda snapshot: _append(write, snapshot, rows))


@translates_errors
def delete(
    table: str | PathLike[str],
    where: str,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> Deletion:
    """Delete the rows of *table* for which *where* is true.

    Files with such rows are rewritten without these rows, each by itself and in its order, in one
    commit. Rows that other writers append concurrently are kept. If other writers rewrite the same
    files, the delete restarts.

    Example:
        ```python
        deletion = zadapter.delete("lake/visits", "user_id = 7")
        print(deletion.rows_deleted)
        ```

    Args:
        table: A path.
        where: A condition in Spark SQL, such as ``"user_id = 7"``.
        backend: ``"parquet"`` or a backend's class. Detected by default.
        backoff: Retry policy for commits that lose a race.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The condition is invalid for the table.
        UnsupportedError: The table has another format than Parquet, whose engines write rows.
        VerificationError: The number of written rows is wrong; nothing was committed.
        ConflictError: All attempts lost a race to other writers; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed; no file was deleted.
    """
    check_deleted(where)
    with _writing("delete", table, backend, spark, backoff) as write:
        check_functions(where, write.table.user_session)
        return write.retrying(lambda snapshot: _delete(write, snapshot, where))


@translates_errors
def overwrite(
    table: str | PathLike[str],
    rows: DataFrame,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Replace the partitions that *rows* belong to, in one commit.

    Without partition columns, the whole table is replaced. Rows that other writers append
    concurrently are kept.

    Example:
        ```python
        new = spark.createDataFrame([(8, "b")], "user_id BIGINT, page STRING")
        zadapter.overwrite("lake/visits", new)
        ```

    Args:
        table: A path.
        rows: A DataFrame with columns of the table, matched by name, with the same types. Missing
            columns are null.
        backend: ``"parquet"`` or a backend's class. Detected by default.
        backoff: Retry policy for commits that lose a race.
        spark: A Spark session. Defaults to the session of *rows*.

    Raises:
        UsageError: The columns or types of *rows* differ from those of the table.
        UnsupportedError: The table has another format than Parquet, whose engines write rows.
        ConflictError: Other writers changed the same files; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed; nothing was deleted.
    """
    with _writing("overwrite", table, backend, _session(rows, spark), backoff) as write:
        with write.phase("plan") as step:
            snapshot = write.table.snapshot()
            live = write.backend.files(snapshot)
            given = write.given(snapshot, rows)
            step.note(version=snapshot.version)
        change = _stage_change(write, snapshot, given, live, Operation.OVERWRITE)
        partitions = {str(value) for value in change.added["partition"].to_pylist()}
        in_partitions = pa.array(
            [str(value) in partitions for value in live["partition"].to_pylist()], pa.bool_()
        )
        (exchange,) = change.exchanges
        if snapshot.partition:
            exchange = replace(exchange, removed=live.filter(in_partitions))
            change = replace(change, exchanges=(exchange,))
        return _commit_change(write, change)


def _session(rows: DataFrame, spark: SparkSession | None) -> SparkSession:
    if not isinstance(rows, DataFrame):
        raise UsageError(f"rows must be a Spark DataFrame, not {type(rows)}; use createDataFrame()")
    return spark or rows.sparkSession


@dataclass(frozen=True, kw_only=True)
class _Write:
    """A call that writes rows to a table."""

    table: OpenTable
    backend: VersionedBackend
    attempts: Attempts
    seconds: dict[str, float]

    def phase(self, name: str, expected: int | None = None) -> AbstractContextManager[Phase]:
        """Run a phase of the call."""
        return phase(name, self.table.name, self.seconds, expected=expected)

    def given(self, snapshot: Snapshot, rows: DataFrame) -> DataFrame:
        """Return the caller's rows with the columns of the table."""
        no_files = self.backend.files(snapshot).slice(0, 0)
        return fitting(attach_rows(self.table.spark, rows), self.backend.read(snapshot, no_files))

    def retrying(self, change: Callable[[Callable[[], Snapshot]], T]) -> T:
        """Make a change of a version, and restart it if other writers rewrite its files."""
        current = self.table.snapshot
        while True:
            try:
                return change(current)
            except StaleRewriteError:  # noqa: PERF203 - a restart costs far more
                if not self.attempts.wait():
                    raise
                current = partial(self.backend.snapshot, self.table.name)


@contextmanager
def _writing(
    verb: str,
    table: str | PathLike[str],
    backend: str | Factory | None,
    spark: SparkSession | None,
    backoff: Backoff | None,
) -> Iterator[_Write]:
    """Open a table whose rows zadapter writes."""
    seconds = dict[str, float]()
    with (
        open_table(check_table(table), backend, spark, writes=True, expressions=True) as found,
        call(verb, check_table(table), found.user_session, seconds),
    ):
        opened = found.backend
        if not is_versioned(opened):
            raise UnsupportedError(
                f"{table}: zadapter writes rows to plain Parquet tables only; use Spark for tables "
                "of this format"
            )
        before_writing(opened.format, found.user_session)
        yield _Write(table=found, backend=opened, attempts=Attempts(backoff), seconds=seconds)


def _stage_change(
    write: _Write,
    snapshot: Snapshot,
    rows: DataFrame,
    removed: pa.Table,
    operation: Operation,
) -> Change:
    """Write and verify *rows*, and return the change that replaces *removed* by them."""
    spark = write.table.spark
    size = file_stats.total(removed, "size") if operation is Operation.DELETE else None
    with write.phase("write", expected=size) as step:
        written = write.backend.write(snapshot, rows, None, Encoding())
        step.note(files=len(written.paths))
    with discarding(spark, [written]), write.phase("verify") as step:
        staged_files = stage_and_check(write.backend, snapshot, written, spark)
        step.note(**file_stats.totals([staged_files.files]))
    exchange = Exchange(removed=removed, added=staged_files.files)
    return Change(base=snapshot, operation=operation, exchanges=(exchange,), staged=(staged_files,))


def _commit_change(write: _Write, change: Change) -> WriteResult:
    """Commit *change*, and discard its staged files if it certainly did not land."""
    added, removed = change.added, change.removed
    facts, attempts = file_stats.totals([added]), write.attempts
    with (
        discarding(write.table.spark, change.staged, attempts),
        write.phase("commit") as step,
    ):
        version = commit_change(write.backend, change, attempts).version
        step.note(version=version, **facts)
    return WriteResult(
        table=write.table.name,
        versions=(version,),
        files_added=added.num_rows,
        files_removed=removed.num_rows,
        rows_added=file_stats.total(added, "rows"),
        rows_removed=file_stats.total(removed, "rows"),
        seconds=write.seconds,
    )


def _append(write: _Write, current: Callable[[], Snapshot], rows: DataFrame) -> WriteResult:
    with write.phase("plan") as step:
        snapshot = current()
        given = write.given(snapshot, rows)
        step.note(version=snapshot.version)
    no_files = write.backend.files(snapshot).slice(0, 0)
    return _commit_change(write, _stage_change(write, snapshot, given, no_files, Operation.APPEND))


def _delete(write: _Write, current: Callable[[], Snapshot], where: str) -> Deletion:
    table, spark, opened = write.table.name, write.table.spark, write.backend
    with write.phase("plan") as step:
        snapshot = current()
        candidates = prune_files(opened, snapshot, where, spark, later=True)
        files, counts = candidates.files, dict[str, int]()
        set_all(spark, ONE_TASK_A_FILE | (UNPUSHED if candidates.on_floats else {}))
        if files.num_rows:
            counts = count_matches(opened.read(snapshot, files), where)
        names = list(map(bare, opened.uris(snapshot, files["path"].to_pylist())))
        if counts.keys() <= set(names):
            files = files.filter(pa.array([name in counts for name in names], pa.bool_()))
        deleted = sum(counts.values())
        step.note(version=snapshot.version, **file_stats.totals([files]))
    if not deleted:
        return Deletion(table=table, seconds=write.seconds, rows_deleted=0)
    rows = opened.read(snapshot, files)
    # rows for which the condition is null are kept
    remaining = rows.where(~F.coalesce(F.expr(where), F.lit(False)))  # noqa: FBT003
    layouts = dict(zip(names, candidates.files["layout"].to_pylist(), strict=True))
    change = _stage_change(write, snapshot, remaining, files, Operation.DELETE)
    with discarding(spark, change.staged):
        change = with_layouts(change, remaining, layouts)
        _check_remaining(table, change, deleted)
    done = _commit_change(write, change)
    fields = {field.name: getattr(done, field.name) for field in dataclasses.fields(done)}
    return Deletion(**fields, rows_deleted=deleted)


def _check_remaining(table: str, change: Change, deleted: int) -> None:
    """Compare the rows that were written with those that should remain.

    Raises:
        VerificationError: The numbers differ; nothing was committed.
    """
    added, removed = (file_stats.total(t, "rows") for t in (change.added, change.removed))
    if added != removed - deleted:
        raise VerificationError(
            f"{table}: {removed - deleted} rows should remain, but {added} rows were written; "
            "nothing was committed. Use a deterministic condition"
        )
