"""Bulk calls of one Java method within the JVM: from Python, each takes a tenth of a millisecond.

The loop's body consists of Java method handles, because a Python function would be a callback.
"""

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
    handles = jvm.root.java.lang.invoke.MethodHandles
    files = jvm.root.java.util.ArrayList()
    parser = f"{_PACKAGE}ContentFileParser"
    parse = _handle(jvm, parser, "fromJson", _NODE, f"{_PACKAGE}PartitionSpec")
    parse = handles.insertArguments(parse, 1, jvm.array(jvm.root.java.lang.Object, [spec]))
    add = _handle(jvm, "java.util.ArrayList", "add", "java.lang.Object").bindTo(files)
    types = jvm.root.java.lang.invoke.MethodType
    add = add.asType(types.methodType(add.type().returnType(), parse.type().returnType()))
    consumer = _consumer(jvm, handles.filterReturnValue(parse, add))
    mapper = jvm.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper()
    for start in range(0, len(texts), _BATCH):
        nodes = mapper.readTree(f"[{','.join(texts[start : start + _BATCH])}]")
        nodes.elements().forEachRemaining(consumer)
    return files


def add_all(jvm: Jvm, update: JavaObject, kind: str, method: str, files: JavaObject) -> None:
    """Call *method* of *update*, an instance of Iceberg's interface *kind*, for each file."""
    handle = _handle(jvm, _PACKAGE + kind, method, f"{_PACKAGE}DataFile")
    files.forEach(_consumer(jvm, handle.bindTo(update)))


def _handle(jvm: Jvm, class_: str, method: str, *arguments: str) -> JavaObject:
    types = jvm.array(jvm.root.java.lang.Class, [jvm.class_of(argument) for argument in arguments])
    java_method = jvm.class_of(class_).getMethod(method, types)
    return jvm.root.java.lang.invoke.MethodHandles.publicLookup().unreflect(java_method)


def _consumer(jvm: Jvm, handle: JavaObject) -> JavaObject:
    proxies = jvm.root.java.lang.invoke.MethodHandleProxies
    return proxies.asInterfaceInstance(jvm.class_of("java.util.function.Consumer"), handle)
