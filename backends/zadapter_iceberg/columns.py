"""Columns and partition fields of an Iceberg table."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from zadapter.base.names import NameParts, join, quote
from zadapter.errors import UnsupportedError

FUNCTIONS = "zadapter_iceberg"
"""Catalog that provides Iceberg's partition transforms as Spark functions."""

_PARAMETER = re.compile(r"(bucket|truncate)\[(\d+)\]")
_UUID_BYTES = "unhex(replace({}, '-', ''))"
"""The bytes of a uuid, whose hash is that of the uuid (spec, Appendix B); Spark has its text."""
_TIME_TRANSFORMS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


class Column(NamedTuple):
    """Column of a table.

    Attributes:
        id: Field id.
        type: Iceberg type as in the spec; nested types are ``struct``, ``list`` or ``map`` alone.
    """

    id: int
    type: str


def columns(schema: Mapping[str, Any]) -> dict[NameParts, Column]:
    """Return all columns and struct fields by name.

    Args:
        schema: Schema in the spec's JSON serialization (Appendix C), parsed.
    """
    return dict(_flatten_columns(schema, ()))


def _flatten_columns(
    struct: Mapping[str, Any], parent: NameParts
) -> Iterator[tuple[NameParts, Column]]:
    for field in struct["fields"]:
        parts, type_ = (*parent, field["name"]), field["type"]
        type_name = type_ if isinstance(type_, str) else type_["type"]
        yield parts, Column(field["id"], type_name)
        if type_name == "struct":
            yield from _flatten_columns(type_, parts)


def check_names(schema: Mapping[str, Any]) -> None:
    """Refuse names that Spark cannot tell apart, or Iceberg cannot write.

    Args:
        schema: Schema in the spec's JSON serialization (Appendix C), parsed.

    Raises:
        UnsupportedError: A name is empty, or two differ only in case.
    """
    seen: dict[NameParts, NameParts] = {}
    for parts in _names(schema, ()):
        if not parts[-1]:
            raise UnsupportedError(
                f"column {join(parts)} has an empty name, which Iceberg cannot write; rename it"
            )
        twin = seen.setdefault(tuple(map(str.lower, parts)), parts)
        if twin != parts:
            raise UnsupportedError(
                f"columns {join(twin)} and {join(parts)} differ only in case, so Spark cannot tell "
                "them apart; rename one"
            )


def _names(type_: Any, parent: NameParts) -> Iterator[NameParts]:
    """Yield the name of each field at any depth; elements, keys and values are called so."""
    if isinstance(type_, str):
        return
    children = [(field["name"], field["type"]) for field in type_.get("fields", ())]
    children += [(key, type_[key]) for key in ("element", "key", "value") if key in type_]
    for name, child in children:
        yield (*parent, name)
        yield from _names(child, (*parent, name))


def types(type_: Any, parts: NameParts = ()) -> Iterator[tuple[NameParts, str]]:
    """Yield the name of each type within a type, without parameters, with the column's parts.

    Args:
        type_: Schema or type in the spec's JSON serialization (Appendix C), parsed.
        parts: Parts of the column.
    """
    if isinstance(type_, str):
        yield parts, re.split(r"\W", type_, maxsplit=1)[0]
        return
    yield parts, type_["type"]
    for field in type_.get("fields", ()):
        yield from types(field["type"], (*parts, field["name"]))
    for within in ("element", "key", "value"):
        if within in type_:
            yield from types(type_[within], (*parts, within))


class Field(NamedTuple):
    """Partition field.

    Attributes:
        name: Name, which equals a column's name only for an identity transform of that column.
        source: Source column.
        expression: Spark SQL expression that computes its value.
        id: Field id.
        position: Position in the spec.
        is_uuid: Whether its values are uuids.
    """

    name: str
    source: NameParts
    expression: str
    id: int
    position: int
    is_uuid: bool


def fields(spec: Mapping[str, Any], table: Mapping[NameParts, Column]) -> list[Field]:
    """Return the fields of a partition spec, except those with the void transform.

    Args:
        spec: Partition spec in the spec's JSON serialization (Appendix C), parsed.
        table: The table's columns.

    Raises:
        UnsupportedError: A transform is unknown, or its source column was dropped.
    """
    columns_by_id = {column.id: parts for parts, column in table.items()}
    partition_fields = []
    for position, field in enumerate(spec["fields"]):
        name, transform = field["name"], field["transform"]
        if transform == "void":
            continue
        source = columns_by_id.get(field["source-id"])
        if source is None:
            raise UnsupportedError(
                f"the source column of partition field {name!r} was dropped; "
                "run ALTER TABLE ... DROP PARTITION FIELD first"
            )
        is_uuid = table[source].type == "uuid"
        column = _UUID_BYTES.format(quote(source)) if is_uuid else quote(source)
        partition_fields.append(
            Field(
                name=name,
                source=source,
                expression=_expression(name, transform, quote(source), column),
                id=field["field-id"],
                position=position,
                is_uuid=is_uuid and transform == "identity",
            )
        )
    return partition_fields


def _expression(name: str, transform: str, source: str, transformed: str) -> str:
    if transform == "identity":
        return source
    if transform in _TIME_TRANSFORMS:
        return f"{FUNCTIONS}.system.{_TIME_TRANSFORMS[transform]}({source})"
    parameter = _PARAMETER.fullmatch(transform)
    if parameter is None:
        raise UnsupportedError(
            f"partition field {name!r} has the unknown transform {transform!r}; run ALTER TABLE "
            "... DROP PARTITION FIELD first"
        )
    return f"{FUNCTIONS}.system.{parameter[1]}({parameter[2]}, {transformed})"
