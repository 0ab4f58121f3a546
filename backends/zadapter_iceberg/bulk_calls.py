"""Bulk calls of Iceberg's methods within the JVM, and facts of many files that leave it in bulk."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import intern
from typing import Any

from zadapter_iceberg.jvm import JavaObject, Jvm

_BATCH = 1_000
"""Files per string that is passed to the JVM."""
_PACKAGE = "org.apache.iceberg."
_NODE = f"{_PACKAGE}shaded.com.fasterxml.jackson.databind.JsonNode"

AT_ONCE = 100_000
"""Number of files whose facts leave the JVM as one text."""


class DataFiles(Mapping[str, JavaObject]):
    """Data files by path, in the order of a ``java.util.List`` of ``DataFile``."""

    def __init__(self, jvm: Jvm, files: JavaObject) -> None:
        self._jvm = jvm
        self._files = files
        location = jvm.loops.method(f"{_PACKAGE}ContentFile", "location")
        paths = facts(jvm, files, {"path": location})["path"]
        self._places = {path: place for place, path in enumerate(paths)}

    def __getitem__(self, path: str) -> JavaObject:
        return self._files.get(self._places[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def choose(self, paths: Iterable[str]) -> JavaObject:
        """Return some of the files as a ``java.util.List``."""
        places = json.dumps([self._places[path] for path in paths])
        numbers = self._jvm.json.readValue(places, self._jvm.class_of("java.util.ArrayList"))
        get = self._jvm.loops.method("java.util.List", "get", "int").bindTo(self._files)
        return self._jvm.loops.map_items(numbers, get)

    def texts(self, spec: JavaObject) -> list[str]:
        """Return the files in the JSON of Iceberg's ``ContentFileParser``."""
        loops, parser = self._jvm.loops, f"{_PACKAGE}ContentFileParser"
        write = loops.method(parser, "toJson", f"{_PACKAGE}ContentFile", f"{_PACKAGE}PartitionSpec")
        handle = loops.bind(write, 1, spec)
        parts = _parts(self._jvm, self._files, _BATCH)  # a text has the bounds of all columns
        return [text for part in parts for text in _values(self._jvm, part, handle)]

    def specs(self) -> set[int]:
        """Return the ids of the files' partition specs."""
        id_ = self._jvm.loops.method(f"{_PACKAGE}ContentFile", "specId")
        return set(facts(self._jvm, self._files, {"id": id_})["id"])


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
    for part in _parts(jvm, items, AT_ONCE):
        for name, handle in handles.items():
            # a delete file applies to many data files
            values = _values(jvm, part, handle)
            found[name] += [intern(each) if isinstance(each, str) else each for each in values]
    return found


def _parts(jvm: Jvm, items: JavaObject, at_once: int) -> Iterator[JavaObject]:
    size = items.size()
    if 0 < size <= at_once:
        yield items
        return
    for start in range(0, size, at_once):
        end = min(start + at_once, size)
        yield jvm.root.java.util.ArrayList(items.subList(start, end))


def _values(jvm: Jvm, items: JavaObject, handle: JavaObject) -> list[Any]:
    found: list[Any] = json.loads(jvm.json.writeValueAsString(jvm.loops.map_items(items, handle)))
    return found
