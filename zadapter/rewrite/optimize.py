"""``optimize`` and ``plan``."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from os import PathLike

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.arguments.options import By, Options
from zadapter.arguments.resolve import open_table
from zadapter.arguments.where import check_functions
from zadapter.backend.commit import Backoff
from zadapter.backend.contract import Backend, Factory
from zadapter.base.interrupts import interruptible
from zadapter.base.translate_errors import explained, explaining
from zadapter.reports.optimize import Plan, Report, timing
from zadapter.rewrite.job import Tally, rewrite
from zadapter.rewrite.planner import RewritePlan, prepare
from zadapter.spark.clone import refresh, scratch
from zadapter.table import file_stats
from zadapter.table.file_stats import narrowed
from zadapter.table.snapshot import chosen


@explained
def optimize(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = "128MB",
    row_groups: int = 16,
    max_group_bytes: str | int = "256GB",
    widen_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Cluster *table* so that filters on *by* open fewer files and row groups.

    Rows, schema, partitions, row ids and streams stay as they are. Files that an earlier run laid
    out in the same way are left alone: a run after an append rewrites little more than that.

    Args:
        table: A path, ``delta.`path```, or an identifier of the session's catalog.
        by: Key columns, those most filters use; one to four are useful. Nested fields as ``a.b``.
            A mapping of column to weight gives a column more of the z-value's bits.
        backend: ``"delta"``, ``"iceberg"``, ``"parquet"`` or a backend's class; None finds it out.
        where: SQL. Files that cannot hold a matching row are left alone, others rewritten whole.
        curve: ``"adaptive"``, ``"zorder"``, ``"hilbert"`` or ``"linear"``.
        target_file_size: Bytes a written file should have, or text such as ``"128MB"``.
        row_groups: Row groups a written file should have; readers skip them one by one.
        max_group_bytes: Larger partitions are clustered in parts of at most this many bytes.
        widen_stats: Add key columns without stats to the table property that lists those with.
        force: Rewrite what is clustered already, and fit new cuts.
        verify: ``"counts"`` compares rows by number, ``"checksum"`` by all values (one more read).
        backoff: When to try a commit again after losing a race.
        spark: A classic Spark session; None takes the active one, or starts a local one.

    Returns: What was rewritten, what was left behind, and what it brought.

    Raises:
        UsageError, SessionError, UnsupportedError: Nothing was written; the message says why.
        VerificationError: What was written is not what was read; it was not committed.
        ConflictError: Other writers were faster until attempts ran out; nothing was committed.
        UnknownOutcomeError: It is not known whether a commit landed; nothing was deleted.
    """
    options = Options(
        table=table,
        by=by,
        where=where,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        max_group_bytes=max_group_bytes,
        widen_stats=widen_stats,
        force=force,
        verify=verify,
        backoff=Backoff() if backoff is None else backoff,
    )
    with _opened(options, backend, spark) as (opened, own, users):
        return _run(options, opened, own, users)


@explained
def plan(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By,
    backend: str | Factory | None = None,
    where: str | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = "128MB",
    row_groups: int = 16,
    max_group_bytes: str | int = "256GB",
    widen_stats: bool = False,
    force: bool = False,
    verify: str = "counts",
    spark: SparkSession | None = None,
) -> Plan:
    """Predict what :func:`optimize` would do with the same arguments, without writing anything.

    Reads the table's log and a sample of the key columns. With ``widen_stats``, it predicts as if
    the stats were there, and changes no property.

    Raises:
        UsageError: An argument makes no sense for this table.
        SessionError: The Spark session, its jars or Java do not fit.
        UnsupportedError: The table uses a feature that zadapter cannot keep.
        MissingStatsError: The table collects no stats for a key column.
    """
    options = Options(
        table=table,
        by=by,
        where=where,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        max_group_bytes=max_group_bytes,
        widen_stats=widen_stats,
        force=force,
        verify=verify,
    )
    with _opened(options, backend, spark) as (opened, _, _):
        return prepare(options, opened, write=False).plan()


@contextmanager
def _opened(
    options: Options, backend: str | Factory | None, spark: SparkSession | None
) -> Iterator[tuple[Backend, SparkSession, SparkSession]]:
    """Open the table in a session beside the user's; yield the backend and both sessions."""
    users, factory = open_table(options.name, backend, spark)
    check_functions(options.where, users)
    with (
        interruptible(users.sparkContext),
        scratch(users, expressions=options.where is not None) as own,
        closing(factory(own)) as opened,
    ):
        yield opened, own, users


def _run(options: Options, backend: Backend, spark: SparkSession, users: SparkSession) -> Report:
    tally = Tally()
    with timing(tally.seconds, "total"):
        with timing(tally.seconds, "plan"):
            prepared = prepare(options, backend, write=True)
            planned = prepared.plan()
        tally.seconds["fit"] = prepared.seconds
        tally.seconds["plan"] -= prepared.seconds
        with tally.telling(), explaining(options.name):
            errors = [
                error
                for work in prepared.work
                if (error := rewrite(prepared, work, spark, options, tally)) is not None
            ]
    if errors and len(errors) == len(prepared.work):
        raise errors[-1]
    if tally.versions:
        refresh(users, prepared.snapshot)
    return _report(prepared, planned, tally, options)


def _report(prepared: RewritePlan, planned: Plan, tally: Tally, options: Options) -> Report:
    empty = prepared.files.slice(0, 0)
    names = prepared.files.schema
    removed = pa.concat_tables([empty, *(exchange.removed for exchange in tally.exchanges)])
    added = [exchange.added for exchange in tally.exchanges]
    kept = set(prepared.files["path"].to_pylist()) - set(removed["path"].to_pylist())
    now = pa.concat_tables(
        [chosen(prepared.files, kept), *(narrowed(table, names) for table in added)]
    )
    return Report(
        plan=planned,
        versions=tuple(tally.versions),
        files_removed=removed.num_rows,
        files_added=sum(table.num_rows for table in added),
        bytes_removed=file_stats.total(removed, "size"),
        bytes_added=sum(file_stats.total(table, "size") for table in added),
        rows=sum(file_stats.total(table, "rows") for table in added),
        share_after=prepared.share_read(now),
        stale=tuple(tally.stale),
        seconds=dict(tally.seconds),
        verification=tally.verification(options.verify),
    )
