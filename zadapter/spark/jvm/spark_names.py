"""Names of tables, split and resolved as Spark does.

Spark's parser splits a name. A temporary view comes first. A name of one part lies in the current
namespace, and a longer one in the catalog that its first part names, or else in the current catalog
(``LookupCatalog``, ``RelationResolution``).
"""

import re
from contextlib import suppress
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import items, java_list, seq

Parts = tuple[str, ...]

JVM_ERRORS = (Py4JError, PySparkException)
"""Errors of calls to the JVM, unlike exceptions of the caller, such as a time limit."""
SESSION = "spark_catalog"
"""Spark's built-in catalog."""
_QUOTED = re.compile(r"`[^`]*`")
_OF_PATHS = re.compile(r"[/\\:]")
"""Characters of paths and URIs, which names have in backticks only."""


class Name(NamedTuple):
    """A table's name in the session's catalogs.

    Attributes:
        catalog: Name of the catalog.
        parts: Namespace and name within the catalog.
    """

    catalog: str
    parts: Parts


def is_path(text: str) -> bool:
    """Return whether a text has characters that only paths have; others may be paths, too."""
    return _OF_PATHS.search(_QUOTED.sub("", text)) is not None


def table_name(spark: Any, text: str) -> Parts | None:
    """Return the parts of a table's name, or None if the text is none, such as a path."""
    if is_path(text):
        return None  # an exception of Java takes milliseconds
    try:
        parsed = _state(spark).sqlParser().parseMultipartIdentifier(text)
    except JVM_ERRORS:
        return None
    return tuple(map(str, items(java_classes(spark), parsed)))


def is_temporary_view(spark: Any, parts: Parts) -> bool:
    """Return whether a name belongs to a temporary view, which comes before all tables."""
    jvm = java_classes(spark)
    return bool(_state(spark).catalog().isTempView(seq(jvm, java_list(jvm, parts))))


def has_catalog(spark: Any, parts: Parts) -> bool:
    """Return whether a name begins with the name of a catalog; the catalog is not loaded."""
    first = parts[0]
    is_set = spark.conf.get(f"spark.sql.catalog.{first}", None) is not None
    return len(parts) > 1 and (is_set or first.lower() == SESSION)


def resolve(spark: Any, parts: Parts) -> Name:
    """Return the name that Spark looks up."""
    if has_catalog(spark, parts):
        catalog = SESSION if parts[0].lower() == SESSION else parts[0]
        return Name(catalog, parts[1:])
    manager = _state(spark).catalogManager()
    current = str(manager.currentCatalog().name())
    if len(parts) > 1:
        return Name(current, parts)
    return Name(current, (*map(str, manager.currentNamespace()), *parts))


def provider(spark: Any, name: Name) -> str | None:
    """Return the provider of a table, ``view`` for a view, or None if there is neither."""
    if name.catalog == SESSION:
        identifier, catalog = session_identifier(spark, name), _state(spark).catalog()
        is_there = identifier is not None and catalog.tableExists(identifier)
        return _provider(catalog.getTableMetadata(identifier)) if is_there else None
    *namespace, last = name.parts
    jvm = java_classes(spark)
    array = spark.sparkContext._gateway.new_array(jvm.java.lang.String, len(namespace))  # noqa: SLF001
    for at, level in enumerate(namespace):
        array[at] = level
    identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(array, last)
    catalog = _state(spark).catalogManager().catalog(name.catalog)
    with suppress(*JVM_ERRORS):  # there is no such table
        properties = catalog.loadTable(identifier).properties()
        return str(properties.getOrDefault("provider", "unknown")).lower()
    with suppress(*JVM_ERRORS):  # a catalog without views, or without the namespace
        return "view" if catalog.viewExists(identifier) else None
    return None


class Reading(NamedTuple):
    """What Spark reads by a text, beside tables of its built-in catalog.

    Attributes:
        identifier: Spark's ``TableIdentifier`` in its built-in catalog; None: the text is no name
            in it, and may be a path.
        other: What else Spark reads, such as a view; None: nothing.
    """

    identifier: Any
    other: str | None


def in_session_catalog(spark: Any, text: str) -> Reading:
    """Look up a text as Spark does, for a format whose tables are in Spark's built-in catalog.

    Where the current catalog is another one and has no such table, the built-in one is looked at.
    """
    parts = table_name(spark, text)
    if parts is None:
        return Reading(None, None)
    if is_temporary_view(spark, parts):
        return Reading(None, "a view of this session")
    name = resolve(spark, parts)
    if name.catalog == SESSION or has_catalog(spark, parts):
        return Reading(session_identifier(spark, name), None)
    if (other := provider(spark, name)) is not None:
        return Reading(None, describe(other, name.catalog))
    database = str(_state(spark).catalog().getCurrentDatabase())
    whole = parts if len(parts) > 1 else (database, *parts)
    return Reading(session_identifier(spark, Name(SESSION, whole)), None)


def describe(provider: str, catalog: str) -> str:
    """Return a table of another provider, or a view, as a part of a sentence."""
    return f"{'a view' if provider == 'view' else f'a table of {provider}'} in {catalog}"


def session_identifier(spark: Any, name: Name) -> Any:
    """Return a name as Spark's ``TableIdentifier``; None: it is not in the built-in catalog."""
    if name.catalog != SESSION or len(name.parts) != len(("database", "table")):
        return None
    database, table = name.parts
    jvm = java_classes(spark)
    identifiers = jvm.org.apache.spark.sql.catalyst.TableIdentifier
    return identifiers(table, jvm.scala.Option.apply(database))


def _provider(entry: Any) -> str:
    if str(entry.tableType().name()) == "VIEW":
        return "view"
    return str(entry.provider().get()).lower() if entry.provider().isDefined() else "hive"


def _state(spark: Any) -> Any:
    return spark._jsparkSession.sessionState()  # noqa: SLF001 - there is no public way


def follow(spark: Any, session: Any) -> None:
    """Make the current catalog and namespace of *session* those of *spark*."""
    target, source = _state(session).catalogManager(), _state(spark).catalogManager()
    with suppress(*JVM_ERRORS):  # the catalog does not answer, or the namespace was dropped since
        name = source.currentCatalog().name()
        if target.currentCatalog().name() != name:
            target.setCurrentCatalog(name)
        namespace = source.currentNamespace()
        mapper = java_classes(spark).com.fasterxml.jackson.databind.ObjectMapper()
        before = mapper.writeValueAsString(target.currentNamespace())
        if before != mapper.writeValueAsString(namespace):
            target.setCurrentNamespace(namespace)
