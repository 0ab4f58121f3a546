"""Shuffle and sort of rows into the files of a layout."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from zadapter.base.names import quote
from zadapter.layout.layout import Layout
from zadapter.releases import scala
from zadapter.releases.java_classes import java_classes
from zadapter.releases.spark_api import repartition_by_id
from zadapter.rewrite.expressions import keyed
from zadapter.spark.checksum import Totals, observed, watched
from zadapter.spark.clone import planned, switched_off
from zadapter.spark.tested_versions import untested_plan, untested_session
from zadapter.table.snapshot import Snapshot

_BITS = 64
"""Null bits per word of an ``UnsafeRow``."""


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Rows partitioned by file and sorted along the curve."""

    rows: DataFrame
    """The table's columns."""
    untested: str | None
    """The untested component that makes this fall back to DataFrame operations; None: none."""
    watch: tuple[DataFrame, str] | None = field(default=None, repr=False)
    """The executed rows, and the name of their observation."""

    def observed(self) -> Totals | None:
        """Return the totals of the rows read, once they are written; None: unknown.

        The totals may count rows twice (see :func:`~zadapter.spark.checksum.watched`).
        """
        return None if self.watch is None else observed(*self.watch)


def clustered(
    rows: DataFrame, layout: Layout, snapshot: Snapshot, *, checksum: bool = False
) -> Clustered:
    """Shuffle each row to the partition of its file, and sort each partition along the curve.

    A shuffle by number needs no sampling pass, and adaptive execution does not change the number of
    partitions. A sort by a single integer is a radix sort. Partition columns are constant within a
    file; they precede the integer, since the writer would otherwise sort by them again.

    Args:
        rows: The table's columns, then the partition fields that are not table columns.
        layout: The layout of the new files.
        snapshot: The snapshot of the rows.
        checksum: Whether to compute a checksum of the rows read.
    """
    untested = untested_session(rows.sparkSession)
    name = None
    if checksum and untested is None:
        rows, name = watched(rows, snapshot.schema.names)
    keyed_rows = keyed(rows, layout, snapshot.partition)
    shuffled = repartition_by_id(keyed_rows.rows, layout.files, keyed_rows.file)
    order = (*snapshot.partition, keyed_rows.position)
    computed = {column for column in snapshot.partition if column not in snapshot.schema.names}
    added = {*computed, *keyed_rows.added}
    if untested is None and _narrows(shuffled, added):
        with switched_off(shuffled.sparkSession, "spark.sql.adaptive.enabled"):
            exchange = shuffled._jdf.queryExecution().executedPlan()  # noqa: SLF001 - no public door
        untested = untested_plan(exchange)
        if untested is None:
            sorted_rows = _narrowed(shuffled, exchange, order, added)
            watch = None if name is None else (shuffled, name)
            return Clustered(rows=sorted_rows, untested=None, watch=watch)
    sorted_rows = shuffled.sortWithinPartitions(*(quote((column,)) for column in order)).drop(
        *added
    )
    return Clustered(rows=sorted_rows, untested=untested)


def _narrows(shuffled: DataFrame, added: set[str]) -> bool:
    """Return whether the *added* columns can be cut off without copying rows."""
    kept = [name for name in shuffled.columns if name not in added]
    return kept == shuffled.columns[: len(kept)] and _words(len(kept)) == _words(
        len(shuffled.columns)
    )


def _narrowed(
    shuffled: DataFrame, exchange: Any, order: Sequence[str], added: set[str]
) -> DataFrame:
    """Sort within partitions and cut off the *added* columns, without a copy of each row.

    Spark's ``drop`` copies every field of every row, a tenth of a rewrite (zadapter/README.md). An
    ``UnsafeRow`` can lose its last columns without a copy: null bits and fields come first, at
    offsets that do not depend on the number of columns (``UnsafeRow``, "Instances of this class act
    as pointers"), as long as the null bits fill the same number of words. ``ReusedExchangeExec``
    has declared, not derived, output columns, so it presents only the kept columns to the sort. The
    sort reads its *added* keys by ordinal.
    """
    spark = shuffled.sparkSession
    jvm = java_classes(spark)
    execution = jvm.org.apache.spark.sql.execution
    # operators above refer to the columns by the ids of the logical plan
    logical = shuffled.drop(*added)._jdf.queryExecution().analyzed()  # noqa: SLF001
    narrow = execution.exchange.ReusedExchangeExec(logical.output(), exchange)
    kept = len(shuffled.columns) - len(added)
    columns = [*_items(logical.output()), *_behind(jvm, exchange, kept)]
    orders = [_ascending(jvm, columns[shuffled.columns.index(name)]) for name in order]
    sort = execution.SortExec(_seq(jvm, orders), False, narrow, 0)  # noqa: FBT003 - not globally
    return planned(spark, execution.adaptive.LogicalQueryStage(logical, sort))


def _words(columns: int) -> int:
    return -(-columns // _BITS)


def _behind(jvm: Any, exchange: Any, kept: int) -> list[Any]:
    """Return references by ordinal to the columns after the first *kept*."""
    reference = jvm.org.apache.spark.sql.catalyst.expressions.BoundReference
    every = list(enumerate(_items(exchange.output())))
    return [reference(at, column.dataType(), column.nullable()) for at, column in every[kept:]]


def _ascending(jvm: Any, column: Any) -> Any:
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    ascending, first = (scala.module(expressions, name) for name in ("Ascending", "NullsFirst"))
    return expressions.SortOrder(column, ascending, first, _seq(jvm, []))


def _items(seq: Any) -> list[Any]:
    """Return the items of a Scala ``Seq``."""
    return [seq.apply(at) for at in range(seq.size())]


def _seq(jvm: Any, items: Sequence[Any]) -> Any:
    """Return *items* as a Scala ``Seq``."""
    return scala.seq(jvm, scala.java_list(jvm, items))
