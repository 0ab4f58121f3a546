"""Facts of many files, which leave the JVM in bulk."""

import json
from collections.abc import Mapping
from sys import intern
from typing import Any

from zadapter_iceberg.jvm import JavaObject, Jvm

AT_ONCE = 100_000
"""Number of files whose facts leave the JVM as one text."""


def facts(jvm: Jvm, items: JavaObject, handles: Mapping[str, JavaObject]) -> dict[str, list[Any]]:
    """Return what handles return for each item of a ``java.util.List``, by the handle's name.

    The values leave the JVM as texts, not one by one, and in parts: there may be millions.
    """
    found: dict[str, list[Any]] = {name: [] for name in handles}
    for start in range(0, items.size(), AT_ONCE):
        end = min(start + AT_ONCE, items.size())
        part = jvm.root.java.util.ArrayList(items.subList(start, end))
        for name, handle in handles.items():
            values = json.loads(jvm.json.writeValueAsString(jvm.loops.mapped(part, handle)))
            # a delete file applies to many data files
            found[name] += [intern(each) if isinstance(each, str) else each for each in values]
    return found
