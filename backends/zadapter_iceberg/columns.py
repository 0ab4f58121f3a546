"""An Iceberg table's columns: their ids, and the partition fields that are made of them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from zadapter.base.names import Parts, quote
from zadapter.errors import UnsupportedError

FUNCTIONS = "zadapter_iceberg"
"""Name of the catalog that is made to call Iceberg's transforms as functions of Spark."""

_PARAMETER = re.compile(r"(bucket|truncate)\[(\d+)\]")
_TIMES = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


class Column(NamedTuple):
    """A column.

    Attributes:
        id: Its field id.
        type: Its Iceberg type as the spec writes it, ``struct``, ``list`` and ``map`` by the word.
    """

    id: int
    type: str


def columns(schema: Mapping[str, Any]) -> dict[Parts, Column]:
    """Return every column and every field of a struct.

    Args:
        schema: A schema in the spec's JSON serialisation (Appendix C), parsed.
    """
    return dict(_columns(schema, ()))


def _columns(struct: Mapping[str, Any], above: Parts) -> Iterator[tuple[Parts, Column]]:
    for field in struct["fields"]:
        parts, type_ = (*above, field["name"]), field["type"]
        word = type_ if isinstance(type_, str) else type_["type"]
        yield parts, Column(field["id"], word)
        if word == "struct":
            yield from _columns(type_, parts)


class Field(NamedTuple):
    """A partition field.

    Attributes:
        name: Its name, which no column has but the one it is identical to.
        source: Its source column.
        expression: How Spark computes it.
    """

    name: str
    source: Parts
    expression: str


def fields(spec: Mapping[str, Any], table: Mapping[Parts, Column]) -> list[Field]:
    """Return the fields of a partition spec, without those that are void.

    Args:
        spec: A partition spec in the spec's JSON serialisation (Appendix C), parsed.
        table: The table's columns.

    Raises:
        UnsupportedError: A transform is unknown, or its source column is gone.
    """
    field_ids = {column.id: parts for parts, column in table.items()}
    found = []
    for field in spec["fields"]:
        source = field_ids.get(field["source-id"])
        if field["transform"] == "void":
            continue
        if source is None:
            raise UnsupportedError(
                f"partition field {field['name']!r} is made of a column that was dropped; "
                "ALTER TABLE … DROP PARTITION FIELD first"
            )
        if table[source].type == "uuid" and field["transform"] != "identity":
            raise UnsupportedError(
                f"partition field {field['name']!r} is made of a uuid, which Spark's functions "
                "take for a text"
            )
        expression = _expression(field["name"], field["transform"], quote(source))
        found.append(Field(field["name"], source, expression))
    return found


def _expression(name: str, transform: str, source: str) -> str:
    if transform == "identity":
        return source
    if transform in _TIMES:
        return f"{FUNCTIONS}.system.{_TIMES[transform]}({source})"
    parameter = _PARAMETER.fullmatch(transform)
    if parameter is None:
        raise UnsupportedError(f"partition field {name!r} has the unknown transform {transform!r}")
    return f"{FUNCTIONS}.system.{parameter[1]}({parameter[2]}, {source})"
