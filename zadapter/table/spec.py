"""What a table is besides its rows, in no format's own words, and what becomes of it elsewhere."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from zadapter.base.names import Parts, join
from zadapter.base.secrets import mask_fields
from zadapter.errors import UnsupportedError

Json = dict[str, Any]
"""A type or a field, as ``StructType.json`` of Spark writes it, parsed."""


class Status(str, Enum):
    """What becomes of a part of a table in another format."""

    CARRIED = "carried"
    TRANSLATED = "translated"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Note:
    """A part of a table, and what becomes of it."""

    what: str
    status: Status
    how: str = ""

    def __post_init__(self) -> None:
        mask_fields(self)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """What files are cut by.

    Attributes:
        name: Name of its values: that of a column, or of what is made of one.
        source: The column.
        transform: As the Iceberg spec writes it: ``identity``, ``day``, ``bucket[16]``, …
    """

    name: str
    source: Parts
    transform: str = "identity"


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A table besides its rows."""

    columns: tuple[Json, ...]
    """Spark's fields: name, type, nullable, and of the metadata the comment only."""
    ids: tuple[str, ...] = ()
    """What the format knows its columns by, whatever their names."""
    partition: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those of the user, and those that all formats know, by the names in :data:`COMMON`."""
    comment: str | None = None
    computed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Columns that are made of others, with their expressions in Spark's SQL."""
    unspeakable: frozenset[str] = frozenset()
    """Partition fields that have values which no folder's name can say."""
    whole: bool = False
    """Whether files hold the columns that they are cut by, too."""
    renamed: str | None = None
    """Why columns cannot be found in the files by their names; None: they can."""
    items: tuple[Note, ...] = ()
    """What became of the rest on the way here."""

    def with_items(self, *items: Note) -> "Definition":
        """Return it with more to say."""
        return replace(self, items=(*self.items, *items))

    @property
    def digest(self) -> str:
        """What tells whether columns are still the same, whatever else is said of them."""
        said = [[each["name"], optional(each["type"], deep=True)] for each in self.columns]
        return hashlib.sha256(json.dumps([said, self.ids]).encode()).hexdigest()[:16]

    @property
    def refused(self) -> list[Note]:
        """What forbids to go on."""
        return [item for item in self.items if item.status is Status.REFUSED]


FILE_SIZE = "target file size"
"""Bytes, as a whole number."""
RETENTION = "retention of removed files"
"""Milliseconds, as a whole number."""
COMMON = frozenset({FILE_SIZE, RETENTION})
"""Properties that more than one format has, each by a name of its own."""

COMMENT = "comment"
"""Where Spark keeps a column's comment, in a field's metadata."""
_STORED = {
    "boolean", "byte", "short", "integer", "long", "float", "double", "date",
    "timestamp", "timestamp_ntz", "string", "binary",
}  # fmt: skip
_INSIDE = {"array": ("elementType",), "map": ("keyType", "valueType")}


def plain(fields: list[Json]) -> tuple[Json, ...]:
    """Return Spark's fields without what engines note in them, comments aside."""
    return tuple(_plain(each) for each in fields)


def _plain(said: Json) -> Json:
    metadata = said.get("metadata") or {}
    kept = {COMMENT: metadata[COMMENT]} if COMMENT in metadata else {}
    return said | {"type": _plain_type(said["type"]), "metadata": kept}


def _plain_type(type_: Any) -> Any:
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        return {"type": "struct", "fields": [_plain(each) for each in type_["fields"]]}
    if type_["type"] in _INSIDE:
        return type_ | {name: _plain_type(type_[name]) for name in _INSIDE[type_["type"]]}
    return type_["sqlType"] if type_["type"] == "udt" else type_


def retyped(definition: Definition, change: Callable[[str], str | None]) -> Definition:
    """Have *change* say each atomic type anew, and note what it has changed or refused.

    Args:
        definition: A table.
        change: Takes a type as Spark's JSON has it, and returns what stands for it: the same, or
            another; None: the format has none.
    """
    items: list[Note] = []
    columns = []
    for said in definition.columns:
        types: dict[str, str | None] = {each: change(each) for each in atoms(said["type"])}
        what = f"column {join((said['name'],))}"
        items += [
            Note(what, Status.REFUSED, f"there is no type for {old}; cast it, or leave it out")
            if new is None
            else Note(what, Status.TRANSLATED, f"{old} becomes {new}")
            for old, new in types.items()
            if new != old
        ]
        known = {old: new or old for old, new in types.items()}
        columns.append(said | {"type": _changed(said["type"], known)})
    return replace(definition, columns=tuple(columns)).with_items(*items)


def atoms(type_: Any) -> Iterator[str]:
    """Yield the atomic types within a type, all as Spark's JSON has them."""
    if isinstance(type_, str):
        yield type_
        return
    inner = [each["type"] for each in type_.get("fields", ())]
    inner += [type_[name] for name in _INSIDE.get(type_["type"], ())]
    for each in inner:
        yield from atoms(each)


def _changed(type_: Any, known: Mapping[str, str]) -> Any:
    if isinstance(type_, str):
        return known[type_]
    changed = {name: _changed(type_[name], known) for name in _INSIDE.get(type_["type"], ())}
    if "fields" in type_:
        changed["fields"] = [
            each | {"type": _changed(each["type"], known)} for each in type_["fields"]
        ]
    return type_ | changed


def optional(type_: Any, *, deep: bool = False) -> Any:
    """Return a type in which elements of arrays, values of maps, and what is in them may be null.

    Args:
        type_: A type.
        deep: Whether it lies within an array or a map.
    """
    if isinstance(type_, str):
        return type_
    if type_["type"] == "struct":
        inner = [
            each | {"type": optional(each["type"], deep=deep), "nullable": deep or each["nullable"]}
            for each in type_["fields"]
        ]
        return type_ | {"fields": inner}
    within = {name: optional(type_[name], deep=True) for name in _INSIDE[type_["type"]]}
    null = {"containsNull": True} if type_["type"] == "array" else {"valueContainsNull": True}
    return type_ | within | null


def without_partition(definition: Definition, dropped: set[str], why: str) -> Definition:
    """Return *definition* without the partition fields *dropped*, and say so."""
    kept = tuple(each for each in definition.partition if each.name not in dropped)
    gone = [each for each in definition.partition if each.name in dropped]
    items = [
        Note(f"partitions by {_shown(each)}", Status.TRANSLATED, f"files are not cut by it: {why}")
        for each in gone
    ]
    return replace(definition, partition=kept).with_items(*items)


def in_folders(definition: Definition) -> Definition:
    """Return *definition* for formats whose writers name folders after partition values.

    Columns that folders are named after are not in the files, which need one at least.
    """
    unsaid = {each.name for each in definition.partition} & definition.unspeakable
    told = "the name of a folder cannot say one of its values"
    kept = without_partition(definition, unsaid, told)
    if len(kept.partition) < len(kept.columns) or not kept.partition:
        return kept
    return without_partition(kept, {kept.partition[-1].name}, "files need a column of their own")


def stored(type_: str) -> str | None:
    """Return the type that stands for one of Spark's in files that Spark writes, if one does."""
    if type_.startswith(("varchar", "char")):
        return "string"
    return type_ if type_ in _STORED or type_.startswith("decimal") else None


def _shown(each: PartitionField) -> str:
    source = join(each.source)
    return source if each.transform == "identity" else f"{each.transform}({source})"


def carried(before: Definition, definition: Definition) -> list[Note]:
    """Return what is carried as it is, for those who look at the whole.

    Args:
        before: The old table.
        definition: The new one.
    """
    items = [
        Note(f"{len(definition.columns)} columns", Status.CARRIED, "names, order, nullability")
    ]
    commented = sum(COMMENT in each["metadata"] for each in definition.columns)
    if commented:
        items.append(Note(f"{commented} comments of columns", Status.CARRIED))
    cut_by = [each for each in before.partition if each in definition.partition]
    items += [Note(f"partitions by {_shown(each)}", Status.CARRIED) for each in cut_by]
    lost = {item.what for item in definition.items}
    properties = [f"property {key}" for key in sorted(before.properties)]
    items += [Note(what, Status.CARRIED) for what in properties if what not in lost]
    return items + ([Note("comment of the table", Status.CARRIED)] if definition.comment else [])


def check(definition: Definition, table: str, format_: str) -> None:
    """Refuse what a format cannot hold.

    Raises:
        UnsupportedError: Something is refused; all of it is listed.
    """
    if definition.refused:
        why = "; ".join(f"{item.what}: {item.how}" for item in definition.refused)
        raise UnsupportedError(f"{table} cannot become a table of {format_}: {why}")
