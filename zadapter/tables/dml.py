"""``append``, ``overwrite`` and ``delete``, for tables whose format has no engine that writes."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.arguments.options import named
from zadapter.arguments.resolve import open_table
from zadapter.arguments.where import check_functions
from zadapter.backend.commit import Backoff, Through, publish
from zadapter.backend.contract import Factory, Versioned
from zadapter.base.interrupts import interruptible
from zadapter.base.names import quote
from zadapter.base.translate_errors import explained
from zadapter.errors import (
    StaleRewriteError,
    UnsupportedError,
    UsageError,
    VerificationError,
)
from zadapter.rewrite.verify import staged
from zadapter.spark.clone import UNPUSHED, scratch, set_all
from zadapter.spark.files import discard, discarding
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Snapshot
from zadapter.tables.read import pruned

T = TypeVar("T")

_TRIES = 8


@explained
def append(
    table: str | PathLike[str],
    rows: DataFrame,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> int | None:
    """Append *rows* to *table*, in one commit, and return its version.

    Args:
        table: A path.
        rows: Columns of the table, by name and of the same types; those that are missing are null.
        backend: ``"parquet"``, or a backend's class; None finds it out.
        backoff: When to try again after losing a race.
        spark: A session; None is that of *rows*.

    Raises:
        UsageError: The rows do not fit the table.
        UnsupportedError: The table's format has an engine of its own that writes.
        ConflictError: Other writers were faster until attempts ran out; nothing was committed.
        UnknownOutcomeError: It is not known whether the commit landed; nothing was deleted.
    """
    with _writing(table, backend, _session(rows, spark)) as (opened, own, _):
        return _anew(lambda: _append(opened, named(table), rows, backoff or Backoff(), own))


@explained
def delete(
    table: str | PathLike[str],
    where: str,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> int:
    """Delete the rows of *table* that *where* is true for, and return how many there were.

    Files that hold such a row are written anew without it, in one commit. Rows that others append
    meanwhile stay; if others rewrite the same files meanwhile, it starts anew.

    Args:
        table: A path.
        where: A condition in Spark's SQL.
        backend: ``"parquet"``, or a backend's class; None finds it out.
        backoff: When to try again after losing a race.
        spark: A session; None is the running one, or a new one.

    Raises:
        UsageError: The condition makes no sense for the table.
        UnsupportedError: The table's format has an engine of its own that writes.
        VerificationError: What was written is not what was to stay; it was not committed.
        ConflictError: Other writers were faster until attempts ran out; nothing was committed.
        UnknownOutcomeError: It is not known whether the commit landed; nothing was deleted.
    """
    if not where or not str(where).strip():
        raise UsageError("where= is empty; to delete all rows, say 'true'")
    with _writing(table, backend, spark) as (opened, own, users):
        check_functions(where, users)
        return _anew(lambda: _delete(opened, named(table), where, backoff or Backoff(), own))


@explained
def overwrite(
    table: str | PathLike[str],
    rows: DataFrame,
    *,
    backend: str | Factory | None = None,
    backoff: Backoff | None = None,
    spark: SparkSession | None = None,
) -> int | None:
    """Replace the partitions that *rows* are of, in one commit, and return its version.

    Without partition columns that is the whole table. Rows that others append meanwhile stay.

    Args:
        table: A path.
        rows: Columns of the table, by name and of the same types; those that are missing are null.
        backend: ``"parquet"``, or a backend's class; None finds it out.
        backoff: When to try again after losing a race.
        spark: A session; None is that of *rows*.

    Raises:
        UsageError: The rows do not fit the table.
        UnsupportedError: The table's format has an engine of its own that writes.
        ConflictError: Other writers changed the same files; nothing was committed.
        UnknownOutcomeError: It is not known whether the commit landed; nothing was deleted.
    """
    with _writing(table, backend, _session(rows, spark)) as (opened, own, _):
        snapshot = opened.snapshot(named(table))
        live = opened.files(snapshot)
        fitting = _fitting(_on(own, rows), opened.read(snapshot, live.slice(0, 0)))
        change = _staged(opened, snapshot, fitting, own, live)
        come = {str(value) for value in change.staged.files["partition"].to_pylist()}
        same = pa.array([str(value) in come for value in live["partition"].to_pylist()], pa.bool_())
        (exchange,) = change.exchanges
        if snapshot.partition:
            exchange = replace(exchange, removed=live.filter(same))
            change = replace(change, exchanges=(exchange,))
        return _landed(opened, change, "overwrite", backoff or Backoff(), own)


def _session(rows: DataFrame, spark: SparkSession | None) -> SparkSession:
    if not isinstance(rows, DataFrame):
        raise UsageError(f"rows are a DataFrame of Spark, not {type(rows)}; see createDataFrame()")
    return spark or rows.sparkSession


@contextmanager
def _writing(
    table: str | PathLike[str], backend: str | Factory | None, spark: SparkSession | None
) -> Iterator[tuple[Versioned, SparkSession, SparkSession]]:
    """Yield the table's backend, the session that it works in, and the user's."""
    session, factory = open_table(named(table), backend, spark)
    with (
        interruptible(session.sparkContext),
        scratch(session, expressions=True) as own,
        closing(factory(own)) as opened,
    ):
        if not isinstance(opened, Versioned):
            raise UnsupportedError(
                f"{table}: Spark writes rows to tables of this format; zadapter does so only to "
                "those of plain Parquet"
            )
        yield opened, own, session


def _on(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """Return *rows*, which their own session evaluates, as rows of *spark*, which writes them."""
    evaluated = rows._jdf.queryExecution().toRdd()  # noqa: SLF001 - a session's rows for another's
    session = spark._jsparkSession  # noqa: SLF001
    return DataFrame(session.internalCreateDataFrame(evaluated, rows._jdf.schema(), False), spark)  # noqa: FBT003, SLF001


def _fitting(rows: DataFrame, like: DataFrame) -> DataFrame:
    """Return *rows* with the columns of *like*, in its order.

    Raises:
        UsageError: They have others, or other types.
    """
    wanted = {field.name: field.dataType.simpleString() for field in like.schema}
    given = {field.name: field.dataType.simpleString() for field in rows.schema}
    if len(given) < len(rows.columns):
        raise UsageError(f"columns repeat: {', '.join(rows.columns)}; name each once")
    for name, type_ in given.items():
        if name not in wanted:
            raise UsageError(f"the table has no column {name!r}; it has: {', '.join(wanted)}")
        if type_ != wanted[name]:
            raise UsageError(f"column {name!r} is {type_}, the table has {wanted[name]}; cast it")

    def column(name: str) -> Column:
        return (
            F.col(quote((name,))) if name in given else F.lit(None).cast(wanted[name]).alias(name)
        )

    return rows.select(*map(column, wanted))


def _staged(
    opened: Versioned, snapshot: Snapshot, rows: DataFrame, spark: SparkSession, gone: pa.Table
) -> Change:
    """Write *rows*, look into the files, and return the change that has them replace *gone*."""
    written = opened.write(snapshot, rows, None, Encoding())
    with discarding(spark, [written]):
        made = staged(opened, snapshot, written, spark)
    exchange = Exchange(removed=gone, added=made.files)
    return Change(base=snapshot, exchanges=(exchange,), staged=made)


def _landed(
    opened: Versioned, change: Change, operation: str, backoff: Backoff, spark: SparkSession
) -> int | None:
    """Publish *change*, and discard what it staged if it certainly did not land."""
    with discarding(spark, [change.staged]):
        log = Through(opened, partial(opened.publish, operation=operation))
        return publish(log, change, backoff).version


def _anew(change: Callable[[], T]) -> T:
    """Make a change, and make it anew if others have rewritten the files that it is about."""
    for _ in range(_TRIES - 1):
        with suppress(StaleRewriteError):
            return change()
    return change()


def _append(
    opened: Versioned, table: str, rows: DataFrame, backoff: Backoff, spark: SparkSession
) -> int | None:
    snapshot = opened.snapshot(table)
    nothing = opened.files(snapshot).slice(0, 0)
    fitting = _fitting(_on(spark, rows), opened.read(snapshot, nothing))
    change = _staged(opened, snapshot, fitting, spark, nothing)
    return _landed(opened, change, "append", backoff, spark)


def _delete(
    opened: Versioned, table: str, where: str, backoff: Backoff, spark: SparkSession
) -> int:
    snapshot = opened.snapshot(table)
    asked = pruned(opened, snapshot, where, spark, later=True)
    found = asked.files
    set_all(spark, UNPUSHED if asked.on_floats else {})
    rows = opened.read(snapshot, found)
    going = rows.where(where).count() if found.num_rows else 0
    if not going:
        return 0
    # a condition that is null does not delete
    staying = rows.where(~F.coalesce(F.expr(where), F.lit(False)))  # noqa: FBT003
    change = _staged(opened, snapshot, staying, spark, found)
    (exchange,) = change.exchanges
    came, went = (file_stats.total(t, "rows") for t in (exchange.added, exchange.removed))
    if came != went - going:
        with suppress(Exception):
            discard(spark, change.staged)
        raise VerificationError(
            f"{table}: {went - going} rows were to stay, {came} were written; nothing was "
            "committed. Is the condition the same whenever it is asked?"
        )
    _landed(opened, change, "delete", backoff, spark)
    return going
