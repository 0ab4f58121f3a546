"""A sort within partitions that cuts off the last columns of its rows without copying them.

Spark's ``drop`` copies every field of every row, a tenth of a rewrite
(integration/bench/README.md). An ``UnsafeRow`` can lose its last columns without a copy: null bits
and fields come first, at offsets that do not depend on the number of columns
(``UnsafeRow``, "Instances of this class act as pointers"), as long as the
null bits fill the same number of words.

The physical plan relies on Spark's own operators. A plug-in such as Gluten, Comet or
RAPIDS replaces operators after planning, so the session is checked as well as the plan.
"""

from collections.abc import Collection, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from zadapter.backend import builds, plugins
from zadapter.backend.builds import Standing
from zadapter.backend.format import Library
from zadapter.spark.clone import switch_off, to_rows
from zadapter.spark.jvm import scala
from zadapter.spark.jvm.gateway import (
    java_rows,
    java_session,
    query_execution,
    scala_context,
)
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.spark_classes import operators_of
from zadapter.spark.settings import EXTENSIONS

_BITS = 64
"""Null bits per word of an ``UnsafeRow``."""

_PLUGINS = "spark.plugins"
_SHUFFLE = "spark.shuffle.manager"
_SORT_SHUFFLE = {"", "sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager"}
_EXCHANGE = "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec"
_OPERATORS = "org.apache.spark.sql.execution."
"""Package of Spark's operators."""


def narrows(shuffled: DataFrame, added: Collection[str]) -> bool:
    """Return whether the *added* columns can be cut off without copying rows."""
    kept = [name for name in shuffled.columns if name not in added]
    return kept == shuffled.columns[: len(kept)] and _words(len(kept)) == _words(
        len(shuffled.columns)
    )


def sort_and_narrow(
    shuffled: DataFrame, order: Sequence[str], added: Collection[str]
) -> DataFrame | str:
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
    with switch_off(spark, "spark.sql.adaptive.enabled"):
        exchange = query_execution(shuffled).executedPlan()
    if untested := find_untested_operator(operators_of(spark, exchange)):
        return untested
    jvm = java_classes(spark)
    execution = jvm.org.apache.spark.sql.execution
    # operators above refer to the columns by the ids of the logical plan
    dropped = java_rows(shuffled).drop(_seq(jvm, list(added)))
    logical = dropped.queryExecution().analyzed()
    output = logical.output()
    narrow = execution.exchange.ReusedExchangeExec(output, exchange)
    kept = len(shuffled.columns) - len(added)
    places = [shuffled.columns.index(name) for name in order]
    columns = [output.apply(at) if at < kept else _by_ordinal(jvm, exchange, at) for at in places]
    orders = [_ascending(jvm, column) for column in columns]
    sort = execution.SortExec(_seq(jvm, orders), False, narrow, 0)  # noqa: FBT003 - not globally
    return to_rows(spark, execution.adaptive.LogicalQueryStage(logical, sort))


def _words(columns: int) -> int:
    return -(-columns // _BITS)


def _by_ordinal(jvm: Any, exchange: Any, at: int) -> Any:
    """Return a reference to a column of a shuffle by its place."""
    column = exchange.output().apply(at)
    reference = jvm.org.apache.spark.sql.catalyst.expressions.BoundReference
    return reference(at, column.dataType(), column.nullable())


def _ascending(jvm: Any, column: Any) -> Any:
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    ascending, first = (scala.module(expressions, name) for name in ("Ascending", "NullsFirst"))
    return expressions.SortOrder(column, ascending, first, _seq(jvm, []))


def _seq(jvm: Any, items: Sequence[Any]) -> Any:
    """Return *items* as a Scala ``Seq``."""
    return scala.seq(jvm, scala.java_list(jvm, items))


def find_untested_component(spark: SparkSession) -> str | None:
    """Return the component of a session that was not tested, or None."""
    if builds.standing(spark.version) is Standing.UNKNOWN:
        return f"Spark {spark.version}"
    # PySpark's getConf() copies the configuration entry by entry
    conf = scala_context(spark.sparkContext).conf()
    if plugins := _setting(spark, conf, _PLUGINS):
        return f"{_PLUGINS}={plugins}"
    if (shuffle := _setting(spark, conf, _SHUFFLE)) not in _SORT_SHUFFLE:
        return f"{_SHUFFLE}={shuffle}"
    extensions = {library.extension for library in _libraries()}
    names = [name.strip() for name in _setting(spark, conf, EXTENSIONS).split(",")]
    if unknown := [name for name in names if name and name not in extensions]:
        return f"{EXTENSIONS}={unknown[0]}"
    # a service file in a jar, or code, may also register extensions
    rules = java_session(spark).sessionState().columnarRules()
    return None if rules.isEmpty() else f"the columnar rule {_class(rules.head())}"


def find_untested_operator(operators: Sequence[str]) -> str | None:
    """Return an operator at or below a shuffle that was not tested, or None.

    Args:
        operators: Classes of the operators of a ``SparkPlan``, whose root should be the shuffle.
    """
    root, *below = operators
    if root != _EXCHANGE:
        return f"the operator {root}"
    foreign = [name for name in below if not name.startswith(_OPERATORS)]
    libraries = _libraries() if foreign else ()  # found by a search of all packages
    tested = tuple(name for library in libraries for name in library.operators)
    found = next((name for name in foreign if not name.startswith(tested)), None)
    return None if found is None else f"the operator {found}"


def _libraries() -> list[Library]:
    """Return the libraries of all installed formats, which bring extensions and operators."""
    return [form.library for form in plugins.formats().values() if form.library]


def _setting(spark: SparkSession, conf: Any, key: str) -> str:
    """Return a setting of the session, or else of the application."""
    return str(spark.conf.get(key, None) or conf.get(key, "")).strip()


def _class(instance: Any) -> str:
    return str(instance.getClass().getName())
