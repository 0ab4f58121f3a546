"""Definitions of Delta tables: columns, partitioning and properties."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from zadapter.base.java_errors import first_line
from zadapter.base.names import Parts, join, quote
from zadapter.base.sizes import parse
from zadapter.errors import UsageError
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import (
    FILE_SIZE,
    RETENTION,
    Definition,
    Json,
    Note,
    PartitionField,
    Status,
    in_folders,
    optional,
    plain,
    retyped,
    stored,
    without_partition,
)
from zadapter_delta.jvm import JavaObject, Jvm

_SIZE, KEPT = "delta.targetFileSize", "delta.deletedFileRetentionDuration"
MAPPING = "delta.columnMapping.mode"
_ID = "delta.columnMapping.id"
GENERATED = "delta.generationExpression"
_INTERVAL = re.compile(r"(?i)(?:interval )?(\d+) (second|minute|hour|day|week)s?")
_MILLISECONDS = {
    "second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
_SILENT = re.compile(
    r"delta\.(min(Reader|Writer)Version|feature\..*|columnMapping\.maxColumnId|lastCommit.*"
    r"|rowTracking\.materialized.*|parquet\.compression\.codec)\Z"
)
"""Properties that describe how files are written; losing them is not reported."""
_ODD_NAME = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that column names must not contain without column mapping (PROTOCOL.md)."""
_FIELDS = {
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
    said: list[Json] = json.loads(metadata.schemaString())["fields"]
    mapped = properties.get(MAPPING, "none") != "none"
    changed = any("delta.typeChanges" in json.dumps(each) for each in said)
    kept = {k: v for k, v in properties.items() if not k.startswith(("delta.", "zadapter."))}
    return Definition(
        columns=plain(said),
        ids=tuple(_ids(said)),
        partition=tuple(PartitionField(name, (name,)) for name in snapshot.partition),
        properties={**kept, **_common(properties)},
        comment=metadata.description(),
        renamed=(
            "files have other column names (column mapping)" if mapped
            else "older files have other column types (type widening)" if changed else None
        ),
    ).with_items(*_unsaid(said, properties))  # fmt: skip


def _ids(said: Any) -> Iterator[str]:
    """Yield the name and column mapping id of each column and nested field."""
    below = said if isinstance(said, list) else said.values() if isinstance(said, dict) else ()
    if isinstance(said, dict) and _ID in said.get("metadata", {}):
        yield f"{said['name']} {said['metadata'][_ID]}"
    for each in below:
        yield from _ids(each)


def _common(properties: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if _SIZE in properties:
        found[FILE_SIZE] = str(parse(properties[_SIZE], _SIZE))
    interval = _INTERVAL.fullmatch(properties.get(KEPT, ""))
    if interval:
        found[RETENTION] = str(int(interval[1]) * _MILLISECONDS[interval[2].lower()])
    return found


def _unsaid(said: list[Json], properties: Mapping[str, str]) -> Iterator[Note]:
    for each in said:
        text = json.dumps(each)
        for key, how in _FIELDS.items():
            if key in text:
                yield Note(f"column {join((each['name'],))}", Status.LOST, how)
    for key in sorted(properties):
        known = key in {_SIZE, MAPPING} or key.startswith("zadapter.")
        known |= key == KEPT and _INTERVAL.fullmatch(properties[key]) is not None
        if key.startswith("delta.constraints."):
            yield Note(f"CHECK ({properties[key]})", Status.LOST, "new rows are not checked")
        elif key.startswith("delta.") and not known and not _SILENT.match(key):
            yield Note(f"property {key}", Status.LOST, "only Delta interprets it")
    if properties.get(MAPPING, "none") != "none":
        yield Note("column mapping", Status.TRANSLATED, "columns are resolved by name")


def accept(definition: Definition) -> Definition:
    """Adapt *definition* to what a Delta table supports, with a note on each change."""
    accepted = retyped(definition, stored)
    columns = tuple(each | {"type": optional(each["type"])} for each in accepted.columns)
    if columns != accepted.columns:
        said = "Delta does not enforce it for nested values"
        accepted = accepted.with_items(Note("NOT NULL within arrays and maps", Status.LOST, said))
    twice = Counter(each["name"].lower() for each in columns)
    accepted = replace(accepted, columns=columns).with_items(
        *(
            Note(f"column {join((name,))}", Status.REFUSED, "another column differs only in case")
            for name, count in twice.items()
            if count > 1
        )
    )
    accepted = _generated(accepted)
    hidden = {each.name for each in accepted.partition if _hidden(each)}
    why = "Delta partitions by columns only; min and max of the source column still prune files"
    accepted = without_partition(accepted, hidden, why)
    raw = {each["name"] for each in columns if each["type"] == "binary"}
    raw = {each.name for each in accepted.partition if each.source[0] in raw}
    accepted = without_partition(accepted, raw, "Delta stores partition values as strings")
    accepted = _mapped(in_folders(accepted))
    return replace(accepted, properties=dict(_own(accepted.properties))).with_items(
        *(
            Note(f"property {key}", Status.LOST, "its name is reserved by Delta")
            for key in sorted(accepted.properties)
            if key.startswith("delta.") and key != MAPPING
        )
    )


def _generated(definition: Definition) -> Definition:
    """Replace each ``day`` partition field by a generated column.

    Timestamps with a time zone are excluded: their days are in the session's time zone in Delta,
    and in UTC in Iceberg.
    """
    types: dict[Parts, Any] = {(each["name"],): each["type"] for each in definition.columns}
    days = [
        each
        for each in definition.partition
        if each.transform == "day" and types.get(each.source) in {"timestamp_ntz", "date"}
    ]
    made = {each.name: f"CAST({quote(each.source)} AS DATE)" for each in days}
    columns = [{"name": n, "type": "date", "nullable": True, "metadata": {}} for n in made]
    partition = tuple(
        PartitionField(each.name, (each.name,)) if each.name in made else each
        for each in definition.partition
    )
    added = replace(
        definition,
        columns=(*definition.columns, *columns),
        partition=partition,
        computed={**definition.computed, **made},
    )
    return added.with_items(
        *(
            Note(
                f"partition field day({join(each.source)})",
                Status.TRANSLATED,
                f"partition column {each.name}, generated as {made[each.name]}",
            )
            for each in days
        )
    )


def _hidden(field: PartitionField) -> bool:
    return field.transform != "identity" or len(field.source) > 1


def _mapped(definition: Definition) -> Definition:
    odd = [name for name in _names(list(definition.columns)) if _ODD_NAME.search(name)]
    if not odd:
        return definition
    how = f"files have other names for columns such as {odd[0]!r} (column mapping)"
    item = Note("column names", Status.TRANSLATED, how)
    properties = {**definition.properties, MAPPING: "name"}
    reason = "column names have characters that require column mapping in the new table"
    renamed = definition.renamed or reason
    return replace(definition, properties=properties, renamed=renamed).with_items(item)


def _names(fields: list[Json]) -> Iterator[str]:
    for each in fields:
        yield each["name"]
        yield from _within(each["type"])


def _within(type_: object) -> Iterator[str]:
    if isinstance(type_, dict):
        yield from _names(type_.get("fields", []))
        for word in ("elementType", "keyType", "valueType"):
            yield from _within(type_.get(word))


def _own(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in properties.items():
        if key == FILE_SIZE:
            yield _SIZE, value
        elif key == RETENTION:
            yield KEPT, f"interval {int(value) // 1_000} seconds"
        elif key == MAPPING or not key.startswith("delta."):
            yield key, value


def metadata(jvm: Jvm, log: JavaObject, definition: Definition) -> JavaObject:
    """Return Delta's ``Metadata`` of a new table, with column mapping if *definition* sets it.

    Raises:
        UsageError: Delta refuses a name or a property.
    """
    columns = [
        each | {"metadata": {**each["metadata"], GENERATED: definition.computed[each["name"]]}}
        if each["name"] in definition.computed
        else each
        for each in definition.columns
    ]
    said = {
        "id": jvm.root.java.util.UUID.randomUUID().toString(),
        "description": definition.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": columns}),
        "partitionColumns": [each.source[0] for each in definition.partition],
        # overrides the session's default: adopted files have no column ids
        "configuration": {MAPPING: "none", **definition.properties},
        "createdTime": int(jvm.root.java.lang.System.currentTimeMillis()),
    }
    action = jvm.module(jvm.delta.actions, "Action").fromJson(json.dumps({"metaData": said}))
    transaction = log.startTransaction(jvm.option(), jvm.option())
    try:
        transaction.updateMetadataForNewTable(action)
    except Exception as error:
        raise UsageError(f"Delta rejects the table: {first_line(error)}") from error
    return transaction.metadata()
