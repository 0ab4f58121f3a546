"""Definitions of Delta tables: columns, partitioning and properties."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from zadapter.base.java_errors import first_line
from zadapter.base.names import NameParts, join, quote
from zadapter.base.quantities import parse
from zadapter.errors import UnsupportedError, UsageError
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import (
    FILE_SIZE,
    OWN,
    RETENTION,
    Definition,
    Json,
    Note,
    PartitionField,
    Status,
    adapt_to_folders,
    convert_types,
    note_reserved,
    optional,
    owner_of,
    plain,
    storage_type,
    with_users_properties,
    without_partition,
)
from zadapter_delta.jvm import JavaObject, Jvm

TARGET_FILE_SIZE = "delta.targetFileSize"
KEPT = "delta.deletedFileRetentionDuration"
MAPPING = "delta.columnMapping.mode"
_ID = "delta.columnMapping.id"
GENERATED = "delta.generationExpression"
CONSTRAINT = "delta.constraints."
_INTERVAL = re.compile(r"(?i)(?:interval )?(\d+) (second|minute|hour|day|week)s?")
_MILLISECONDS = {
    "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
_IGNORED = re.compile(
    r"delta\.(min(Reader|Writer)Version|feature\..*|columnMapping\.maxColumnId|lastCommit.*"
    r"|rowTracking\.materialized.*|parquet\.compression\.codec)\Z"
)
"""Properties that describe how files are written; losing them is not reported."""
_MAPPED_NAME = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that column names must not contain without column mapping (PROTOCOL.md)."""
_LOST_FEATURES = {
    GENERATED: "is no longer generated; writers must provide its values",
    "delta.identity.start": "is no longer an identity column; writers must provide its values",
    "CURRENT_DEFAULT": "has no default value",
    "delta.invariants": "is no longer checked",
    "__COLLATIONS": "is compared by bytes",
    "__CHAR_VARCHAR_TYPE_STRING": "has no length limit",
}


def define(jvm: Jvm, snapshot: Snapshot) -> Definition:
    """Return the definition of a table, with a note on each part that other formats lack."""
    metadata = snapshot.handle.snapshot.metadata()
    properties = jvm.dict(metadata.configuration())
    fields: list[Json] = json.loads(metadata.schemaString())["fields"]
    mapped = properties.get(MAPPING, "none") != "none"
    changed = any("delta.typeChanges" in json.dumps(field) for field in fields)
    custom = {key: value for key, value in properties.items() if _is_users(key)}
    return Definition(
        columns=plain(fields),
        ids=tuple(_ids(fields)),
        partition=tuple(PartitionField(name, (name,)) for name in snapshot.partition),
        properties={**custom, **_common(properties)},
        comment=metadata.description(),
        renamed=(
            "files have other column names (column mapping)" if mapped
            else "older files have other column types (type widening)" if changed else None
        ),
    ).with_items(*_clustering(snapshot), *_notes(fields, properties))  # fmt: skip


def _is_users(key: str) -> bool:
    """Return whether a property may be carried; formats that reserve its name drop it."""
    return owner(key) in {None, "Spark"}


def owner(key: str) -> str | None:
    """Return whose name a property has in a Delta table; None: the user's."""
    return "Delta" if key.lower().startswith("delta.") else owner_of(key)


def _ids(node: Any) -> Iterator[str]:
    """Yield the name and column mapping id of each column and nested field."""
    children = node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    if isinstance(node, dict) and _ID in node.get("metadata", {}):
        yield f"{node['name']} {node['metadata'][_ID]}"
    for child in children:
        yield from _ids(child)


def _common(properties: Mapping[str, str]) -> dict[str, str]:
    common: dict[str, str] = {}
    if TARGET_FILE_SIZE in properties:
        common[FILE_SIZE] = str(parse(properties[TARGET_FILE_SIZE], TARGET_FILE_SIZE))
    interval = _INTERVAL.fullmatch(properties.get(KEPT, ""))
    if interval:
        common[RETENTION] = str(int(interval[1]) * _MILLISECONDS[interval[2].lower()])
    return common


def _clustering(snapshot: Snapshot) -> Iterator[Note]:
    if snapshot.clustering:
        columns = ", ".join(map(join, snapshot.clustering))
        detail = "the new table does not state columns to cluster by; pass them as by="
        yield Note(f"CLUSTER BY ({columns})", Status.LOST, detail)


def _notes(fields: list[Json], properties: Mapping[str, str]) -> Iterator[Note]:
    for field in fields:
        text = json.dumps(field)
        for key, reason in _LOST_FEATURES.items():
            if key in text:
                yield Note(f"column {join((field['name'],))}", Status.LOST, reason)
    yield from _note_lost(properties)
    if properties.get(MAPPING, "none") != "none":
        yield Note("column mapping", Status.TRANSLATED, "columns are resolved by name")


def _note_lost(properties: Mapping[str, str]) -> Iterator[Note]:
    for key, value in sorted(properties.items()):
        is_kept = key in {TARGET_FILE_SIZE, MAPPING, *OWN} or _is_users(key)
        is_kept |= key == KEPT and _INTERVAL.fullmatch(value) is not None
        if key.startswith(CONSTRAINT):
            yield Note(f"CHECK ({value})", Status.LOST, "new rows are not checked")
        elif owner(key) == "Delta" and not is_kept and not _IGNORED.match(key):
            yield Note(f"property {key}", Status.LOST, "only Delta interprets it")
        elif not is_kept and owner(key) == "zadapter":
            yield note_reserved(key, owner(key))


def adapt_definition(definition: Definition) -> Definition:
    """Adapt *definition* to what a Delta table supports, with a note on each change."""
    accepted = with_users_properties(convert_types(definition, storage_type), owner)
    columns = tuple(column | {"type": optional(column["type"])} for column in accepted.columns)
    if columns != accepted.columns:
        detail = "Delta does not enforce it for nested values"
        accepted = accepted.with_items(Note("NOT NULL within arrays and maps", Status.LOST, detail))
    counts = Counter(column["name"].lower() for column in columns)
    accepted = replace(accepted, columns=columns).with_items(
        *(
            Note(f"column {join((name,))}", Status.REFUSED, "another column differs only in case")
            for name, count in counts.items()
            if count > 1
        )
    )
    accepted = _add_generated_columns(accepted)
    hidden = {field.name for field in accepted.partition if _is_derived(field)}
    reason = "Delta partitions by columns only; min and max of the source column still prune files"
    accepted = without_partition(accepted, hidden, reason)
    binary = {column["name"] for column in columns if column["type"] == "binary"}
    binary = {field.name for field in accepted.partition if field.source[0] in binary}
    accepted = without_partition(accepted, binary, "Delta stores partition values as strings")
    stripped = {f.name for f in accepted.partition if is_stripped(f.name)}
    accepted = without_partition(accepted, stripped, "Delta's filters strip its backticks")
    accepted = _with_mapping(adapt_to_folders(accepted))
    return replace(accepted, properties=dict(_delta_properties(accepted.properties)))


def _add_generated_columns(definition: Definition) -> Definition:
    """Replace each ``day`` partition field by a generated column.

    Timestamps with a time zone are excluded: their days are in the session's time zone in Delta,
    and in UTC in Iceberg.
    """
    types: dict[NameParts, Any] = {
        (column["name"],): column["type"] for column in definition.columns
    }
    days = [
        field
        for field in definition.partition
        if field.transform == "day" and types.get(field.source) in {"timestamp_ntz", "date"}
    ]
    expressions = {field.name: f"CAST({quote(field.source)} AS DATE)" for field in days}
    columns = [
        {"name": name, "type": "date", "nullable": True, "metadata": {}} for name in expressions
    ]
    partition = tuple(
        PartitionField(field.name, (field.name,)) if field.name in expressions else field
        for field in definition.partition
    )
    added = replace(
        definition,
        columns=(*definition.columns, *columns),
        partition=partition,
        computed={**definition.computed, **expressions},
    )
    return added.with_items(
        *(
            Note(
                f"partition field day({join(field.source)})",
                Status.TRANSLATED,
                f"partition column {field.name}, generated as {expressions[field.name]}",
            )
            for field in days
        )
    )


def is_stripped(name: str) -> bool:
    """Return whether filters of Delta look for a partition column under another name.

    Delta strips backticks at both ends (``DeltaLog.rewritePartitionFilters``), so it finds no rows.
    """
    return name.strip("`") != name


def check_names(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot*, after checking that Delta finds rows by its partition columns.

    Raises:
        UnsupportedError: Delta's filters look for a column of another name.
    """
    stripped = [join((name,)) for name in snapshot.partition if is_stripped(name)]
    if stripped:
        raise UnsupportedError(
            f"{snapshot.table}: filters on partition column {stripped[0]} find no rows, because "
            "Delta strips backticks from its name; rename the column (column mapping)"
        )
    return snapshot


def _is_derived(field: PartitionField) -> bool:
    return field.transform != "identity" or len(field.source) > 1


def _with_mapping(definition: Definition) -> Definition:
    names = [name for name in _names(list(definition.columns)) if _MAPPED_NAME.search(name)]
    if not names:
        return definition
    detail = f"files have other names for columns such as {names[0]!r} (column mapping)"
    item = Note("column names", Status.TRANSLATED, detail)
    properties = {**definition.properties, MAPPING: "name"}
    reason = "column names have characters that require column mapping in the new table"
    renamed = definition.renamed or reason
    return replace(definition, properties=properties, renamed=renamed).with_items(item)


def _names(fields: list[Json]) -> Iterator[str]:
    for field in fields:
        yield field["name"]
        yield from _nested_names(field["type"])


def _nested_names(type_: object) -> Iterator[str]:
    if isinstance(type_, dict):
        yield from _names(type_.get("fields", []))
        for key in ("elementType", "keyType", "valueType"):
            yield from _nested_names(type_.get(key))


def _delta_properties(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in properties.items():
        if key == FILE_SIZE:
            yield TARGET_FILE_SIZE, value
        elif key == RETENTION:
            yield KEPT, f"interval {int(value) // 1_000} seconds"
        else:
            yield key, value


def metadata(jvm: Jvm, log: JavaObject, definition: Definition) -> JavaObject:
    """Return Delta's ``Metadata`` of a new table, with column mapping if *definition* sets it.

    Raises:
        UsageError: Delta rejects a name or a property.
    """
    columns = [
        column
        | {"metadata": {**column["metadata"], GENERATED: definition.computed[column["name"]]}}
        if column["name"] in definition.computed
        else column
        for column in definition.columns
    ]
    action_json = {
        "id": jvm.root.java.util.UUID.randomUUID().toString(),
        "description": definition.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [field.source[0] for field in definition.partition],
        # overrides the session's default: adopted files have no column ids
        "configuration": {MAPPING: "none", **definition.properties},
        "createdTime": int(jvm.root.java.lang.System.currentTimeMillis()),
    }
    action = jvm.action(metaData=action_json)
    transaction = log.startTransaction(jvm.option(), jvm.option())
    try:
        transaction.updateMetadataForNewTable(action)
    except Exception as error:
        raise UsageError(f"Delta rejects the table: {first_line(error)}") from error
    return transaction.metadata()
