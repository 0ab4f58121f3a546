"""Java's classes by their full names, each of which is one question to the JVM.

Py4j looks up a name part by part. For ``org`` the JVM searches its class path for classes of that
name in each package that PySpark imports, for ``org.apache`` it searches once more. With a few
hundred jars that takes milliseconds, and an ``optimize`` uses hundreds of names.
"""

from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaMember

_known: WeakKeyDictionary[Any, dict[str, JavaClass]] = WeakKeyDictionary()
"""The classes that were found, by the JVM; jars that are added later may bring others."""


class _Class(JavaClass):  # type: ignore[misc]
    """A Java class. Py4j asks for a static method each time; it is remembered here."""

    def __getattr__(self, name: str) -> Any:
        """Return a static member; methods, nested classes and Scala's objects do not change."""
        found = super().__getattr__(name)
        if isinstance(found, JavaClass):
            found = _Class(found._fqn, found._gateway_client)  # noqa: SLF001
        if isinstance(found, (JavaMember, JavaClass)) or name == "MODULE$":
            self.__dict__[name] = found
        return found


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
        return _find(self._jvm, full)


def _find(jvm: Any, name: str) -> Any:
    known = _known.setdefault(jvm, {})
    found = known[name] if name in known else getattr(jvm, name)
    if isinstance(found, JavaClass) and name not in known:
        found = known[name] = _Class(found._fqn, found._gateway_client)  # noqa: SLF001
    return found


def java_classes(spark: Any) -> Any:
    """Return the classes of a session's JVM, as ``java_classes(spark).java.util.ArrayList``.

    Classes with lower-case names can be had by :func:`java_class`.
    """
    return _Package(spark._jvm, "")  # noqa: SLF001 - the JVM has no public door


def java_class(spark: Any, name: str) -> Any:
    """Return a class of a session's JVM by its full name."""
    return _find(spark._jvm, name)  # noqa: SLF001
