"""Spark's own classes, which Spark 4 has moved to ``org.apache.spark.sql.classic``."""

from typing import Any

from py4j.java_gateway import JavaClass

from zadapter.releases.scala import module

JavaObject = Any


def sessions(jvm: JavaObject) -> JavaObject:
    """Return the companion of Spark's session, which knows the thread's active session."""
    return module(_package(jvm), "SparkSession")


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
