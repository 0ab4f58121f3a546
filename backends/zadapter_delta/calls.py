"""Calls of Delta's Scala code by the names of parameters.

Releases of Delta add parameters, most of them with defaults. A call by position would break.
"""

from typing import Any

from zadapter_delta.jvm import JavaObject, Jvm

_PACKAGE = "org.apache.spark.sql.delta."
_DEFAULT = "default$"


def call(target: JavaObject, method: str, **values: Any) -> JavaObject:
    """Call a method of a Scala object; parameters without a value take their defaults."""
    overloads = [each for each in target.getClass().getMethods() if each.getName() == method]
    return getattr(target, method)(*_arguments(overloads, target, method, values))


def new(jvm: Jvm, class_: str, **values: Any) -> JavaObject:
    """Create an object of one of Delta's classes; parameters without a value take defaults."""
    constructors = jvm.class_of(_PACKAGE + class_).getConstructors()
    companion = jvm.module(jvm.delta, class_)
    arguments = _arguments(constructors, companion, "$lessinit$greater", values)
    return getattr(jvm.delta, class_)(*arguments)


def _arguments(
    overloads: Any, defaults: JavaObject, method: str, values: dict[str, Any]
) -> list[Any]:
    """Return the arguments for the shortest overload that has a parameter for each value.

    Scala compiles the default of the n-th parameter to a method ``<method>$default$<n>``, which at
    most one overload has.
    """
    candidates = [[str(part.getName()) for part in each.getParameters()] for each in overloads]
    fitting = (names for names in candidates if values.keys() <= set(names))
    shortest: list[str] = min(fitting, key=len)
    return [
        values[name] if name in values else getattr(defaults, f"{method}${_DEFAULT}{number}")()
        for number, name in enumerate(shortest, 1)
    ]
