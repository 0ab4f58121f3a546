"""Bulk calls of Iceberg's methods within the JVM, and facts of many files that leave it in bulk."""

import json
from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any

from zadapter_iceberg.jvm import JavaObject, Jvm

_BATCH = 1_000
"""Files per string that is passed to the JVM."""
_PACKAGE = "org.apache.iceberg."
_NODE = f"{_PACKAGE}shaded.com.fasterxml.jackson.databind.JsonNode"

AT_ONCE = 100_000
"""Number of files whose facts leave the JVM as one text."""


def data_files(jvm: Jvm, texts: Sequence[str], spec: JavaObject) -> JavaObject:
    """Parse data files into a ``java.util.List`` of ``DataFile``.

    Args:
        jvm: The session's JVM.
        texts: One file each, in the JSON of Iceberg's ``ContentFileParser``.
        spec: Partition spec of all files.
    """
    parser, files = f"{_PACKAGE}ContentFileParser", jvm.root.java.util.ArrayList()
    parse = jvm.loops.method(parser, "fromJson", _NODE, f"{_PACKAGE}PartitionSpec")
    parse = jvm.loops.bind(parse, 1, spec)
    consumer = jvm.loops.consumer(jvm.loops.chain(parse, jvm.loops.adding_to(files)))
    for start in range(0, len(texts), _BATCH):
        nodes = jvm.json.readTree(f"[{','.join(texts[start : start + _BATCH])}]")
        nodes.elements().forEachRemaining(consumer)
    return files


def add_all(jvm: Jvm, update: JavaObject, kind: str, method: str, files: JavaObject) -> None:
    """Call *method* of *update*, an instance of Iceberg's interface *kind*, for each file."""
    handle = jvm.loops.method(_PACKAGE + kind, method, f"{_PACKAGE}DataFile")
    files.forEach(jvm.loops.consumer(handle.bindTo(update)))


def facts(jvm: Jvm, items: JavaObject, handles: Mapping[str, JavaObject]) -> dict[str, list[Any]]:
    """Return what handles return for each item of a ``java.util.List``, by the handle's name.

    The values leave the JVM as texts, not one by one, and in parts: there may be millions.
    """
    found: dict[str, list[Any]] = {name: [] for name in handles}
    for start in range(0, items.size(), AT_ONCE):
        end = min(start + AT_ONCE, items.size())
        part = jvm.root.java.util.ArrayList(items.subList(start, end))
        for name, handle in handles.items():
            values = json.loads(jvm.json.writeValueAsString(jvm.loops.map_items(part, handle)))
            # a delete file applies to many data files
            found[name] += [intern(each) if isinstance(each, str) else each for each in values]
    return found
