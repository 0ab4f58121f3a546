"""The caller's condition, as this session of Spark reads it."""

import json
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.java_errors import first_line
from zadapter.errors import UsageError
from zadapter.filters.predicate import Predicate
from zadapter.filters.sql import names_function, parse
from zadapter.filters.wordings import other_meaning

_TIMEZONE = "spark.sql.session.timeZone"
_CALL = "org.apache.spark.sql.catalyst.analysis.UnresolvedFunction"


def condition(where: str, schema: pa.Schema, spark: SparkSession) -> Predicate:
    """Return *where* as a predicate over the columns of *schema*.

    Raises:
        UsageError: It is no condition, or zadapter would take it for another one than Spark does.
    """
    if not isinstance(where, str):
        raise UsageError(f"where= takes SQL as text, not {where!r}")
    if other := other_meaning(where, schema, lambda setting: str(spark.conf.get(setting))):
        raise UsageError(f"where= holds {other}")
    return parse(where, schema, timezone=spark.conf.get(_TIMEZONE) or "UTC")


def check_functions(where: str | None, spark: SparkSession) -> None:
    """Refuse a condition that calls a function by the name of one of Spark's, but not that one.

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
        parsed = json.loads(session.sessionState().sqlParser().parseExpression(where).toJSON())
    except ParseException as error:
        raise UsageError(f"where={where!r}: {first_line(error)}") from error
    for name in {node["nameParts"][1:-1] for node in parsed if node["class"] == _CALL}:
        if _is_replaced(name, spark):
            raise UsageError(
                f"where= calls {name}(), which in this session is not Spark's own function; "
                "register yours under another name, or write the condition without it"
            )


def _is_replaced(name: str, spark: SparkSession) -> bool:
    """Tell whether a function that zadapter may know is not the one that Spark comes with."""
    jvm: Any = spark._jvm  # noqa: SLF001
    catalyst = jvm.org.apache.spark.sql.catalyst
    registry = getattr(getattr(catalyst.analysis, "FunctionRegistry$"), "MODULE$")
    identifier = catalyst.FunctionIdentifier(name, jvm.scala.Option.apply(None))
    own = registry.builtin().lookupFunction(identifier)
    if own.isEmpty():
        return names_function(name)
    state: Any = spark._jsparkSession.sessionState()  # noqa: SLF001
    return not own.equals(state.functionRegistry().lookupFunction(identifier))


def check_types(rows: DataFrame, where: str) -> frozenset[str]:
    """Have Spark look at the condition, without running it, and return the columns that it uses.

    Raises:
        UsageError: Spark would refuse it.
    """
    try:
        plan: Any = rows.where(where)._jdf.queryExecution().analyzed()  # noqa: SLF001
    except AnalysisException as error:
        raise UsageError(f"where={where!r}: {first_line(error)}") from error
    used = plan.references().toSeq()
    return frozenset(str(used.apply(number).name()) for number in range(used.size()))
