"""Definitions of Iceberg tables: columns, partitioning and properties."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from zadapter.base.names import Parts, join
from zadapter.base.printable import listed
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import (
    COMMENT,
    FILE_SIZE,
    OWN,
    RETENTION,
    Definition,
    Note,
    PartitionField,
    Status,
    owner_of,
    plain,
    reserved,
    retyped,
    stored,
    with_users_properties,
)
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.key_types import AS_SPARK_READS, WIDENED
from zadapter_iceberg.table.reserved_properties import is_reserved
from zadapter_iceberg.table.snapshots import Version

_COMMON = {
    "write.target-file-size-bytes": FILE_SIZE,
    "history.expire.max-snapshot-age-ms": RETENTION,
}
_CODEC = ("write.parquet.compression-codec", "zstd")
"""Property and value that Iceberg adds to every new table."""
_METADATA_COLUMNS = {
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
    "_last_updated_sequence_number", "_change_type", "_change_ordinal", "_commit_snapshot_id",
}  # fmt: skip
"""Metadata columns, whose names are reserved (the spec's "Reserved Field IDs")."""


def define(jvm: Jvm, snapshot: Snapshot) -> Definition:
    """Return the definition of a table, with a note on each part that other formats lack."""
    version: Version = snapshot.handle
    pinned, to_json = version.pinned, jvm.iceberg.SchemaParser.toJson
    spark = json.loads(jvm.iceberg.spark.SparkSchemaUtil.convert(pinned.schema()).json())
    names = {column.id: parts for parts, column in version.columns.items()}
    spec = json.loads(jvm.iceberg.PartitionSpecParser.toJson(pinned.spec()))
    properties = dict(pinned.properties())
    custom = {key: value for key, value in properties.items() if owner(key) is None}
    common = {_COMMON[key]: value for key, value in properties.items() if _is_common(key, value)}
    return Definition(
        columns=plain(spark["fields"]),
        ids=tuple(
            sorted(f"{name} {id_}" for id_, name in dict(pinned.schema().idToName()).items())
        ),
        partition=tuple(
            PartitionField(field["name"], names[field["source-id"]], field["transform"])
            for field in spec["fields"]
            if field["transform"] != "void"
        ),
        properties={**custom, **common},
        comment=properties.get(COMMENT),
        whole=True,
        renamed=_renamed(map(to_json, pinned.schemas().values())),
    ).with_items(*_type_notes(version), *_notes(pinned, str(to_json(pinned.schema())), properties))


def _is_common(key: str, value: str) -> bool:
    return key in _COMMON and value.isdecimal()


def _type_notes(version: Version) -> Iterator[Note]:
    for parts, column in version.columns.items():
        type_name = column.type.partition("[")[0]
        if type_name in AS_SPARK_READS:
            detail = f"{column.type} becomes {AS_SPARK_READS[type_name]}, as Spark reads it"
            yield Note(f"column {join(parts)}", Status.TRANSLATED, detail)


def _notes(pinned: JavaObject, schema: str, properties: Mapping[str, str]) -> Iterator[Note]:
    yield from _lost(properties)
    if not pinned.sortOrder().isUnsorted():
        yield Note("WRITE ORDERED BY", Status.LOST, "the layout determines the order of rows")
    if not pinned.schema().identifierFieldIds().isEmpty():
        yield Note("identifier fields", Status.LOST, "only Flink uses them")
    refs = sorted(name for name in dict(pinned.refs()) if name != "main")
    if refs:
        yield Note(f"branches and tags {listed(refs)}", Status.LOST, "one version is migrated")
    if "-default" in schema:
        yield Note("column defaults", Status.LOST, "existing rows keep their values")
    yield Note("field ids", Status.TRANSLATED, "columns are resolved by name")


def _lost(properties: Mapping[str, str]) -> Iterator[Note]:
    for key, value in sorted(properties.items()):
        # Spark states an owner, and Iceberg a codec and a format version, for every table
        by_all = key in {*OWN, COMMENT, "owner", "format-version"} or (key, value) == _CODEC
        if by_all or _is_common(key, value):
            continue
        if is_reserved(key):
            yield Note(f"property {key}", Status.LOST, "only Iceberg interprets it")
        elif other := owner_of(key):
            yield reserved(key, other)


def owner(key: str) -> str | None:
    """Return whose name a property has in an Iceberg table; None: the user's."""
    return "Iceberg" if is_reserved(key) else owner_of(key)


def _renamed(schemas: Iterable[str]) -> str | None:
    """Return why names do not identify columns in files, or None if they do."""
    names: dict[int, Parts] = {}
    ids: dict[Parts, int] = {}
    for schema in schemas:
        for parts, number in _numbered(json.loads(schema), ()):
            if names.setdefault(number, parts) != parts:
                return f"{join(names[number])} and {join(parts)} are names of the same column"
            if ids.setdefault(parts, number) != number:
                return f"the table has had two columns {join(parts)}"
    return None


def _numbered(type_: Any, parent: Parts) -> Iterator[tuple[Parts, int]]:
    """Yield the name and id of each field of a type in the spec's JSON (Appendix C)."""
    if isinstance(type_, str):
        return
    fields = [(field["name"], field["id"], field["type"]) for field in type_.get("fields", ())]
    fields += [
        (key, type_[f"{key}-id"], type_[key])
        for key in ("element", "key", "value")
        if f"{key}-id" in type_
    ]
    for name, number, child in fields:
        yield (*parent, name), number
        yield from _numbered(child, (*parent, name))


def accept(definition: Definition) -> Definition:
    """Adapt *definition* to what an Iceberg table supports, with a note on each change."""
    accepted = retyped(definition, _type)
    accepted = with_users_properties(accepted, owner)
    properties = {
        next((own for own, common in _COMMON.items() if common == key), key): value
        for key, value in accepted.properties.items()
    }
    refused = [
        Note(f"column {column['name']}", Status.REFUSED, "its name is reserved by Iceberg")
        for column in accepted.columns
        if column["name"] in _METADATA_COLUMNS
    ]
    return replace(accepted, properties=properties).with_items(*refused)


def _type(type_: str) -> str | None:
    return WIDENED.get(type_) or stored(type_)
