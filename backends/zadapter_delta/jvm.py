"""Access to Delta's Scala classes from Python.

The classes are internal to Delta. Releases of Delta add parameters, most of them with defaults, so
calls name their parameters. Other differences between releases are stated beside the call.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame, SparkSession

from zadapter.base.java_errors import java_exception
from zadapter.spark.compat.spark_api import from_arrow
from zadapter.spark.jvm import scala
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.java_loops import Loops, loops_of

JavaObject = Any


Add = dict[str, Any]
"""An AddFile action in the log's JSON (PROTOCOL.md, "Add File")."""

_PACKAGE = "org.apache.spark.sql.delta."
_DEFAULT = "default$"
_constructors: WeakKeyDictionary[Loops, dict[str, list[list[str]]]] = WeakKeyDictionary()
"""Parameters of the constructors of Delta's classes, which reflection finds item by item."""


class Jvm:
    """Gateway to a session's JVM, with conversions from and to Scala collections."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        root = java_classes(spark)
        self.root = root
        self.delta: Any = root.org.apache.spark.sql.delta

    def frame(self, table: pa.Table) -> DataFrame:
        """Return *table* as a DataFrame.

        Arrow's rows are made by the JVM; rows of Python objects would need a Python on the
        executors, of the driver's version.
        """
        return from_arrow(self.spark, table)

    @cached_property
    def loops(self) -> Loops:
        """Loops that run within the JVM."""
        return loops_of(self.spark)

    @property
    def session(self) -> JavaObject:
        """The Java session."""
        return self.spark._jsparkSession  # noqa: SLF001

    def option(self, value: JavaObject | None = None) -> JavaObject:
        """Return Scala's ``Some(value)``, or Scala's ``None`` for None."""
        return self._none if value is None else self.root.scala.Option.apply(value)

    @cached_property
    def _none(self) -> JavaObject:
        return self.root.scala.Option.apply(None)

    def seq(self, items: Iterable[Any] = ()) -> JavaObject:
        """Return an immutable ``Seq``."""
        return self.seq_of(self.list_of(items))

    def list_of(self, items: Iterable[Any]) -> JavaObject:
        """Return a ``java.util.List``."""
        return scala.java_list(self.root, items)

    def seq_of(self, java_list: JavaObject) -> JavaObject:
        """Return an immutable ``Seq`` over a ``java.util.List``."""
        return scala.seq(self.root, java_list)

    def iterate(self, items: JavaObject) -> Iterator[Any]:
        """Return the items of a Scala ``Seq``."""
        return scala.items(self.root, items)

    def java_list(self, items: JavaObject) -> JavaObject:
        """Return a Scala ``Seq`` as a ``java.util.List``."""
        # py4j finds no default methods of the view, whose class is not public
        view = self.root.scala.collection.JavaConverters.seqAsJavaList(items)
        return self.root.java.util.ArrayList(view)

    def map(self, items: Mapping[str, Any]) -> JavaObject:
        """Return an immutable ``Map``."""
        return scala.scala_map(self.root, items)

    def dict(self, scala_map: JavaObject | None) -> dict[str, str]:
        """Return a Scala ``Map[String, String]``, or null, as a dict."""
        return {} if scala_map is None else scala.entries(self.root, scala_map)

    def module(self, package: Any, name: str) -> JavaObject:
        """Return a Scala ``object``."""
        return scala.module(package, name)

    def class_of(self, name: str) -> JavaObject:
        """Load a class by its name, including classes of the session's added packages."""
        return self.loops.class_of(name)

    def action(self, **content: Mapping[str, Any]) -> JavaObject:
        """Return an action of Delta's log from its JSON, as ``add={...}``.

        Delta's own parser fills in the fields that later releases have added.
        """
        return self.module(self.delta.actions, "Action").fromJson(json.dumps(content))

    def action_frame(self, adds: JavaObject) -> DataFrame:
        """Return a ``java.util.List`` of AddFile actions as a DataFrame."""
        encoder = self.module(self.delta.implicits, "package").addFileEncoder()
        return DataFrame(self.session.createDataset(adds, encoder).toDF(), self.spark)

    def parse_actions(self, lines: JavaObject) -> JavaObject:
        """Return a ``java.util.List`` of lines of Delta's log as a list of its actions."""
        companion = self.module(self.delta.actions, "Action")
        parse = self.loops.method(f"{_PACKAGE}actions.Action$", "fromJson", "java.lang.String")
        return self.loops.map_items(lines, parse.bindTo(companion))

    def to_java(self, adds: Iterable[Add]) -> JavaObject:
        """Return AddFile actions as a ``java.util.List`` of Delta's objects."""
        return self.parse_actions(self.split_lines([format_line(add) for add in adds]))

    def to_python(self, adds: JavaObject) -> list[Add]:
        """Return a ``java.util.List`` of Delta's AddFile objects as they are in the log.

        The path of a live file stays as it is: under another spelling, it would be live twice.
        """
        line = self.loops.method(f"{_PACKAGE}actions.Action", "json")
        lines = self.join_texts(self.loops.map_items(adds, line)).split("\n")
        return [json.loads(line)["add"] for line in lines if line]

    def split_lines(self, lines: Sequence[str]) -> JavaObject:
        """Return texts of one line, none of which is empty, as a ``java.util.List``."""
        every = self.root.java.util.StringTokenizer("\n".join(lines), "\n")
        return self.root.java.util.Collections.list(every)

    def join_texts(self, texts: JavaObject) -> str:
        """Return a ``java.util.List`` of texts as lines of one text."""
        return str(self.root.java.lang.String.join("\n", texts))

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


def format_line(add: Add) -> str:
    """Return an AddFile action as a line of the log."""
    return json.dumps({"add": add})


def call(target: JavaObject, method: str, **values: Any) -> JavaObject:
    """Call a method of a Scala object; parameters without a value take their defaults."""
    overloads = [each for each in target.getClass().getMethods() if each.getName() == method]
    return getattr(target, method)(*_arguments(_parameters(overloads), target, method, values))


def new(jvm: Jvm, class_: str, **values: Any) -> JavaObject:
    """Create an object of one of Delta's classes; parameters without a value take defaults."""
    known = _constructors.setdefault(jvm.loops, {})
    if class_ not in known:
        known[class_] = _parameters(jvm.class_of(_PACKAGE + class_).getConstructors())
    companion = jvm.module(jvm.delta, class_)
    arguments = _arguments(known[class_], companion, "$lessinit$greater", values)
    return getattr(jvm.delta, class_)(*arguments)


def _parameters(overloads: Any) -> list[list[str]]:
    """Return the names of the parameters of each overload."""
    return [[str(part.getName()) for part in each.getParameters()] for each in overloads]


def _arguments(
    overloads: list[list[str]], defaults: JavaObject, method: str, values: dict[str, Any]
) -> list[Any]:
    """Return the arguments for the shortest overload that has a parameter for each value.

    Scala compiles the default of the n-th parameter to a method ``<method>$default$<n>``, which at
    most one overload has.
    """
    fitting = (names for names in overloads if values.keys() <= set(names))
    shortest: list[str] = min(fitting, key=len)
    return [
        values[name] if name in values else getattr(defaults, f"{method}${_DEFAULT}{number}")()
        for number, name in enumerate(shortest, 1)
    ]
