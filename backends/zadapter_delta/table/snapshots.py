"""A version of a Delta table, as the core sees it."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.java_errors import causes
from zadapter.base.names import Parts, leaves, resolve
from zadapter.errors import UnsupportedError, VersionExpiredError
from zadapter.layout.store import Layouts
from zadapter.table.file_stats import partition as partition_values
from zadapter.table.snapshot import Snapshot
from zadapter.table.spark_schema import arrow_schema
from zadapter_delta.columns import physical_names, with_bounds
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.stats import add_files
from zadapter_delta.table.lookup import Located, locate
from zadapter_delta.table.migrated_from import source
from zadapter_delta.table.side_files import Store

_GONE = re.compile(r"DELTA_\w*(LOG|VERSION)|VersionNotFound|FileNotFound")
_ADD_FILE = (
    "struct<path: string, partitionValues: map<string, string>, size: bigint, stats: string, "
    "tags: map<string, string>, deletionVector: struct<storageType: string, "
    "pathOrInlineDv: string, offset: int, cardinality: bigint>>"
)
"""The part of PROTOCOL.md's "Add File" that a file table is made of."""


class Handle(NamedTuple):
    """What the backend needs to find a version again."""

    located: Located
    snapshot: JavaObject
    """Delta's own; a ``DummySnapshot`` if there is no table yet."""


def of(jvm: Jvm, table: str, handle: Handle, applied: frozenset[str] = frozenset()) -> Snapshot:
    """Return a version as the core sees it.

    Args:
        jvm: The session's.
        table: The table as the caller named it.
        handle: The version.
        applied: Ids of our commits since the version asked for.
    """
    located, snapshot = handle
    metadata, protocol = snapshot.metadata(), snapshot.protocol()
    schema = _json(metadata.schema())
    arrow, partitioned = arrow_schema(schema), jvm.iterate(metadata.partitionColumns())
    return Snapshot(
        table=table,
        format="delta",
        version=int(snapshot.version()),
        location=str(located.log.dataPath()),
        schema=arrow,
        partition={name: _partition_type(arrow.field(name).type) for name in partitioned},
        id=str(metadata.id()),
        definition=hashlib.sha256(f"{metadata.json()}{protocol.json()}".encode()).hexdigest(),
        physical=physical_names(T.StructType.fromJson(schema)),
        without_stats=_without_stats(snapshot, arrow),
        without_bounds=frozenset(p for p, t in leaves(arrow) if not with_bounds(t)),
        applied=applied,
        layouts=Layouts(Store(jvm, located.log)),
        source=lambda: source(jvm, snapshot),
        handle=handle,
    )


def at(jvm: Jvm, table: str, version: int) -> Snapshot:
    """Return an older version of a table.

    Raises:
        UnknownTableError: There is no such table.
        VersionExpiredError: Its part of the log is gone.
    """
    located = locate(jvm, table)
    nothing, log = jvm.option(), located.log
    try:
        found = log.getSnapshotAt(version, nothing, located.catalog_table, False)  # noqa: FBT003
    except Exception as error:
        if not any(map(_GONE.search, causes(error))):
            raise
        oldest = int(log.history().getEarliestReproducibleCommit())
        raise VersionExpiredError(table, version, oldest) from error
    return of(jvm, table, Handle(located, found))


def _without_stats(snapshot: JavaObject, schema: pa.Schema) -> frozenset[Parts]:
    known = {parts for parts, _ in leaves(collected(snapshot))}
    return frozenset(p for p, t in leaves(schema) if p not in known or not with_bounds(t))


def collected(snapshot: JavaObject) -> pa.Schema:
    """Return the columns that the log keeps stats of."""
    return arrow_schema(_json(snapshot.statCollectionLogicalSchema()))


def file_table(snapshot: Snapshot, adds: DataFrame, columns: Sequence[Parts]) -> pa.Table:
    """Return the file table of *adds*, AddFile actions as rows, with stats of *columns*.

    Raises:
        UnsupportedError: A partition value is the empty text.
    """
    schema = T.StructType.fromJson(_json(snapshot.handle.snapshot.metadata().schema()))
    partition = {name: _wanted(snapshot, schema, (name,)) for name in snapshot.partition}
    wanted = [_wanted(snapshot, schema, parts) for parts in columns if parts[0] not in partition]
    made = add_files.file_table(adds, wanted, partition)
    for name, type_ in snapshot.partition.items():
        if pa.types.is_string(type_) and pc.any(pc.equal(partition_values(made, name), "")).as_py():
            raise UnsupportedError(
                f"{snapshot.table}: files have the empty text as their {name}, which Delta's "
                f"writer would turn into null; UPDATE these rows first, for example to '-'"
            )
    return made


def frame(jvm: Jvm, lines: Iterable[str]) -> DataFrame:
    """Return AddFile actions, as the log has them, as rows like those of a snapshot."""
    parsed = F.from_json("value", f"add {_ADD_FILE}")
    made = jvm.frame([(line,) for line in lines], "value string")
    return made.select(parsed["add"].alias("add")).select("add.*")


def _json(scala_schema: JavaObject) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(scala_schema.json())
    return parsed


def _wanted(snapshot: Snapshot, schema: T.StructType, parts: Parts) -> add_files.Wanted:
    resolved, type_ = resolve(parts, snapshot.schema)
    spark_type: T.DataType = schema
    for part in resolved:
        field = spark_type[part]  # type: ignore[index]
        spark_type = field.dataType
    changes = field.metadata.get("delta.typeChanges", ())
    return add_files.Wanted(
        parts=resolved,
        physical=snapshot.physical.get(resolved, resolved),
        type=snapshot.partition.get(resolved[0], type_),
        spark_type=spark_type,
        was_float=any(change["fromType"] == "float" for change in changes),
    )


def _partition_type(type_: pa.DataType) -> pa.DataType:
    """CHAR has no order of its own, but its values as they are stored tell partitions apart."""
    return pa.string() if pa.types.is_null(type_) else type_
