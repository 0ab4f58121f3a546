"""Analysis of the caller's condition by a Spark session.

The condition is planned over a relation without known rows. What depends on the clock is found.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.java_errors import first_line
from zadapter.base.key_types import DATE, TIMESTAMP, kind_of
from zadapter.base.names import leaves
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.planning.options import check_where
from zadapter.predicates import spark_tree
from zadapter.predicates.predicate import And, Constant, Predicate, Unknown
from zadapter.spark.clone import to_rows
from zadapter.spark.jvm.gateway import (
    Py4JJavaError,
    analyzed_plan,
    java_rows,
    java_session,
    query_execution,
)
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.spark_classes import column, is_replaced
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot

JavaObject = Any
_CALL = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"
_ALIAS = "Alias"
_SHOWN = 60

_WORDS = re.compile(r"""['"]\s*(now|today|tomorrow|yesterday)\b|\$\{""", re.IGNORECASE)
_TIMES = re.compile(r"""['"]\s*T?\d{1,2}:""", re.IGNORECASE)

_SEPARATOR = "\0"


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Nodes of an expression tree in the JVM."""

    tree: JavaObject

    def value(self, number: int) -> Any:
        """Return the internal value of a literal."""
        return self.tree.apply(number).value()

    def members(self, number: int) -> tuple[list[str], bool] | None:
        """Return the non-null values of an ``InSet``, and whether it contains null.

        The values cross to Python as one string, since there may be a million of them. The result
        is None if a value contains the separator.
        """
        values = self.tree.apply(number).hset()
        has_null = bool(values.contains(None))
        if has_null:
            values = getattr(values, "$minus")(None)
        texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
        return (texts, has_null) if len(texts) == values.size() else None

    def escape(self, number: int) -> str:
        """Return the escape character of a ``Like``."""
        return str(self.tree.apply(number).escapeChar())

    def sql(self, number: int) -> str:
        """Return a node as SQL."""
        return str(self.tree.apply(number).sql())


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and the table columns that it references."""

    predicate: Predicate
    columns: frozenset[str]
    """Names of columns; for a nested column, the name of the outermost column."""


def condition(where: str, rows: DataFrame, schema: pa.Schema, *, later: bool) -> Condition:
    """Analyse a condition in the session that evaluates it, and convert it to a predicate.

    Spark does not evaluate the condition. Spark optimises it over a relation with the same columns
    and unknown rows, so that the contents of the table do not simplify it.

    Args:
        where: A condition in Spark's SQL.
        rows: The table's rows.
        schema: The table's columns.
        later: Whether the query runs at a later time. If so, functions that read the clock, such
            as ``current_date``, exclude no files.

    Raises:
        UnknownColumnError: The condition references a column that the table does not have.
        UsageError: Spark rejects the condition, or it has a subquery.
    """
    check_where(where)
    analysed = _plan(_where(rows, where)).analyzed()
    _check_complete(where, rows.sparkSession)
    if not analysed.subqueries().isEmpty():
        raise UsageError(
            f"the condition {_short(where)} has a subquery; run it first and use its result"
        )
    used = analysed.references().toSeq()
    names = {str(used.apply(number).name()).lower() for number in range(used.size())}
    columns = frozenset(name for name in schema.names if name.lower() in names)
    types = [type_ for parts, type_ in leaves(schema) if parts[0] in columns]
    if later and reads_clock(where, types):
        return Condition(Unknown(where), columns)
    return Condition(_predicate(where, rows, schema, later=later), columns)


def _where(rows: DataFrame, text: str) -> DataFrame:
    try:
        return rows.where(text)
    except AnalysisException as error:
        if str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
            name = (error.getMessageParameters() or {}).get("objectName", "")
            raise UnknownColumnError(name.replace("`", ""), rows.columns) from error
        raise _to_usage_error(text, error) from error
    except (PySparkException, Py4JJavaError) as error:
        if "StackOverflowError" not in str(error):
            raise _to_usage_error(text, error) from error
        raise UsageError(
            f"the condition {_short(text)} is nested too deeply; remove the parentheses around "
            "chains of AND or OR, and use IN (...) for lists"
        ) from error


def _check_complete(text: str, spark: SparkSession) -> None:
    """Refuse words behind the condition, such as an ``OR`` without another condition.

    Spark takes them for the name of a column.
    """
    tree = _parse_condition(text, spark)
    if str(tree.nodeName()) == _ALIAS:
        raise UsageError(
            f"the condition {_short(text)} ends in {tree.name()!r}, which is no part of it; "
            "complete it, or remove that word"
        )


def _predicate(text: str, rows: DataFrame, schema: pa.Schema, *, later: bool) -> Predicate:
    """Optimise the condition with Spark, and convert the optimised plan."""
    session = rows.sparkSession
    unknown = hide_rows(rows)
    try:
        filtered = unknown.where(text)
    except AnalysisException:  # it references metadata columns, which only file relations have
        return Unknown(text)
    analysed = _plan(filtered).analyzed()
    if later and calls_clock(session, analysed):
        kept = without_clock(unknown, analysed)
        if kept is None:
            return Unknown(text)
        filtered = kept
    return _convert_filters(_optimise(filtered, text), schema)


def _optimise(rows: DataFrame, text: str) -> JavaObject:
    try:
        return _plan(rows).optimizedPlan()
    except (PySparkException, Py4JJavaError) as error:  # by ANSI, a constant has no value
        raise _to_usage_error(text, error) from error


def _plan(rows: DataFrame) -> JavaObject:
    return query_execution(rows)


def _convert_filters(plan: JavaObject, schema: pa.Schema) -> Predicate:
    """Convert the filters of an optimised plan; an empty relation means a false condition."""
    parts = []
    while plan.nodeName() == "Filter":
        parts.append(predicate_of(plan.condition(), schema))
        plan = plan.child()
    if plan.nodeName() == "LocalRelation":
        return Constant(value=False)
    is_scan = plan.nodeName() == "LogicalRDD"
    return And(tuple(parts)) if is_scan else Unknown(str(plan.nodeName()))


def without_rows(backend: Backend, snapshot: Snapshot, spark: SparkSession) -> DataFrame:
    """Return the columns of a table, without rows, in the session that evaluates conditions."""
    no_files = file_stats.empty({}, snapshot.partition)
    analysed = analyzed_plan(backend.read(snapshot, no_files))
    return to_rows(spark, analysed)


def check_functions(where: str | None, spark: SparkSession) -> None:
    """Refuse a condition that calls a function which replaces a built-in function of Spark.

    The sessions in which zadapter writes have Spark's built-in functions under these names.

    Args:
        where: The condition.
        spark: The user's session, which has the functions.

    Raises:
        UsageError: The condition calls such a function, or Spark cannot parse the condition.
    """
    if not isinstance(where, str):
        return
    tree = _parse_condition(where, spark)
    jvm = java_classes(spark)
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if not tree.containsPattern(patterns.UNRESOLVED_FUNCTION()):
        return  # the JSON of a long list is slow
    parsed = json.loads(tree.toJSON())
    for name in {node["nameParts"][1:-1] for node in parsed if node["class"] == _CALL}:
        if is_replaced(spark, name):
            raise UsageError(
                f"the condition calls {name}(), which a function of this session replaces; "
                "register that function under another name, or remove the call from the condition"
            )


def _parse_condition(text: str, spark: SparkSession) -> JavaObject:
    """Return a condition as Spark parses it, which resolves no name."""
    session: Any = java_session(spark)
    try:
        return session.sessionState().sqlParser().parseExpression(text)
    except ParseException as error:
        raise _to_usage_error(text, error) from error


def _to_usage_error(text: str, error: Exception) -> UsageError:
    """Return the error for a condition that Spark rejects, with Spark's reason."""
    return UsageError(f"condition {_short(text)}: {first_line(error)}")


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def reads_clock(text: str, types: list[pa.DataType]) -> bool:
    """Return whether Spark may read a constant in a condition by the clock.

    Spark converts ``'now'``, ``'today'`` and times without a date, such as ``'12:00'``, when it
    parses or optimises a condition. The converted constants do not show that, and neither does the
    text where a variable is replaced.

    Args:
        text: The condition.
        types: Types of the columns that the condition references.
    """
    return bool(
        _WORDS.search(text)
        or (any(kind_of(type_) in {DATE, TIMESTAMP} for type_ in types) and _TIMES.search(text))
    )


def calls_clock(spark: SparkSession, tree: JavaObject) -> bool:
    """Return whether an analysed plan or expression calls a function such as ``current_date``."""
    jvm = java_classes(spark)
    return bool(
        tree.containsPattern(jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE())
    )


def without_clock(rows: DataFrame, analysed: JavaObject) -> DataFrame | None:
    """Filter rows by the conjuncts that do not call such functions.

    Args:
        rows: The rows that *analysed* filters.
        analysed: The analysed plan of the condition; None is returned if it is no plain filter.
    """
    if analysed.nodeName() != "Filter":
        return None
    jvm = java_classes(rows.sparkSession)
    java = java_rows(rows)
    for part in split_conjuncts(analysed.condition()):
        if not calls_clock(rows.sparkSession, part):
            java = java.where(column(jvm, part))
    return DataFrame(java, rows.sparkSession)


def split_conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    """Yield the parts of a conjunction in Catalyst, in their order."""
    pending = [expression]
    while pending:
        part = pending.pop()
        if part.nodeName() == "And":
            pending += (part.right(), part.left())
        else:
            yield part


def hide_rows(rows: DataFrame) -> DataFrame:
    """Return a relation with the columns of *rows*, whose rows the optimiser does not know.

    The contents of a table so do not simplify the conditions that are planned over it.
    """
    session = rows.sparkSession
    java: Any = java_session(session)
    no_rows = java.emptyDataFrame().queryExecution().toRdd()
    converted = java.internalCreateDataFrame(no_rows, java_rows(rows).schema(), False)  # noqa: FBT003
    return DataFrame(converted, session)


def predicate_of(condition: JavaObject, schema: pa.Schema) -> Predicate:
    """Convert an optimised Catalyst condition on columns of *schema* to a predicate."""
    return spark_tree.predicate(json.loads(condition.toJSON()), schema, _Expressions(condition))
