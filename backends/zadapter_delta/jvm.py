"""Access to Delta's Scala classes from Python.

The classes are internal to Delta. Their signatures are those of Delta 4.4; the session's version is
checked.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.java_errors import java_exception

JavaObject = Any

_SESSION_LOCK = Lock()


class Jvm:
    """Gateway to a session's JVM, with conversions from and to Scala collections."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        root: Any = spark._jvm  # noqa: SLF001 - the JVM has no public API
        self.root = root
        self.delta: Any = root.org.apache.spark.sql.delta
        self._converters: Any = root.scala.jdk.javaapi.CollectionConverters

    def lines(self, texts: Iterable[str]) -> DataFrame:
        """Return *texts* as a DataFrame with the column ``value``."""
        return self.frame(pa.table({"value": pa.array(texts, pa.string())}))

    def frame(self, table: pa.Table) -> DataFrame:
        """Return *table* as a DataFrame without changing the process's active session.

        PySpark activates the session that creates a DataFrame, in all threads. Arrow's rows are
        made by the JVM; rows of Python objects would need a Python on the executors, of the
        driver's version.
        """
        python: Any = SparkSession
        with _SESSION_LOCK:
            previous = python._activeSession  # noqa: SLF001 - no public API
            try:
                return self.spark.createDataFrame(table)
            finally:
                python._activeSession = previous  # noqa: SLF001

    @contextmanager
    def active(self) -> Iterator[None]:
        """Activate this session temporarily: Delta uses the thread's active session."""
        sessions = self.module(self.root.org.apache.spark.sql.classic, "SparkSession")
        previous = sessions.getActiveSession()
        sessions.setActiveSession(self.session)
        try:
            yield
        finally:
            if previous.isDefined():
                sessions.setActiveSession(previous.get())
            else:
                sessions.clearActiveSession()

    @property
    def session(self) -> JavaObject:
        """The Java session."""
        return self.spark._jsparkSession  # noqa: SLF001

    def option(self, value: JavaObject | None = None) -> JavaObject:
        """Return Scala's ``Some(value)``, or Scala's ``None`` for None."""
        return self.root.scala.Option.apply(value)

    def seq(self, items: Iterable[Any] = ()) -> JavaObject:
        """Return an immutable ``Seq``."""
        return self.seq_of(self.list_of(items))

    def list_of(self, items: Iterable[Any]) -> JavaObject:
        """Return a ``java.util.List``."""
        java = self.root.java.util.ArrayList()
        for item in items:
            java.add(item)
        return java

    def seq_of(self, java_list: JavaObject) -> JavaObject:
        """Return an immutable ``Seq`` over a ``java.util.List``."""
        return self._converters.asScala(java_list).toSeq()

    def iterate(self, scala: JavaObject) -> Iterator[Any]:
        """Yield the items of a Scala ``Seq``."""
        for item in self._converters.asJava(scala):  # noqa: UP028 - py4j's iterators have no close()
            yield item

    def map(self, items: Mapping[str, Any]) -> JavaObject:
        """Return an immutable ``Map``."""
        java = self.root.java.util.HashMap()
        for key, value in items.items():
            java.put(key, value)
        companion = self.module(self.root.scala.collection.immutable, "Map")
        return getattr(companion, "from")(self._converters.asScala(java))

    def dict(self, scala_map: JavaObject | None) -> dict[str, str]:
        """Return a Scala ``Map[String, String]``, or null, as a dict."""
        return {} if scala_map is None else dict(self._converters.asJava(scala_map))

    def module(self, package: Any, name: str) -> JavaObject:
        """Return a Scala ``object``."""
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    def path(self, text: str) -> JavaObject:
        """Return a Hadoop path."""
        return self.root.org.apache.hadoop.fs.Path(text)

    def is_conflict(self, error: Exception) -> bool:
        """Return whether *error* is a conflict with another writer, so nothing was committed."""
        thrown = java_exception(error)
        gateway = self.spark.sparkContext._gateway  # noqa: SLF001
        return thrown is not None and is_instance_of(
            gateway, thrown, "java.util.ConcurrentModificationException"
        )
