"""The caller's condition, as a session of Spark analyses it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.java_errors import first_line
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.filters import spark_tree
from zadapter.filters.predicate import And, Constant, Predicate, Unknown

JavaObject = Any
_CALL = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"
_SEPARATOR = "\0"
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition, and the columns of the table that it is about."""

    predicate: Predicate
    columns: frozenset[str]
    """By name; of nested columns the outermost."""


def condition(where: object, rows: DataFrame, schema: pa.Schema, *, later: bool) -> Condition:
    """Analyse a condition in the session that evaluates it, and read it into a predicate.

    Spark does not run it. It is optimised on a relation of the same columns whose rows are unknown,
    so that Spark cannot simplify it by what the table holds.

    Args:
        where: A condition in Spark's SQL.
        rows: The table's rows.
        schema: The table's columns.
        later: Whether rows are found at another time than this one. If so, the functions that look
            at the clock, such as ``current_date``, exclude nothing.

    Raises:
        UnknownColumnError: It names a column that the table does not have.
        UsageError: It is no condition that Spark takes, or it has a subquery.
    """
    text = _text(where)
    analysed = _plan(_where(rows, text)).analyzed()
    if not analysed.subqueries().isEmpty():
        raise UsageError(
            f"the condition {_short(text)} has a subquery; run it first and write its result"
        )
    used = analysed.references().toSeq()
    names = {str(used.apply(number).name()).lower() for number in range(used.size())}
    columns = frozenset(name for name in schema.names if name.lower() in names)
    return Condition(_predicate(text, rows, schema, later=later), columns)


def _text(where: object) -> str:
    if not isinstance(where, str):
        raise UsageError(f"where= takes SQL as text, not {where!r}")
    if not where.strip():
        raise UsageError("the condition is empty; leave it out to mean every row")
    return where


def _where(rows: DataFrame, text: str) -> DataFrame:
    try:
        return rows.where(text)
    except AnalysisException as error:
        if str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
            name = (error.getMessageParameters() or {}).get("objectName", "")
            raise UnknownColumnError(name.replace("`", ""), rows.columns) from error
        raise UsageError(f"where={_short(text)}: {first_line(error)}") from error
    except (PySparkException, Py4JJavaError) as error:
        if "StackOverflowError" not in str(error):
            raise UsageError(f"where={_short(text)}: {first_line(error)}") from error
        raise UsageError(
            f"the condition {_short(text)} is nested too deep; drop the parentheses around "
            "chains of AND or OR, and write lists as IN (...)"
        ) from error


def _predicate(text: str, rows: DataFrame, schema: pa.Schema, *, later: bool) -> Predicate:
    """Have Spark optimise the condition, and read what is left of it."""
    session = rows.sparkSession
    java: Any = session._jsparkSession  # noqa: SLF001 - internal rows have no public door
    nothing = java.emptyDataFrame().queryExecution().toRdd()
    java_rows = java.internalCreateDataFrame(nothing, rows._jdf.schema(), False)  # noqa: FBT003, SLF001
    unknown = DataFrame(java_rows, session)
    try:
        asked = unknown.where(text)
    except AnalysisException:  # columns that only a table of files has
        return Unknown(text)
    if later and _sees_clock(session, _plan(asked).analyzed()):
        asked = _without_clock(unknown, _plan(asked).analyzed())
    return _optimised(_plan(asked).optimizedPlan(), schema)


def _plan(rows: DataFrame) -> JavaObject:
    return rows._jdf.queryExecution()  # noqa: SLF001


def _patterns(spark: SparkSession) -> JavaObject:
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    return jvm.org.apache.spark.sql.catalyst.trees.TreePattern


def _sees_clock(spark: SparkSession, tree: JavaObject) -> bool:
    return bool(tree.containsPattern(_patterns(spark).CURRENT_LIKE()))


def _without_clock(rows: DataFrame, analysed: JavaObject) -> DataFrame:
    """Keep the parts of a condition that are the same at any time."""
    jvm: Any = rows.sparkSession._jvm  # noqa: SLF001
    java = rows._jdf  # noqa: SLF001
    for part in _conjuncts(analysed.condition()):
        if not _sees_clock(rows.sparkSession, part):
            java = java.where(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(part))
    return DataFrame(java, rows.sparkSession)


def _conjuncts(expression: JavaObject) -> Iterator[JavaObject]:
    pending = [expression]
    while pending:
        part = pending.pop()
        if part.nodeName() == "And":
            pending += (part.right(), part.left())
        else:
            yield part


def _optimised(plan: JavaObject, schema: pa.Schema) -> Predicate:
    """Read the filters of an optimised plan; without rows, none of them is true."""
    parts = []
    while plan.nodeName() == "Filter":
        tree = plan.condition()
        nodes = json.loads(tree.toJSON())
        parts.append(spark_tree.predicate(nodes, schema, _Expressions(tree)))
        plan = plan.child()
    if plan.nodeName() == "LocalRelation":
        return Constant(value=False)
    known = plan.nodeName() == "LogicalRDD"
    return And(tuple(parts)) if known else Unknown(str(plan.nodeName()))


@dataclass(frozen=True, slots=True)
class _Expressions:
    """Nodes of a tree of expressions in the JVM."""

    tree: JavaObject

    def value(self, number: int) -> Any:
        """Return the internal value of a literal."""
        return self.tree.apply(number).value()

    def members(self, number: int) -> tuple[list[str], bool] | None:
        """Return the values of an ``InSet``: in one text, since there may be a million."""
        values = self.tree.apply(number).hset()
        has_null = bool(values.contains(None))
        if has_null:
            values = getattr(values, "$minus")(None)
        texts = str(values.mkString(_SEPARATOR)).split(_SEPARATOR)
        return (texts, has_null) if len(texts) == values.size() else None

    def escape(self, number: int) -> str:
        """Return the escape character of a ``Like``."""
        return str(self.tree.apply(number).escapeChar())


def check_functions(where: str | None, spark: SparkSession) -> None:
    """Refuse a condition that calls a function by the name of one of Spark's, but not that one.

    Sessions in which zadapter writes have Spark's own functions under these names.

    Args:
        where: The condition.
        spark: The user's session, which knows the functions.

    Raises:
        UsageError: It does, or Spark cannot parse it.
    """
    if not isinstance(where, str):
        return
    session: Any = spark._jsparkSession  # noqa: SLF001 - parser and registry have no public door
    try:
        tree = session.sessionState().sqlParser().parseExpression(where)
    except ParseException as error:
        raise UsageError(f"where={_short(where)}: {first_line(error)}") from error
    if not tree.containsPattern(_patterns(spark).UNRESOLVED_FUNCTION()):
        return  # JSON of long lists takes long
    parsed = json.loads(tree.toJSON())
    for name in {node["nameParts"][1:-1] for node in parsed if node["class"] == _CALL}:
        if _is_replaced(name, spark):
            raise UsageError(
                f"where= calls {name}(), which in this session is not Spark's own function; "
                "register yours under another name, or write the condition without it"
            )


def _is_replaced(name: str, spark: SparkSession) -> bool:
    """Tell whether a function of the session hides the one that Spark comes with."""
    jvm: Any = spark._jvm  # noqa: SLF001
    catalyst = jvm.org.apache.spark.sql.catalyst
    registry = getattr(getattr(catalyst.analysis, "FunctionRegistry$"), "MODULE$")
    identifier = catalyst.FunctionIdentifier(name, jvm.scala.Option.apply(None))
    own = registry.builtin().lookupFunction(identifier)
    if own.isEmpty():
        return False
    state: Any = spark._jsparkSession.sessionState()  # noqa: SLF001
    return not own.equals(state.functionRegistry().lookupFunction(identifier))


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
