"""Conversions between Python and Scala's collections, and Scala's objects.

They go through ``PythonUtils``, PySpark's own, and ``JavaConverters``: Scala 2.12 and 2.13 have
both. ``scala.jdk.javaapi`` is Scala 2.13 alone, and Spark 3.5 is built with 2.12 too.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

JavaObject = Any

_SEPARATORS = tuple(map(chr, range(1, 10)))
"""Characters that texts hardly have; a list of texts that have all of them takes more calls."""


def java_list(jvm: JavaObject, items: Iterable[Any]) -> JavaObject:
    """Return *items* as a ``java.util.List``, texts in two calls."""
    every = list(items)
    if every and all(isinstance(item, str) and item for item in every):
        joined = "".join(every)
        free = (each for each in _SEPARATORS if each not in joined)
        if (separator := next(free, None)) is not None:
            tokens = jvm.java.util.StringTokenizer(separator.join(every), separator)
            return jvm.java.util.Collections.list(tokens)
    java = jvm.java.util.ArrayList()
    for item in every:
        java.add(item)
    return java


def seq(jvm: JavaObject, java: JavaObject) -> JavaObject:
    """Return a ``java.util.List`` as an immutable ``Seq``."""
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(java)


def items(jvm: JavaObject, scala_seq: JavaObject) -> Iterator[Any]:
    """Return the items of a ``Seq``."""
    return each(jvm, jvm.scala.collection.JavaConverters.seqAsJavaList(scala_seq))


def each(jvm: JavaObject, java: JavaObject) -> Iterator[Any]:
    """Yield the items of a Java collection.

    Py4j's own iteration ends with an exception of Java, which PySpark takes 20 to 50 ms to convert.
    """
    held = jvm.java.util.ArrayList(java)
    for at in range(held.size()):
        yield held.get(at)


def java_dict(jvm: JavaObject, java: JavaObject) -> dict[str, str]:
    """Return a ``java.util.Map`` of texts as a dict, in one call."""
    written = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(java)
    found: dict[str, str] = json.loads(written)
    return found


def java_map(jvm: JavaObject, values: Mapping[str, Any], kind: str = "HashMap") -> JavaObject:
    """Return *values* as a map, texts in few calls.

    Args:
        jvm: The classes of the JVM.
        values: The values by their keys.
        kind: The class of the map, in ``java.util``.
    """
    java = getattr(jvm.java.util, kind)()
    if len(values) > 1 and all(isinstance(value, str) for value in values.values()):
        mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return mapper.readValue(json.dumps(dict(values)), java.getClass())
    for key, value in values.items():
        java.put(key, value)
    return java


def scala_map(jvm: JavaObject, values: Mapping[str, Any]) -> JavaObject:
    """Return *values* as an immutable ``Map``."""
    java = java_map(jvm, values)
    return jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(java)


def entries(jvm: JavaObject, of: JavaObject) -> dict[str, str]:
    """Return a ``Map`` of texts as a dict."""
    return java_dict(jvm, jvm.scala.collection.JavaConverters.mapAsJavaMap(of))


def add_all(mutable: JavaObject, more: JavaObject) -> None:
    """Add all items to a mutable collection; ``addAll`` is Scala 2.13 alone."""
    getattr(mutable, "$plus$plus$eq")(more)


def module(package: JavaObject, name: str) -> JavaObject:
    """Return a Scala ``object``."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def fields(instance: Any) -> list[Any]:
    """Return the fields of an instance of a case class, in the order of its method ``copy``."""
    return [instance.productElement(number) for number in range(instance.productArity())]
