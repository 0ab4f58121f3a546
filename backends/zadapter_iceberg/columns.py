"""Columns and partition fields of an Iceberg table."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from zadapter.base.names import Parts, quote
from zadapter.errors import UnsupportedError

FUNCTIONS = "zadapter_iceberg"
"""Catalog that provides Iceberg's partition transforms as Spark functions."""

_PARAMETER = re.compile(r"(bucket|truncate)\[(\d+)\]")
_TIME_TRANSFORMS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


class Column(NamedTuple):
    """Column of a table.

    Attributes:
        id: Field id.
        type: Iceberg type as in the spec; nested types are ``struct``, ``list`` or ``map`` alone.
    """

    id: int
    type: str


def columns(schema: Mapping[str, Any]) -> dict[Parts, Column]:
    """Return all columns and struct fields by name.

    Args:
        schema: Schema in the spec's JSON serialization (Appendix C), parsed.
    """
    return dict(_columns(schema, ()))


def _columns(struct: Mapping[str, Any], parent: Parts) -> Iterator[tuple[Parts, Column]]:
    for field in struct["fields"]:
        parts, type_ = (*parent, field["name"]), field["type"]
        type_name = type_ if isinstance(type_, str) else type_["type"]
        yield parts, Column(field["id"], type_name)
        if type_name == "struct":
            yield from _columns(type_, parts)


class Field(NamedTuple):
    """Partition field.

    Attributes:
        name: Name, which equals a column's name only for an identity transform of that column.
        source: Source column.
        expression: Spark SQL expression that computes its value.
    """

    name: str
    source: Parts
    expression: str


def fields(spec: Mapping[str, Any], table: Mapping[Parts, Column]) -> list[Field]:
    """Return the fields of a partition spec, except those with the void transform.

    Args:
        spec: Partition spec in the spec's JSON serialization (Appendix C), parsed.
        table: The table's columns.

    Raises:
        UnsupportedError: A transform is unknown, its source column was dropped, or Spark cannot
            compute it, as for a uuid.
    """
    field_ids = {column.id: parts for parts, column in table.items()}
    partition_fields = []
    for field in spec["fields"]:
        source = field_ids.get(field["source-id"])
        if field["transform"] == "void":
            continue
        if source is None:
            raise UnsupportedError(
                f"the source column of partition field {field['name']!r} was dropped; "
                "run ALTER TABLE ... DROP PARTITION FIELD first"
            )
        if table[source].type == "uuid" and field["transform"] != "identity":
            raise UnsupportedError(
                f"partition field {field['name']!r} transforms a uuid, which Spark's functions "
                "treat as a string"
            )
        expression = _expression(field["name"], field["transform"], quote(source))
        partition_fields.append(Field(field["name"], source, expression))
    return partition_fields


def _expression(name: str, transform: str, source: str) -> str:
    if transform == "identity":
        return source
    if transform in _TIME_TRANSFORMS:
        return f"{FUNCTIONS}.system.{_TIME_TRANSFORMS[transform]}({source})"
    parameter = _PARAMETER.fullmatch(transform)
    if parameter is None:
        raise UnsupportedError(f"partition field {name!r} has the unknown transform {transform!r}")
    return f"{FUNCTIONS}.system.{parameter[1]}({parameter[2]}, {source})"
