"""Definitions of Iceberg tables: columns, partitioning and properties.

Iceberg and Spark reserve some names of properties. Others of the same first word are the user's:
Iceberg has ``commit.retry.num-retries``, and keeps ``commit.sha``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from zadapter.base.names import NameParts, join
from zadapter.base.printable import abridge
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
    convert_types,
    note_reserved,
    owner_of,
    plain,
    storage_type,
    with_users_properties,
)
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.key_types import AS_SPARK_READS, WIDENED
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

_NAMES = {
    "format-version", "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id",
    "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec",
    "default-sort-order", "format", "sort-order", "identifier-fields", "identifier-fields.rely",
    "commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms", "commit.status-check.num-retries",
    "commit.status-check.min-wait-ms", "commit.status-check.max-wait-ms",
    "commit.status-check.total-timeout-ms", "commit.manifest.target-size-bytes",
    "commit.manifest.min-count-to-merge", "commit.manifest-merge.enabled",
    "read.split.target-size", "read.split.metadata-target-size", "read.split.planning-lookback",
    "read.split.open-file-cost", "read.split.adaptive-size.enabled",
    "read.parquet.vectorization.enabled", "read.parquet.vectorization.batch-size",
    "read.orc.vectorization.enabled", "read.orc.vectorization.batch-size",
    "read.data-planning-mode", "read.delete-planning-mode", "write.format.default",
    "write.delete.format.default", "write.target-file-size-bytes",
    "write.delete.target-file-size-bytes", "write.distribution-mode",
    "write.delete.distribution-mode", "write.update.distribution-mode",
    "write.merge.distribution-mode", "write.delete.mode", "write.update.mode", "write.merge.mode",
    "write.delete.isolation-level", "write.update.isolation-level", "write.merge.isolation-level",
    "write.delete.granularity", "write.upsert.enabled", "write.wap.enabled",
    "write.summary.partition-limit", "write.location-provider.impl", "write.folder-storage.path",
    "write.data.path", "write.metadata.path", "write.object-storage.enabled",
    "write.object-storage.partitioned-paths", "write.object-storage.path",
    "write.metadata.compression-codec", "write.metadata.previous-versions-max",
    "write.metadata.delete-after-commit.enabled", "write.metadata.metrics.default",
    "write.metadata.metrics.max-inferred-column-defaults", "write.manifest.compression-codec",
    "write.manifest.compression-level", "write.spark.fanout.enabled",
    "write.spark.accept-any-schema", "write.spark.auto-schema-evolution.enabled",
    "write.spark.advisory-partition-size-bytes", "write.parquet.bloom-filter-max-bytes",
    "write.parquet.bloom-filter-adaptive-enabled", "write.parquet.shred-variants",
    "write.parquet.variant-inference-buffer-size",
    "write.parquet.row-group-size-track-uncompressed", "write.orc.bloom.filter.columns",
    "write.orc.bloom.filter.fpp", "schema.name-mapping.default",
    "compatibility.snapshot-id-inheritance.enabled", "engine.hive.enabled",
    "engine.hive.lock-enabled", "gc.enabled", "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep", "history.expire.max-ref-age-ms", "encryption.key-id",
    "encryption.data-key-length",
}  # fmt: skip
"""Constants of Iceberg's ``TableProperties`` and ``SparkTable``."""
_OF_FILES = {
    "parquet.row-group-size-bytes", "parquet.page-size-bytes", "parquet.page-version",
    "parquet.page-row-limit", "parquet.dict-size-bytes", "parquet.compression-codec",
    "parquet.compression-level", "parquet.row-group-check-min-record-count",
    "parquet.row-group-check-max-record-count", "avro.compression-codec",
    "avro.compression-level", "orc.stripe-size-bytes", "orc.block-size-bytes",
    "orc.vectorized.batch-size", "orc.compression-codec", "orc.compression-strategy",
}  # fmt: skip
"""Constants that begin with ``write.`` for data files, with ``write.delete.`` for deletes."""
_OF_COLUMNS = (
    *(
        f"write.parquet.{each}.column."
        for each in (
            *("bloom-filter-fpp", "bloom-filter-ndv", "bloom-filter-enabled", "stats-enabled"),
            "dict-encoding-enabled",
        )
    ),
    "write.metadata.metrics.column.",
)
"""Prefixes that the name of a column follows."""


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
        renamed=_find_reused_name(map(to_json, pinned.schemas().values())),
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
    yield from _note_lost(properties)
    if not pinned.sortOrder().isUnsorted():
        yield Note("WRITE ORDERED BY", Status.LOST, "the layout determines the order of rows")
    if not pinned.schema().identifierFieldIds().isEmpty():
        yield Note("identifier fields", Status.LOST, "only Flink uses them")
    refs = sorted(name for name in dict(pinned.refs()) if name != "main")
    if refs:
        yield Note(f"branches and tags {abridge(refs)}", Status.LOST, "one version is migrated")
    if "-default" in schema:
        yield Note("column defaults", Status.LOST, "existing rows keep their values")
    yield Note("field ids", Status.TRANSLATED, "columns are resolved by name")


def _note_lost(properties: Mapping[str, str]) -> Iterator[Note]:
    for key, value in sorted(properties.items()):
        # Spark states an owner, and Iceberg a codec and a format version, for every table
        by_all = key in {*OWN, COMMENT, "owner", "format-version"} or (key, value) == _CODEC
        if by_all or _is_common(key, value):
            continue
        if is_reserved(key):
            yield Note(f"property {key}", Status.LOST, "only Iceberg interprets it")
        elif other := owner_of(key):
            yield note_reserved(key, other)


def owner(key: str) -> str | None:
    """Return whose name a property has in an Iceberg table; None: the user's."""
    return "Iceberg" if is_reserved(key) else owner_of(key)


def _find_reused_name(schemas: Iterable[str]) -> str | None:
    """Return why names do not identify columns in files, or None if they do."""
    names: dict[int, NameParts] = {}
    ids: dict[NameParts, int] = {}
    for schema in schemas:
        for parts, number in _list_field_ids(json.loads(schema), ()):
            if names.setdefault(number, parts) != parts:
                return f"{join(names[number])} and {join(parts)} are names of the same column"
            if ids.setdefault(parts, number) != number:
                return f"the table has had two columns {join(parts)}"
    return None


def _list_field_ids(type_: Any, parent: NameParts) -> Iterator[tuple[NameParts, int]]:
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
        yield from _list_field_ids(child, (*parent, name))


def adapt_definition(definition: Definition) -> Definition:
    """Adapt *definition* to what an Iceberg table supports, with a note on each change."""
    accepted = convert_types(definition, _type)
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
    return WIDENED.get(type_) or storage_type(type_)


def is_reserved(key: str) -> bool:
    """Return whether Iceberg would interpret a property with this name."""
    of_file = key.removeprefix("write.").removeprefix("delete.")
    return (
        key in _NAMES
        or key == COMMENT
        or (key.startswith("write.") and of_file in _OF_FILES)
        or key.startswith(_OF_COLUMNS)
    )
