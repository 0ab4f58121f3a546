"""One pass over the rows: read, key, move, sort, write."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from zadapter.base.names import quote
from zadapter.layout.layout import Layout
from zadapter.rewrite.expressions import keyed
from zadapter.spark.checksum import Totals, observed, watched
from zadapter.spark.clone import planned, switched_off
from zadapter.spark.tested_versions import untested_plan, untested_session
from zadapter.table.snapshot import Snapshot

_BITS = 64
"""Columns whose null bits share a word of an ``UnsafeRow``."""


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Rows in their files' partitions, in the order of the curve."""

    rows: DataFrame
    """The table's columns."""
    untested: str | None
    """What this was not tested with, so that plain DataFrame operations are used; None: nothing."""
    watch: tuple[DataFrame, str] | None = field(default=None, repr=False)
    """What is executed, and the name under which it observes the rows that are read."""

    def observed(self) -> Totals | None:
        """Return what the rows that were read add up to, once they are written, if that is known.

        It may count rows twice (see :func:`~zadapter.spark.checksum.watched`).
        """
        return None if self.watch is None else observed(*self.watch)


def clustered(
    rows: DataFrame, layout: Layout, snapshot: Snapshot, *, checksum: bool = False
) -> Clustered:
    """Put each row into its file's partition, in the order of the curve.

    ``repartitionById`` needs no sampling pass, and adaptive execution leaves the number of
    partitions alone.  Sorting by a single integer is a radix sort; under partition columns, which
    are constant within a file, they come first, since the writer would sort by them again.

    Args:
        rows: The table's columns, then those of its partitioning that it has not.
        layout: Where the rows go.
        snapshot: What they are of.
        checksum: Whether to add up what is read.
    """
    untested = untested_session(rows.sparkSession)
    name = None
    if checksum and untested is None:
        rows, name = watched(rows, snapshot.schema.names)
    placed = keyed(rows, layout, snapshot.partition)
    moved = placed.rows.repartitionById(layout.files, placed.file)
    order = (*snapshot.partition, placed.place)
    computed = {each for each in snapshot.partition if each not in snapshot.schema.names}
    added = {*computed, *placed.added}
    if untested is None and _narrows(moved, added):
        with switched_off(moved.sparkSession, "spark.sql.adaptive.enabled"):
            exchange = moved._jdf.queryExecution().executedPlan()  # noqa: SLF001 - no public door
        untested = untested_plan(exchange)
        if untested is None:
            made = _narrowed(moved, exchange, order, added)
            watch = None if name is None else (moved, name)
            return Clustered(rows=made, untested=None, watch=watch)
    made = moved.sortWithinPartitions(*(quote((each,)) for each in order)).drop(*added)
    return Clustered(rows=made, untested=untested)


def _narrows(moved: DataFrame, added: set[str]) -> bool:
    """Tell whether rows lose the *added* columns if only the others are looked at."""
    kept = [name for name in moved.columns if name not in added]
    return kept == moved.columns[: len(kept)] and _words(len(kept)) == _words(len(moved.columns))


def _narrowed(moved: DataFrame, exchange: Any, order: Sequence[str], added: set[str]) -> DataFrame:
    """Sort within partitions and leave out the *added* columns, without a copy of each row.

    Spark's ``drop`` copies every field of every row, a tenth of a rewrite (zadapter/README.md). An
    ``UnsafeRow`` need not be copied to lose its last columns: null bits and fields come before
    all else, at places that do not depend on how many there are (``UnsafeRow``, "Instances of this
    class act as pointers"), as long as the null bits fill as many words. So the sort is told of
    the other columns only, by the one operator whose columns are said and not derived,
    ``ReusedExchangeExec``; what it sorts by it reads from behind them.
    """
    spark = moved.sparkSession
    jvm: Any = spark._jvm  # noqa: SLF001 - physical plans have no public door
    execution = jvm.org.apache.spark.sql.execution
    # what is planned on top knows the columns by the ids of the logical plan
    logical = moved.drop(*added)._jdf.queryExecution().analyzed()  # noqa: SLF001
    narrow = execution.exchange.ReusedExchangeExec(logical.output(), exchange)
    kept = len(moved.columns) - len(added)
    columns = [*_items(logical.output()), *_behind(jvm, exchange, kept)]
    orders = [_ascending(jvm, columns[moved.columns.index(name)]) for name in order]
    sort = execution.SortExec(_seq(jvm, orders), False, narrow, 0)  # noqa: FBT003 - not globally
    return planned(spark, execution.adaptive.LogicalQueryStage(logical, sort))


def _words(columns: int) -> int:
    return -(-columns // _BITS)


def _behind(jvm: Any, exchange: Any, kept: int) -> list[Any]:
    """Return the columns after the first so many, by their places: they go without names."""
    reference = jvm.org.apache.spark.sql.catalyst.expressions.BoundReference
    every = list(enumerate(_items(exchange.output())))
    return [reference(at, column.dataType(), column.nullable()) for at, column in every[kept:]]


def _ascending(jvm: Any, column: Any) -> Any:
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    ascending, first = (
        getattr(getattr(expressions, name), "MODULE$") for name in ("Ascending$", "NullsFirst$")
    )
    return expressions.SortOrder(column, ascending, first, _seq(jvm, []))


def _items(seq: Any) -> list[Any]:
    """Return what is in a Scala ``Seq``."""
    return [seq.apply(at) for at in range(seq.size())]


def _seq(jvm: Any, items: Sequence[Any]) -> Any:
    """Return a Scala ``Seq``."""
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(made).toSeq()
