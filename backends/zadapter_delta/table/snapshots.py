"""Snapshots of Delta tables."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.java_errors import causes
from zadapter.base.key_types import is_text
from zadapter.base.names import NameParts, leaves, resolve
from zadapter.base.quantities import parse
from zadapter.errors import UnsupportedError, UsageError, VersionExpiredError
from zadapter.layout.store import Layouts
from zadapter.table.file_stats import partition as partition_values
from zadapter.table.snapshot import Snapshot
from zadapter.table.spark_schema import arrow_schema
from zadapter_delta.jvm import JavaObject, Jvm, call
from zadapter_delta.stats import add_files
from zadapter_delta.stats.add_files import physical_names, with_bounds
from zadapter_delta.table.clustering import clustering
from zadapter_delta.table.logs import find_rewrites
from zadapter_delta.table.lookup import Located, locate
from zadapter_delta.table.migrated_from import source
from zadapter_delta.table.specs import TARGET_FILE_SIZE

_PREFIX_LENGTH = "spark.databricks.io.skipping.stringPrefixLength"
_EXPIRED = re.compile(r"DELTA_\w*(LOG|VERSION)|VersionNotFound|FileNotFound")


class Handle(NamedTuple):
    """Reference to a version of a table."""

    located: Located
    snapshot: JavaObject
    """Delta's ``Snapshot``; a ``DummySnapshot`` if the table does not exist yet."""


def read_snapshot(
    jvm: Jvm, table: str, handle: Handle, applied: frozenset[str] = frozenset()
) -> Snapshot:
    """Return the snapshot of a version.

    Args:
        jvm: The session's JVM.
        table: The table as the caller named it.
        handle: The version.
        applied: Ids of zadapter's commits since an older version.
    """
    located, snapshot = handle
    metadata, protocol = snapshot.metadata(), snapshot.protocol()
    schema, text = _json(metadata.schema()), str(metadata.json())
    arrow, stated = arrow_schema(schema), json.loads(text)["metaData"]
    partitioned, store = stated["partitionColumns"], located.side_files
    physical = physical_names(T.StructType.fromJson(schema))
    return Snapshot(
        table=table,
        format="delta",
        version=version if (version := int(snapshot.version())) >= 0 else None,
        location=store.root,
        schema=arrow,
        partition={name: _partition_type(arrow.field(name).type) for name in partitioned},
        id=stated["id"],
        definition=hashlib.sha256(f"{text}{protocol.json()}".encode()).hexdigest(),
        physical=physical,
        without_stats=_without_stats(snapshot, arrow),
        without_bounds=frozenset(p for p, t in leaves(arrow) if not with_bounds(t)),
        target_file_size=_target_file_size(stated.get("configuration", {})),
        clustering=clustering(jvm, snapshot, physical),
        applied=applied,
        layouts=Layouts(store),
        source=lambda: source(jvm, snapshot),
        properties=lambda: jvm.dict(metadata.configuration()),
        rewritten=lambda since: find_rewrites(jvm, located.log, since, int(snapshot.version())),
        handle=handle,
    )


def _target_file_size(properties: Mapping[str, str]) -> int | None:
    with suppress(UsageError):  # Delta knows more units
        size = properties.get(TARGET_FILE_SIZE)
        return None if size is None else parse(size, TARGET_FILE_SIZE)
    return None


def read_older(jvm: Jvm, table: str, version: int) -> Snapshot:
    """Return an older version of a table.

    Raises:
        UnknownTableError: There is no such table.
        VersionExpiredError: The log entries of this version are gone.
    """
    located = locate(jvm, table)
    log, catalog_table = located.log, located.catalog_table
    try:
        snapshot = call(log, "getSnapshotAt", version=version, catalogTableOpt=catalog_table)
    except Exception as error:
        if not any(map(_EXPIRED.search, causes(error))):
            raise
        oldest = int(log.history().getEarliestReproducibleCommit())
        raise VersionExpiredError(table, version, oldest) from error
    return read_snapshot(jvm, table, Handle(located, snapshot))


def _without_stats(snapshot: JavaObject, schema: pa.Schema) -> frozenset[NameParts]:
    with_stats = {parts for parts, _ in leaves(read_stats_schema(snapshot))}
    return frozenset(p for p, t in leaves(schema) if p not in with_stats or not with_bounds(t))


def prefix_length(jvm: Jvm, snapshot: JavaObject) -> int:
    """Return how many characters of a text Delta keeps in stats."""
    stats = jvm.module(jvm.delta.stats, "StatsCollectionUtils")
    if "getDataSkippingStringPrefixLength" in dir(stats):
        return int(stats.getDataSkippingStringPrefixLength(jvm.session, snapshot.metadata()))
    # before Delta 4.1 there was no table property for it
    return int(jvm.session.sessionState().conf().getConfString(_PREFIX_LENGTH))


def read_stats_schema(snapshot: JavaObject) -> pa.Schema:
    """Return the columns that Delta collects stats for."""
    return arrow_schema(_json(snapshot.statCollectionLogicalSchema()))


def file_table(snapshot: Snapshot, read: add_files.Read, columns: Sequence[NameParts]) -> pa.Table:
    """Return the file table of the AddFile actions that *read* yields, with stats of *columns*.

    Raises:
        UnsupportedError: A partition value is the empty string.
    """
    schema = T.StructType.fromJson(_json(snapshot.handle.snapshot.metadata().schema()))
    partition = {
        name: _find_wanted_column(snapshot, schema, (name,)) for name in snapshot.partition
    }
    wanted = [
        _find_wanted_column(snapshot, schema, parts)
        for parts in columns
        if parts[0] not in partition
    ]
    files = add_files.file_table(read, wanted, partition)
    for name, type_ in snapshot.partition.items():
        if is_text(type_) and pc.any(pc.equal(partition_values(files, name), "")).as_py():
            raise UnsupportedError(
                f"{snapshot.table}: partition column {name} has empty strings, which Delta writes "
                "as null; UPDATE these rows first, for example to '-'"
            )
    return files


def _json(scala_schema: JavaObject) -> dict[str, object]:
    parsed: dict[str, object] = json.loads(scala_schema.json())
    return parsed


def _find_wanted_column(
    snapshot: Snapshot, schema: T.StructType, parts: NameParts
) -> add_files.Wanted:
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
    """Return the type of partition values: string for types that Arrow represents as null.

    These include CHAR, which has no usable order; its stored values still identify partitions.
    """
    return pa.string() if pa.types.is_null(type_) else type_
