"""Java's classes by their full names, each of which is one question to the JVM.

Py4j looks up a name part by part. For ``org`` the JVM searches its class path for classes of that
name in each package that PySpark imports, for ``org.apache`` it searches once more. With a few
hundred jars that takes milliseconds, and an ``optimize`` uses hundreds of names.
"""

from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass

_known: WeakKeyDictionary[Any, dict[str, JavaClass]] = WeakKeyDictionary()
"""The classes that were found, by the JVM; jars that are added later may bring others."""


class _Package:
    """A Java package. Its name is not looked up; the names of its classes are."""

    def __init__(self, jvm: Any, name: str) -> None:
        self._jvm = jvm
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return the class *name*, as Py4j does, or the package *name*, which is lower-case."""
        full = f"{self._name}.{name}" if self._name else name
        if name.islower() and "$" not in name:
            return _Package(self._jvm, full)
        known = _known.setdefault(self._jvm, {})
        found = known[full] if full in known else getattr(self._jvm, full)
        if isinstance(found, JavaClass):
            known[full] = found
        return found


def java_classes(spark: Any) -> Any:
    """Return the classes of a session's JVM, as ``java_classes(spark).java.util.ArrayList``.

    Classes with lower-case names cannot be had in this way.
    """
    return _Package(spark._jvm, "")  # noqa: SLF001 - the JVM has no public door
