"""Spark's own classes, functions and scans.

Spark 4 has moved classes to ``org.apache.spark.sql.classic``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaClass

from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import module

JavaObject = Any

_SYSTEM, _BUILTIN, _SESSION = "system", "builtin", "session"
"""Parts of the names of functions since Spark 4.2."""

_ADAPTIVE = "AdaptiveSparkPlanExec"


def sessions(jvm: JavaObject) -> JavaObject:
    """Return the companion of Spark's session, which knows the thread's active session."""
    return module(_package(jvm), "SparkSession")


@contextmanager
def activate(spark: Any) -> Iterator[None]:
    """Make *spark* the active session of Java's thread for this one, and restore it on exit."""
    companion = sessions(java_classes(spark))
    before = companion.getActiveSession()
    companion.setActiveSession(spark._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            companion.setActiveSession(before.get())
        else:
            companion.clearActiveSession()


def dataset(jvm: JavaObject, session: JavaObject, plan: JavaObject) -> JavaObject:
    """Return a logical plan as a ``Dataset``."""
    return _package(jvm).Dataset.ofRows(session, plan)


def column(jvm: JavaObject, expression: JavaObject) -> JavaObject:
    """Return a Catalyst expression as a ``Column``."""
    package = _package(jvm)
    if isinstance(package.ExpressionUtils, JavaClass):
        return package.ExpressionUtils.column(expression)
    return package.Column(expression)


def _package(jvm: JavaObject) -> JavaObject:
    sql = jvm.org.apache.spark.sql
    return sql.classic if isinstance(sql.classic.SparkSession, JavaClass) else sql


def is_replaced(spark: Any, name: str) -> bool:
    """Return whether a function of the session has the name of a built-in function.

    Until Spark 4.1, it replaces the built-in function. Since Spark 4.2, a setting decides.
    """
    jvm = java_classes(spark)
    catalyst = jvm.org.apache.spark.sql.catalyst
    companion = module(catalyst.analysis, "FunctionRegistry")
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    option, qualified = jvm.scala.Option.apply, "builtinFunctionIdentifier" in dir(companion)

    def identifier(database: str) -> Any:
        if not qualified:
            return catalyst.FunctionIdentifier(name, option(None))
        return catalyst.FunctionIdentifier(name, option(database), option(_SYSTEM))

    builtin = companion.builtin().lookupFunction(identifier(_BUILTIN))
    if builtin.isEmpty():
        return False
    if qualified and registry.functionExists(identifier(_SESSION)):
        return True
    return not builtin.equals(registry.lookupFunction(identifier(_BUILTIN)))


def leaves_of(rows: Any) -> Iterator[Any]:
    """Yield the operators of the physical plan of a DataFrame that read something.

    Args:
        rows: The DataFrame. It is planned, but not executed.
    """
    pending = [rows._jdf.queryExecution().executedPlan()]  # noqa: SLF001 - plans have no public door
    while pending:
        plan = pending.pop()
        if plan.getClass().getSimpleName() == _ADAPTIVE:
            pending.append(plan.initialPlan())
            continue
        found = plan.collectLeaves()
        operators = [found.apply(number) for number in range(found.size())]
        if len(operators) == 1 and operators[0].getClass().getSimpleName() == _ADAPTIVE:
            pending.append(operators[0])
        else:
            yield from operators


def list_scanned_files(rows: Any) -> list[str]:
    """Return the URIs of the files that scans of Spark's own file sources read."""
    found: dict[str, None] = {}
    for leaf in leaves_of(rows):
        if leaf.getClass().getSimpleName() != "FileSourceScanExec":
            continue  # local rows: the condition is false, or there are no files
        # partitions are pruned and files chosen when the operator makes its RDD
        parts = leaf.inputRDDs().head().filePartitions()
        for number in range(parts.size()):
            found |= {str(file.urlEncodedPath()): None for file in parts.apply(number).files()}
    return list(found)
