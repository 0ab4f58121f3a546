"""Spark's own classes, functions and scans.

Spark 4 has moved classes to ``org.apache.spark.sql.classic``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import DataFrame

from zadapter.spark.jvm.gateway import java_rows, java_session
from zadapter.spark.jvm.java_classes import java_class, java_classes
from zadapter.spark.jvm.java_loops import loops_of
from zadapter.spark.jvm.scala import java_list, module, seq

JavaObject = Any

_FUNCTIONS = "org.apache.spark.sql.functions"
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


def expression(spark: Any, text: str) -> JavaObject:
    """Return an SQL expression as a ``Column`` of Java.

    The functions of PySpark look up their names in the JVM, and their caller for error messages.
    """
    return java_class(spark, _FUNCTIONS).expr(text)


def with_column(rows: DataFrame, name: str, text: str) -> DataFrame:
    """Return *rows* with a column of an SQL expression."""
    spark: Any = rows.sparkSession
    return DataFrame(java_rows(rows).withColumn(name, expression(spark, text)), spark)


def with_columns(rows: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """Return *rows* with columns of SQL expressions, by name; none sees another one."""
    spark: Any = rows.sparkSession
    jvm = java_classes(spark)
    names = seq(jvm, java_list(jvm, texts))
    columns = seq(jvm, java_list(jvm, [expression(spark, text) for text in texts.values()]))
    return DataFrame(java_rows(rows).withColumns(names, columns), spark)


def select_columns(rows: DataFrame, columns: Sequence[str], names: Sequence[str]) -> DataFrame:
    """Return columns of *rows* under new names.

    Args:
        rows: The rows.
        columns: The columns, at least one, as quoted names.
        names: Their new names.
    """
    spark: Any = rows.sparkSession
    jvm = java_classes(spark)
    first, *others = columns
    picked = java_rows(rows).select(first, seq(jvm, java_list(jvm, others)))
    return DataFrame(picked.toDF(seq(jvm, java_list(jvm, names))), spark)


def select_texts(rows: DataFrame, texts: Iterable[str]) -> DataFrame:
    """Return SQL expressions of *rows*."""
    spark: Any = rows.sparkSession
    jvm = java_classes(spark)
    return DataFrame(java_rows(rows).selectExpr(seq(jvm, java_list(jvm, texts))), spark)


def parse_json(rows: DataFrame, name: str, schema: str) -> DataFrame:
    """Return *rows* with a column of JSON as the values of a schema, which is JSON too."""
    spark: Any = rows.sparkSession
    jvm, functions = java_classes(spark), java_class(spark, _FUNCTIONS)
    parsed = functions.from_json(functions.col(name), schema, jvm.java.util.HashMap())
    return DataFrame(java_rows(rows).withColumn(name, parsed), spark)


def read_parquet(
    spark: Any, schema: str, options: Mapping[str, str], paths: Sequence[str]
) -> DataFrame:
    """Return rows of Parquet files.

    Args:
        spark: A session.
        schema: The columns, as Spark's JSON.
        options: Options of Spark's reader.
        paths: Locations, as Spark's reader takes them.
    """
    jvm, java = java_classes(spark), java_session(spark)
    reader = java.read().schema(java.parseDataType(schema))
    for key, value in options.items():
        reader.option(key, value)
    return DataFrame(reader.parquet(seq(jvm, java_list(jvm, paths))), spark)


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


def operators_of(spark: Any, plan: JavaObject) -> list[str]:
    """Return the classes of the operators of a ``SparkPlan``, the root first."""
    loops = loops_of(spark)
    class_of = loops.method("java.lang.Object", "getClass")
    name = loops.chain(class_of, loops.method("java.lang.Class", "getName"))
    return str(plan.map(loops.scala_function(name)).mkString("\n")).split("\n")


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
