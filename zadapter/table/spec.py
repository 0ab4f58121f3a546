"""Format-independent definition of a table, and its conversion between formats."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from zadapter.base.key_types import find_by_name
from zadapter.base.names import NameParts, join
from zadapter.base.printable import abridge
from zadapter.base.quantities import show_count
from zadapter.base.secrets import mask_fields
from zadapter.errors import UnsupportedError

Json = dict[str, Any]
"""A type or a field in the parsed JSON of Spark's ``StructType.json``."""


class Status(str, Enum):
    """Outcome of the migration of a part of a table."""

    CARRIED = "carried"
    TRANSLATED = "translated"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Note:
    """A part of a table, and the outcome of its migration."""

    what: str
    status: Status
    how: str = ""

    def __post_init__(self) -> None:
        mask_fields(self)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec.

    Attributes:
        name: Name of the field: a column's name, or the name of a transformed column.
        source: The source column.
        transform: Transform in the Iceberg spec's notation: ``identity``, ``day``, ``bucket[16]``…
    """

    name: str
    source: NameParts
    transform: str = "identity"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Schema, partition spec and properties of a table."""

    columns: tuple[Json, ...]
    """Spark's fields: name, type, nullable, and of the metadata only the comment."""
    ids: tuple[str, ...] = ()
    """Ids by which the format identifies columns, independent of their names."""
    partition: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """User properties, and the common properties under their names in :data:`COMMON`."""
    comment: str | None = None
    computed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Computed columns, with their expressions in Spark's SQL."""
    unrepresentable: frozenset[str] = frozenset()
    """Partition fields with values that folder names cannot represent."""
    whole: bool = False
    """Whether files also contain their partition columns."""
    renamed: str | None = None
    """Why columns cannot be resolved by name in the files; None: they can."""
    items: tuple[Note, ...] = ()
    """Notes on the parts that the definition does not keep unchanged."""

    def with_items(self, *items: Note) -> "Definition":
        """Return a copy with additional notes."""
        return replace(self, items=(*self.items, *items))

    @property
    def digest(self) -> str:
        """Digest of the columns' names, types and ids, regardless of nullability."""
        fields = [[column["name"], optional(column["type"], deep=True)] for column in self.columns]
        return hashlib.sha256(json.dumps([fields, self.ids]).encode()).hexdigest()[:16]

    @property
    def refused(self) -> list[Note]:
        """Notes on the parts that prevent a migration."""
        return [item for item in self.items if item.status is Status.REFUSED]


FILE_SIZE = "target file size"
"""Bytes, as a whole number."""
RETENTION = "retention of removed files"
"""Milliseconds, as a whole number."""
COMMON = frozenset({FILE_SIZE, RETENTION})
"""Properties that several formats have, under names of their own."""

COMMENT = "comment"
"""Key of a column's comment in its metadata, and of a table's comment in its properties."""
OWN = frozenset(f"zadapter.{key}" for key in ("adopted", "columns", "curve", "layout-id", "source"))
"""Properties by which zadapter describes a table's layout and source; the new table has its own."""
_OF_SPARK = {
    COMMENT, "collation", "external", "is_managed_location", "location", "owner", "provider",
}  # fmt: skip
"""Spark's reserved names of properties (``CatalogV2Util.TABLE_RESERVED_PROPERTIES``)."""
_INSIDE = {"array": ("elementType",), "map": ("keyType", "valueType")}


def plain(fields: list[Json]) -> tuple[Json, ...]:
    """Return Spark's fields without engine metadata; comments are kept."""
    return tuple(_plain(f) for f in fields)


def _plain(field: Json) -> Json:
    metadata = field.get("metadata") or {}
    kept = {COMMENT: metadata[COMMENT]} if COMMENT in metadata else {}
    return field | {"type": _plain_type(field["type"]), "metadata": kept}


def _plain_type(type_: Any) -> Any:
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        return {"type": "struct", "fields": [_plain(f) for f in type_["fields"]]}
    if type_["type"] in _INSIDE:
        return type_ | {name: _plain_type(type_[name]) for name in _INSIDE[type_["type"]]}
    return type_["sqlType"] if type_["type"] == "udt" else type_


def convert_types(definition: Definition, change: Callable[[str], str | None]) -> Definition:
    """Convert each atomic type with *change*, and add notes on changed and refused types.

    Args:
        definition: A table.
        change: Maps a type in Spark's JSON notation to the type that represents it, which may be
            the same; None: the format has no such type.
    """
    items: list[Note] = []
    columns = []
    for column in definition.columns:
        types: dict[str, str | None] = {atom: change(atom) for atom in atoms(column["type"])}
        part = f"column {join((column['name'],))}"
        items += [
            Note(part, Status.REFUSED, f"type {old} is not supported; cast or omit the column")
            if new is None
            else Note(part, Status.TRANSLATED, f"{old} becomes {new}")
            for old, new in types.items()
            if new != old
        ]
        new_types = {old: new or old for old, new in types.items()}
        columns.append(column | {"type": _convert_type(column["type"], new_types)})
    return replace(definition, columns=tuple(columns)).with_items(*items)


def atoms(type_: Any) -> Iterator[str]:
    """Yield the atomic types within a type, in Spark's JSON notation."""
    if isinstance(type_, str):
        yield type_
        return
    inner = [f["type"] for f in type_.get("fields", ())]
    inner += [type_[name] for name in _INSIDE.get(type_["type"], ())]
    for inner_type in inner:
        yield from atoms(inner_type)


def _convert_type(type_: Any, new_types: Mapping[str, str]) -> Any:
    if isinstance(type_, str):
        return new_types[type_]
    changed = {
        name: _convert_type(type_[name], new_types) for name in _INSIDE.get(type_["type"], ())
    }
    if "fields" in type_:
        changed["fields"] = [
            f | {"type": _convert_type(f["type"], new_types)} for f in type_["fields"]
        ]
    return type_ | changed


def optional(type_: Any, *, deep: bool = False) -> Any:
    """Return a type with nullable array elements and map values, and nullable fields in them.

    Args:
        type_: A type.
        deep: Whether the type is nested in an array or a map.
    """
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        inner = [
            f | {"type": optional(f["type"], deep=deep), "nullable": deep or f["nullable"]}
            for f in type_["fields"]
        ]
        return type_ | {"fields": inner}
    within = {name: optional(type_[name], deep=True) for name in _INSIDE[type_["type"]]}
    null = {"containsNull": True} if type_["type"] == "array" else {"valueContainsNull": True}
    return type_ | within | null


def without_partition(definition: Definition, dropped: set[str], reason: str) -> Definition:
    """Return *definition* without the partition fields *dropped*, with a note on each."""
    kept = tuple(f for f in definition.partition if f.name not in dropped)
    removed = [f for f in definition.partition if f.name in dropped]
    items = [
        Note(
            f"partition field {_describe_field(f)}",
            Status.TRANSLATED,
            f"not a partition field: {reason}",
        )
        for f in removed
    ]
    return replace(definition, partition=kept).with_items(*items)


def adapt_to_folders(definition: Definition) -> Definition:
    """Return *definition* for formats whose writers name folders after partition values.

    Files do not contain the columns in folder names, but need at least one column.
    """
    unrepresentable = {f.name for f in definition.partition} & definition.unrepresentable
    reason = "a folder name cannot represent one of its values"
    kept = without_partition(definition, unrepresentable, reason)
    if len(kept.partition) < len(kept.columns) or not kept.partition:
        return kept
    return without_partition(kept, {kept.partition[-1].name}, "files need at least one column")


def owner_of(key: str) -> str | None:
    """Return who reserves the name of a property in tables of every format; None: nobody."""
    if key in COMMON or key.startswith("zadapter."):
        return "zadapter"
    return "Spark" if key in _OF_SPARK else None


def note_reserved(key: str, owner: str | None) -> Note:
    """Return the note that a property is not carried, because of its name."""
    return Note(f"property {key}", Status.LOST, f"its name is reserved by {owner}")


def with_users_properties(definition: Definition, owner: Callable[[str], str | None]) -> Definition:
    """Return *definition* without properties of reserved names, and with a note on each of them.

    Args:
        definition: A table of another format.
        owner: Returns who reserves a name in the new format; common properties stay.
    """
    owners = {key: owner(key) for key in sorted(definition.properties.keys() - COMMON)}
    notes = (note_reserved(key, by) for key, by in owners.items() if by is not None)
    kept = {k: v for k, v in definition.properties.items() if owners.get(k) is None}
    return replace(definition, properties=kept).with_items(*notes)


def storage_type(type_: str) -> str | None:
    """Return the type that represents *type_* in files that Spark writes, or None."""
    if type_.startswith(("varchar", "char")):
        return "string"
    return type_ if find_by_name(type_) is not None else None


def _describe_field(partition_field: PartitionField) -> str:
    source = join(partition_field.source)
    return (
        source
        if partition_field.transform == "identity"
        else f"{partition_field.transform}({source})"
    )


def note_carried(before: Definition, definition: Definition) -> list[Note]:
    """Return notes on the parts that are carried unchanged.

    Args:
        before: The old table.
        definition: The new one.
    """
    items = [
        Note(
            show_count(len(definition.columns), "columns"),
            Status.CARRIED,
            "names, order, nullability",
        )
    ]
    commented = sum(COMMENT in f["metadata"] for f in definition.columns)
    if commented:
        items.append(Note(f"{commented} column comments", Status.CARRIED))
    cut_by = [f for f in before.partition if f in definition.partition]
    items += [Note(f"partition field {_describe_field(f)}", Status.CARRIED) for f in cut_by]
    lost = {item.what for item in definition.items}
    properties = [Note(f"property {key}", Status.CARRIED) for key in sorted(before.properties)]
    items += [item for item in properties if item.what not in lost]
    return items + ([Note("table comment", Status.CARRIED)] if definition.comment else [])


def check(definition: Definition, table: str, format_: str) -> None:
    """Refuse a definition with parts that a format cannot represent.

    Raises:
        UnsupportedError: The format does not support some parts; the message lists the first ones.
    """
    if definition.refused:
        reasons = abridge([f"{item.what}: {item.how}" for item in definition.refused], "; ")
        raise UnsupportedError(f"{table} cannot be migrated to {format_}: {reasons}")
