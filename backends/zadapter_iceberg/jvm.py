"""Access to Iceberg's Java classes from Python.

They have the same signatures from Iceberg 1.10 to 1.12, and in its modules for Spark 3.5 to 4.1.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from zadapter.base.java_errors import java_exception
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_loops import Loops, loops_of

JavaObject = Any

EXCEPTIONS = "org.apache.iceberg.exceptions."


class Jvm:
    """Gateway to a session's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        root = java_classes(spark)
        self.root = root
        self.iceberg: Any = root.org.apache.iceberg
        self._gateway: Any = spark.sparkContext._gateway  # noqa: SLF001

    @cached_property
    def loops(self) -> Loops:
        """Loops that run within the JVM."""
        return loops_of(self.spark)

    @cached_property
    def json(self) -> JavaObject:
        """Jackson's ``ObjectMapper``, which carries many values in one text."""
        return self.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper()

    @property
    def session(self) -> JavaObject:
        """The Java session."""
        return self.spark._jsparkSession  # noqa: SLF001

    @cached_property
    def tables(self) -> JavaObject:
        """Iceberg's ``SparkTableCache``: tables that Spark reads and writes by a generated name.

        The class has a static and an instance method ``get``, and py4j may call either. Reflection
        selects the static one.
        """
        cache = self.class_of("org.apache.iceberg.spark.SparkTableCache")
        get = cache.getMethod("get", self.array(self.root.java.lang.Class, []))
        return get.invoke(None, self.array(self.root.java.lang.Object, []))

    @property
    def version_option(self) -> str:
        """Option of a read that selects a snapshot, also of a metadata table.

        Iceberg's modules before that for Spark 4.1 ignore ``versionAsOf`` for metadata tables; that
        module rejects the other one.
        """
        options = dir(self.iceberg.spark.SparkReadOptions)
        return "versionAsOf" if "LEGACY_SNAPSHOT_ID" in options else "snapshot-id"

    @cached_property
    def scans(self) -> JavaObject:
        """Iceberg's ``ScanTaskSetManager``: tasks to read, by the same names."""
        return self.iceberg.spark.ScanTaskSetManager.get()

    @cached_property
    def rewrites(self) -> JavaObject:
        """Iceberg's ``FileRewriteCoordinator``: files that Spark has written, by the same names."""
        return self.iceberg.spark.FileRewriteCoordinator.get()

    def list(self, items: Iterable[JavaObject]) -> JavaObject:
        """Return a ``java.util.List``."""
        java_list = self.root.java.util.ArrayList()
        for item in items:
            java_list.add(item)
        return java_list

    def identifier(self, parts: Iterable[str]) -> JavaObject:
        """Return Spark's ``Identifier`` of a table within its catalog."""
        *namespace, name = parts
        identifiers = self.root.org.apache.spark.sql.connector.catalog.Identifier
        return identifiers.of(self.texts(namespace), name)

    def table_identifier(self, parts: Sequence[str]) -> JavaObject:
        """Return Iceberg's ``TableIdentifier`` of a table within its catalog."""
        *levels, name = parts
        namespace = self.iceberg.catalog.Namespace.of(self.texts(levels))
        return self.iceberg.catalog.TableIdentifier.of(namespace, name)

    def texts(self, items: Sequence[str]) -> JavaObject:
        """Return a Java array of strings."""
        return self.array(self.root.java.lang.String, items)

    def array(self, class_: JavaObject, items: Sequence[Any]) -> JavaObject:
        """Return a Java array with elements of *class_*."""
        java_array = self._gateway.new_array(class_, len(items))
        for number, item in enumerate(items):
            java_array[number] = item
        return java_array

    def class_of(self, name: str) -> JavaObject:
        """Load a class by its name, including classes of the session's added packages."""
        return self.loops.class_of(name)

    def is_a(self, thing: JavaObject, *classes: str) -> bool:
        """Return whether a Java object is an instance of one of *classes*."""
        return any(self.class_of(name).isInstance(thing) for name in classes)

    def threw(self, error: Exception, *classes: str) -> bool:
        """Return whether *error* is an Iceberg exception of one of *classes*."""
        thrown = java_exception(error)
        return thrown is not None and self.is_a(thrown, *(EXCEPTIONS + name for name in classes))
