"""Deletion vectors of new files, for rows that other writers have deleted (PROTOCOL.md).

Delta's own classes aggregate the positions of each file on the executors and write the vectors.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.row_places import FILE, POSITION, ROW_ID
from zadapter.spark.compat.spark_api import metadata_column
from zadapter.spark.jvm import scala
from zadapter.spark.jvm.gateway import analyzed_plan, java_rows
from zadapter.spark.jvm.spark_classes import dataset
from zadapter_delta.jvm import Add, JavaObject, Jvm
from zadapter_delta.table.features import features
from zadapter_delta.table.snapshots import Handle

_FEATURE, _PROPERTY = "deletionVectors", "delta.enableDeletionVectors"
_INLINE = "i"
"""Storage type of vectors that the log itself holds."""


def are_enabled(snapshot: JavaObject) -> bool:
    """Return whether writers may add deletion vectors to the table of Delta's ``Snapshot``."""
    properties = json.loads(snapshot.metadata().json())["metaData"].get("configuration", {})
    return (
        _FEATURE in _features(snapshot.protocol())
        and properties.get(_PROPERTY, "").lower() == "true"
    )


def with_places(jvm: Jvm, rows: DataFrame, snapshot: JavaObject) -> DataFrame:
    """Return rows of files with the columns of :mod:`zadapter.backend.row_places`.

    The columns that preserve row ids are added, too, where rows have ids.
    """
    protocol, metadata = snapshot.protocol(), snapshot.metadata()
    ids = []
    if jvm.module(jvm.delta, "RowId").isEnabled(protocol, metadata):
        tracking = jvm.module(jvm.delta, "RowTracking")
        tracked = tracking.preserveRowTrackingColumns(java_rows(rows), snapshot)
        rows = DataFrame(tracked, jvm.spark)
        ids = [metadata_column(rows, "_metadata").getField("row_id").alias(ROW_ID)]
    elif _FEATURE not in _features(protocol):
        rows = _with_positions(jvm, rows, protocol)
    file = metadata_column(rows, "_metadata")
    places = [file.getField("file_path").alias(FILE), file.getField("row_index").alias(POSITION)]
    return rows.select("*", *places, *ids)


def _features(protocol: JavaObject) -> frozenset[str]:
    return features(json.loads(protocol.json())["protocol"])


def _with_positions(jvm: Jvm, rows: DataFrame, protocol: JavaObject) -> DataFrame:
    """Return a scan that knows the positions of rows.

    Delta's file format hides them (``DeltaParquetFileFormat.metadataSchemaFields``) unless the
    protocol of the table has deletion vectors, so the scan gets such a protocol.
    """
    fields = json.loads(protocol.json())["protocol"]
    every = sorted({*_features(protocol), _FEATURE})
    readers = sorted({*(fields.get("readerFeatures") or ()), _FEATURE})
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    with_vectors = jvm.action(
        protocol={**versions, "readerFeatures": readers, "writerFeatures": every}
    )
    scan = analyzed_plan(rows)
    relation = scan.relation()
    own = relation.fileFormat()
    changed = own.copy(with_vectors, *scala.fields(own)[1:])
    parts = [changed if field == own else field for field in scala.fields(relation)]
    relation = relation.copy(*parts, relation.sparkSession())
    plan = scan.copy(relation, *scala.fields(scan)[1:])
    return DataFrame(dataset(jvm.root, jvm.session, plan), jvm.spark)


def with_first_ids(add: Add) -> Add:
    """Return the AddFile action of a file that is not committed, for a read of its rows' ids.

    The file has the id of each row. Delta reads none of a file that has no first id.
    """
    return {**add, "baseRowId": 0, "defaultRowCommitVersion": 0}


def write(jvm: Jvm, planned: Handle, places: DataFrame) -> dict[str, JavaObject]:
    """Write the deletion vectors of files, and return Delta's descriptors by the file's name.

    Args:
        jvm: The session's JVM.
        planned: The version that the files were written for.
        places: The columns ``FILE`` and ``POSITION``.
    """
    named = places.select(
        F.col(FILE).alias("filePath"),
        F.lit(None).cast("string").alias("deletionVectorId"),
        F.col(POSITION).alias("rowIndexCol"),
    )
    generator = jvm.module(jvm.delta.commands, "DeletionVectorBitmapGenerator")
    (method,) = (
        each
        for each in generator.getClass().getMethods()
        if each.getName() == "buildDeletionVectors"
    )
    # releases before Delta 4.1 read the length of random prefixes from a transaction
    by_length = str(method.getParameters()[3].getName()) == "prefixLen"
    located, base = planned
    prefix = (
        0 if by_length else located.log.startTransaction(located.catalog_table, jvm.option(base))
    )
    found = generator.buildDeletionVectors(jvm.session, java_rows(named), located.log, prefix)
    return {str(each.filePath()): each.deletionVector() for each in jvm.iterate(found)}


def attach(add: Add, vector: JavaObject) -> Add:
    """Return an AddFile action with a deletion vector, whose bounds are no longer tight."""
    offset = vector.offset()
    descriptor = {
        "storageType": str(vector.storageType()),
        "pathOrInlineDv": str(vector.pathOrInlineDv()),
        "sizeInBytes": int(vector.sizeInBytes()),
        "cardinality": int(vector.cardinality()),
        **({"offset": int(offset.get())} if offset.isDefined() else {}),
    }
    return {**add, "deletionVector": descriptor, "stats": widen(add["stats"])}


def widen(stats: str) -> str:
    """Return the stats of a file, as JSON, after some of its rows are deleted.

    A null count then holds only if no row or every row of the file is null (PROTOCOL.md, "Per-file
    Statistics"). Bounds stay as they are written, because Python's floats are no decimals.
    """
    members = _members(stats)
    nulls = _keep(json.loads(members.get("nullCount", "{}")), {0, int(members["numRecords"])})
    changed = {**members, "nullCount": json.dumps(nulls), "tightBounds": "false"}
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in changed.items()) + "}"


def _members(text: str) -> dict[str, str]:
    """Return the members of a JSON object without spaces between them, each as its text."""
    decoder, found, at = json.JSONDecoder(), dict[str, str](), 1
    while text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        at = end + 1
        _, end = decoder.raw_decode(text, at)
        found[name] = text[at:end]
        at = end + (text[end] == ",")
    return found


def _keep(counts: Mapping[str, Any], kept: set[int]) -> dict[str, Any]:
    found = dict[str, Any]()
    for name, count in counts.items():
        if isinstance(count, Mapping):
            found[name] = _keep(count, kept)
        elif count in kept:
            found[name] = count
    return found


def locations(log: JavaObject, vectors: Iterable[JavaObject]) -> dict[str, str]:
    """Return the URIs of the files of deletion vectors, by path."""
    root = log.dataPath()
    paths = [
        vector.absolutePath(root) for vector in vectors if str(vector.storageType()) != _INLINE
    ]
    return {str(path): str(path.toUri()) for path in paths}
