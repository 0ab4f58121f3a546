"""The catalog of procedures: a class of Java, which the driver compiles from its source.

Spark makes a catalog by the name of its class, in each session, with the class loader of the
thread. Janino, with which Spark compiles queries, compiles the class. It is defined beside Spark's
own classes, so that each class loader finds it.
"""

from importlib.resources import files
from typing import Any

from zadapter.spark.jvm.gateway import (
    JavaClass,
    Py4JError,
    java_session,
    scala_context,
)
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_loops import JAVA
from zadapter.spark.jvm.scala import each

JavaObject = Any

CATALOG = "zadapter"
"""Name of the catalog."""
_SETTING = f"spark.sql.catalog.{CATALOG}"
_PACKAGE = "org.apache.spark.sql.connector.catalog.procedures"
_NAME = "ZadapterCatalog"
_CLASS = f"{_PACKAGE}.{_NAME}"
_NEIGHBOUR = f"{_PACKAGE}.BoundProcedure"
"""The class of Spark that the catalog's class is defined beside."""


def has_procedures(spark: Any) -> bool:
    """Return whether Spark has procedures, which are Spark 4.0 and later."""
    found = java_classes(spark).org.apache.spark.sql.connector.catalog.ProcedureCatalog
    return isinstance(found, JavaClass)


def other_catalog(spark: Any) -> str | None:
    """Return the class of another catalog with the same name, or None."""
    found: str | None = spark.conf.get(_SETTING, None)
    return None if found == _CLASS else found


def define(spark: Any, name: str, description: str, parameters: str) -> None:
    """Define a procedure, or replace it.

    Args:
        spark: A session.
        name: Name of the procedure.
        description: What it does.
        parameters: Its parameters as columns in DDL; those that may be null are optional.
    """
    _catalog(spark).define(name, description, parameters)


def add_to_sessions(spark: Any) -> None:
    """Add the catalog to a session, and to all that Spark makes from now on."""
    spark.conf.set(_SETTING, _CLASS)
    java_session(spark).sharedState().conf().set(_SETTING, _CLASS)


def take(spark: Any) -> JavaObject | None:
    """Wait for the next request of a statement; return None when the JVM has ended."""
    try:
        return _catalog(spark).take()
    except (Py4JError, OSError):
        return None


def use_properties(context: Any, request: JavaObject) -> None:
    """Give this thread's Spark jobs the properties of the statement, such as its group."""
    scala_context(context).setLocalProperties(request.properties())


def _catalog(spark: Any) -> JavaObject:
    """Return the class of the catalog, which is compiled if the JVM does not have it."""
    classes = java_classes(spark)
    found = classes.org.apache.spark.sql.connector.catalog.procedures.ZadapterCatalog
    if not isinstance(found, JavaClass):
        _compile(classes)
        found = classes.org.apache.spark.sql.connector.catalog.procedures.ZadapterCatalog
    return found


def _compile(classes: JavaObject) -> None:
    neighbour = classes.java.lang.Class.forName(_NEIGHBOUR)
    compiler = classes.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(neighbour.getClassLoader())
    compiler.setSourceVersion(JAVA)
    compiler.setTargetVersion(JAVA)
    compiler.cook(files(__package__).joinpath(f"{_NAME}.java").read_text(encoding="utf-8"))
    handles = classes.java.lang.invoke.MethodHandles
    lookup = handles.privateLookupIn(neighbour, handles.lookup())
    for code in each(classes, compiler.getBytecodes().values()):
        lookup.defineClass(code)
