"""The Scala side of Delta, as far as it is needed, in Python values.

These classes are Delta's own and not a published API: the signatures are those of Delta 4.4, which
the session is checked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.java_errors import java_exception

JavaObject = Any

_CREATING = Lock()


class Jvm:
    """Conversions to and from Scala's collections."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        root: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
        self.root = root
        self.delta: Any = root.org.apache.spark.sql.delta
        self._converters: Any = root.scala.jdk.javaapi.CollectionConverters

    def frame(self, data: Any, schema: str | None = None) -> DataFrame:
        """Return *data* as a frame, and leave alone what other threads take for the session.

        PySpark makes whichever session last created a frame the active one of the whole process.
        """
        python: Any = SparkSession
        with _CREATING:
            before = python._activeSession  # noqa: SLF001 - there is no public way
            try:
                return self.spark.createDataFrame(data, schema)
            finally:
                python._activeSession = before  # noqa: SLF001

    @contextmanager
    def active(self) -> Iterator[None]:
        """Have Delta make rows in this session: it takes the thread's, whatever it is asked by."""
        sessions = self.module(self.root.org.apache.spark.sql.classic, "SparkSession")
        before = sessions.getActiveSession()
        sessions.setActiveSession(self.session)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    @property
    def session(self) -> JavaObject:
        """The Java session."""
        return self.spark._jsparkSession  # noqa: SLF001

    def option(self, value: JavaObject | None = None) -> JavaObject:
        """Return ``Some(value)``, or ``None`` for None."""
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
        """Yield what a Scala ``Seq`` holds."""
        for item in self._converters.asJava(scala):  # noqa: UP028 - py4j's have no close()
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
        """Tell whether *error* says that another writer was faster, and nothing was committed."""
        thrown = java_exception(error)
        gateway = self.spark.sparkContext._gateway  # noqa: SLF001
        return thrown is not None and is_instance_of(
            gateway, thrown, "java.util.ConcurrentModificationException"
        )
