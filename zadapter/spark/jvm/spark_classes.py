"""Spark's own classes, which Spark 4 has moved to ``org.apache.spark.sql.classic``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaClass

from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import module

JavaObject = Any


def sessions(jvm: JavaObject) -> JavaObject:
    """Return the companion of Spark's session, which knows the thread's active session."""
    return module(_package(jvm), "SparkSession")


@contextmanager
def activated(spark: Any) -> Iterator[None]:
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
