"""Bulk calls of Iceberg's methods within the JVM."""

from collections.abc import Sequence

from zadapter_iceberg.jvm import JavaObject, Jvm

_BATCH = 1_000
"""Files per string that is passed to the JVM."""
_PACKAGE = "org.apache.iceberg."
_NODE = f"{_PACKAGE}shaded.com.fasterxml.jackson.databind.JsonNode"


def data_files(jvm: Jvm, texts: Sequence[str], spec: JavaObject) -> JavaObject:
    """Parse data files into a ``java.util.List`` of ``DataFile``.

    Args:
        jvm: The session's JVM.
        texts: One file each, in the JSON of Iceberg's ``ContentFileParser``.
        spec: Partition spec of all files.
    """
    parser, files = f"{_PACKAGE}ContentFileParser", jvm.root.java.util.ArrayList()
    parse = jvm.loops.method(parser, "fromJson", _NODE, f"{_PACKAGE}PartitionSpec")
    parse = jvm.loops.bound(parse, 1, spec)
    consumer = jvm.loops.consumer(jvm.loops.then(parse, jvm.loops.adding_to(files)))
    for start in range(0, len(texts), _BATCH):
        nodes = jvm.json.readTree(f"[{','.join(texts[start : start + _BATCH])}]")
        nodes.elements().forEachRemaining(consumer)
    return files


def add_all(jvm: Jvm, update: JavaObject, kind: str, method: str, files: JavaObject) -> None:
    """Call *method* of *update*, an instance of Iceberg's interface *kind*, for each file."""
    handle = jvm.loops.method(_PACKAGE + kind, method, f"{_PACKAGE}DataFile")
    files.forEach(jvm.loops.consumer(handle.bindTo(update)))
