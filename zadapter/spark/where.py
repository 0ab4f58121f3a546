"""Analysis of the caller's condition by a Spark session."""

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.java_errors import first_line
from zadapter.base.names import leaves
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.planning.options import check_where
from zadapter.predicates.predicate import And, Constant, Predicate, Unknown
from zadapter.spark.clock import calls_clock, reads_clock, without_clock
from zadapter.spark.clone import planned
from zadapter.spark.conditions import predicate_of, unknown_rows
from zadapter.spark.jvm.functions import is_replaced
from zadapter.spark.jvm.gateway import Py4JJavaError, analyzed, java_session, query_execution
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot

JavaObject = Any
_CALL = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"
_ALIAS = "Alias"
_SHOWN = 60


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
        raise _rejected(text, error) from error
    except (PySparkException, Py4JJavaError) as error:
        if "StackOverflowError" not in str(error):
            raise _rejected(text, error) from error
        raise UsageError(
            f"the condition {_short(text)} is nested too deeply; remove the parentheses around "
            "chains of AND or OR, and use IN (...) for lists"
        ) from error


def _check_complete(text: str, spark: SparkSession) -> None:
    """Refuse words behind the condition, such as an ``OR`` without another condition.

    Spark takes them for the name of a column.
    """
    tree = _parsed(text, spark)
    if str(tree.nodeName()) == _ALIAS:
        raise UsageError(
            f"the condition {_short(text)} ends in {tree.name()!r}, which is no part of it; "
            "complete it, or remove that word"
        )


def _predicate(text: str, rows: DataFrame, schema: pa.Schema, *, later: bool) -> Predicate:
    """Optimise the condition with Spark, and convert the optimised plan."""
    session = rows.sparkSession
    unknown = unknown_rows(rows)
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
    return _optimised(_optimised_plan(filtered, text), schema)


def _optimised_plan(rows: DataFrame, text: str) -> JavaObject:
    try:
        return _plan(rows).optimizedPlan()
    except (PySparkException, Py4JJavaError) as error:  # by ANSI, a constant has no value
        raise _rejected(text, error) from error


def _plan(rows: DataFrame) -> JavaObject:
    return query_execution(rows)


def _optimised(plan: JavaObject, schema: pa.Schema) -> Predicate:
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
    analysed = analyzed(backend.read(snapshot, no_files))
    return planned(spark, analysed)


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
    tree = _parsed(where, spark)
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


def _parsed(text: str, spark: SparkSession) -> JavaObject:
    """Return a condition as Spark parses it, which resolves no name."""
    session: Any = java_session(spark)
    try:
        return session.sessionState().sqlParser().parseExpression(text)
    except ParseException as error:
        raise _rejected(text, error) from error


def _rejected(text: str, error: Exception) -> UsageError:
    """Return the error for a condition that Spark rejects, with Spark's reason."""
    return UsageError(f"condition {_short(text)}: {first_line(error)}")


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")
