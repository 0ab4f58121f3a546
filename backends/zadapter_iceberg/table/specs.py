"""Definitions of Iceberg tables: columns, partitioning and properties."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from zadapter.base.names import Parts, join
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import (
    COMMENT,
    FILE_SIZE,
    RETENTION,
    Definition,
    Note,
    PartitionField,
    Status,
    plain,
    retyped,
    stored,
)
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.table.snapshots import Version

_COMMON = {
    "write.target-file-size-bytes": FILE_SIZE,
    "history.expire.max-snapshot-age-ms": RETENTION,
}
_RESERVED = re.compile(
    r"(write|read|commit|history|gc|zadapter|schema|compatibility|encryption|engine|format"
    r"|format-version|current-schema|owner)(\.|-|\Z)"
)
"""Properties that only Iceberg interprets."""
_SILENT = re.compile(r"zadapter\.|format-version\Z|owner\Z|write\.parquet\.compression-codec\Z")
"""Properties of these whose loss is not reported."""
_AS_SPARK_READS = {"uuid": "string", "fixed": "binary"}
_OWN = {
    "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id",
    "_last_updated_sequence_number", "_change_type", "_change_ordinal", "_commit_snapshot_id",
}  # fmt: skip
"""Metadata columns, whose names are reserved (the spec's "Reserved Field IDs")."""
_WIDER = {"byte": "integer", "short": "integer"}


def define(jvm: Jvm, snapshot: Snapshot) -> Definition:
    """Return the definition of a table, with a note on each part that other formats lack."""
    version: Version = snapshot.handle
    pinned, to_json = version.pinned, jvm.iceberg.SchemaParser.toJson
    spark = json.loads(jvm.iceberg.spark.SparkSchemaUtil.convert(pinned.schema()).json())
    names = {column.id: parts for parts, column in version.columns.items()}
    spec = json.loads(jvm.iceberg.PartitionSpecParser.toJson(pinned.spec()))
    properties = dict(pinned.properties())
    kept = {key: value for key, value in properties.items() if not _RESERVED.match(key)}
    comment = kept.pop(COMMENT, None)
    common = {_COMMON[key]: value for key, value in properties.items() if _is_common(key, value)}
    return Definition(
        columns=plain(spark["fields"]),
        ids=tuple(
            sorted(f"{name} {id_}" for id_, name in dict(pinned.schema().idToName()).items())
        ),
        partition=tuple(
            PartitionField(each["name"], names[each["source-id"]], each["transform"])
            for each in spec["fields"]
            if each["transform"] != "void"
        ),
        properties={**kept, **common},
        comment=comment,
        whole=True,
        renamed=_renamed(map(to_json, pinned.schemas().values())),
    ).with_items(*_odd_types(version), *_unsaid(pinned, str(to_json(pinned.schema())), properties))


def _is_common(key: str, value: str) -> bool:
    return key in _COMMON and value.isdecimal()


def _odd_types(version: Version) -> Iterator[Note]:
    for parts, column in version.columns.items():
        word = column.type.partition("[")[0]
        if word in _AS_SPARK_READS:
            how = f"{column.type} becomes {_AS_SPARK_READS[word]}, as Spark reads it"
            yield Note(f"column {join(parts)}", Status.TRANSLATED, how)


def _unsaid(pinned: JavaObject, schema: str, properties: Mapping[str, str]) -> Iterator[Note]:
    for key in sorted(properties):
        known = _is_common(key, properties[key]) or _SILENT.match(key)
        if _RESERVED.match(key) and not known:
            yield Note(f"property {key}", Status.LOST, "only Iceberg interprets it")
    if not pinned.sortOrder().isUnsorted():
        yield Note("WRITE ORDERED BY", Status.LOST, "the layout determines the order of rows")
    if not pinned.schema().identifierFieldIds().isEmpty():
        yield Note("identifier fields", Status.LOST, "only Flink uses them")
    others = sorted(name for name in dict(pinned.refs()) if name != "main")
    if others:
        yield Note(f"branches and tags {', '.join(others)}", Status.LOST, "one version is migrated")
    if "-default" in schema:
        yield Note("column defaults", Status.LOST, "existing rows keep their values")
    yield Note("field ids", Status.TRANSLATED, "columns are resolved by name")


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


def _numbered(type_: Any, above: Parts) -> Iterator[tuple[Parts, int]]:
    """Yield the name and id of each field of a type in the spec's JSON (Appendix C)."""
    if isinstance(type_, str):
        return
    inner = [(each["name"], each["id"], each["type"]) for each in type_.get("fields", ())]
    inner += [
        (word, type_[f"{word}-id"], type_[word])
        for word in ("element", "key", "value")
        if f"{word}-id" in type_
    ]
    for name, number, below in inner:
        yield (*above, name), number
        yield from _numbered(below, (*above, name))


def accept(definition: Definition) -> Definition:
    """Adapt *definition* to what an Iceberg table supports, with a note on each change."""
    accepted = retyped(definition, _type)
    properties = {
        next((own for own, common in _COMMON.items() if common == key), key): value
        for key, value in accepted.properties.items()
    }
    taken = sorted(key for key in accepted.properties if _RESERVED.match(key))
    lost = [
        Note(f"property {key}", Status.LOST, "its name is reserved by Iceberg") for key in taken
    ]
    kept = {key: value for key, value in properties.items() if key not in taken}
    refused = [
        Note(f"column {each['name']}", Status.REFUSED, "its name is reserved by Iceberg")
        for each in accepted.columns
        if each["name"] in _OWN
    ]
    return replace(accepted, properties=kept).with_items(*lost, *refused)


def _type(type_: str) -> str | None:
    return _WIDER.get(type_) or stored(type_)
