"""A sort within partitions that cuts off the last columns of its rows without copying them.

Spark's ``drop`` copies every field of every row, a tenth of a rewrite (zadapter/README.md). An
``UnsafeRow`` can lose its last columns without a copy: null bits and fields come first, at offsets
that do not depend on the number of columns (``UnsafeRow``, "Instances of this class act as
pointers"), as long as the null bits fill the same number of words.
"""

from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import DataFrame

from zadapter.spark.clone import planned, switched_off
from zadapter.spark.jvm import scala
from zadapter.spark.jvm.gateway import analyzed, query_execution
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.narrowing.components import untested_plan

_BITS = 64
"""Null bits per word of an ``UnsafeRow``."""


def narrows(shuffled: DataFrame, added: Collection[str]) -> bool:
    """Return whether the *added* columns can be cut off without copying rows."""
    kept = [name for name in shuffled.columns if name not in added]
    return kept == shuffled.columns[: len(kept)] and _words(len(kept)) == _words(
        len(shuffled.columns)
    )


def narrowed(shuffled: DataFrame, order: Sequence[str], added: Collection[str]) -> DataFrame | str:
    """Sort within partitions and cut off the *added* columns, without a copy of each row.

    ``ReusedExchangeExec`` has declared, not derived, output columns, so it presents only the kept
    columns to the sort. The sort reads its *added* keys by ordinal.

    Args:
        shuffled: Rows that are partitioned; the *added* columns are the last ones.
        order: The columns to sort by.
        added: The columns to cut off.

    Returns:
        The rows, or an operator of the plan that was not tested.
    """
    spark = shuffled.sparkSession
    with switched_off(spark, "spark.sql.adaptive.enabled"):
        exchange = query_execution(shuffled).executedPlan()
    if untested := untested_plan(exchange):
        return untested
    jvm = java_classes(spark)
    execution = jvm.org.apache.spark.sql.execution
    # operators above refer to the columns by the ids of the logical plan
    logical = analyzed(shuffled.drop(*added))
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
