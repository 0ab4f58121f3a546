"""Conversion of a condition that Spark has analysed and optimised to a predicate.

Spark resolves columns, inserts casts, folds constants and simplifies, under its own settings, time
zone and functions. The result is a tree of Catalyst expressions, which ``TreeNode.toJSON`` writes
as a list in pre-order. Some fifteen classes become predicates, all others :class:`Unknown`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from zadapter.base.names import Parts
from zadapter.filters.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from zadapter.filters.spark_literals import in_type, scalar_of
from zadapter.table.spark_schema import arrow_type

Node = Mapping[str, Any]
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_WILDCARDS = "%_"


class Expressions(Protocol):
    """Access to values that the JSON of an expression lacks; nodes are numbered in pre-order."""

    def value(self, number: int) -> Any:
        """Return the internal value of a literal: microseconds or bytes."""

    def members(self, number: int) -> tuple[list[str], bool] | None:
        """Return the non-null values of an ``InSet`` as text, and whether it contains null."""

    def escape(self, number: int) -> str:
        """Return the escape character of a ``Like``."""


@dataclass(frozen=True, slots=True)
class _Column:
    parts: Parts
    type: pa.DataType
    spark_type: Any
    """The type in Spark's JSON notation."""


@dataclass(frozen=True, slots=True)
class _Value:
    scalar: pa.Scalar

    @property
    def is_null(self) -> bool:
        return not self.scalar.is_valid


_Read = _Column | _Value | Predicate
"""Result of converting a node; unsupported nodes become Unknown."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node with its converted children."""

    node: Node
    number: int
    children: tuple[_Read, ...]
    schema: pa.Schema
    expressions: Expressions

    @property
    def name(self) -> str:
        """The class name without its package."""
        return str(self.node["class"]).removeprefix(_EXPRESSIONS)

    @property
    def unknown(self) -> Unknown:
        """The node as an unknown condition."""
        return Unknown(self.name)


def predicate(nodes: Sequence[Node], schema: pa.Schema, expressions: Expressions) -> Predicate:
    """Convert a condition to a predicate.

    Args:
        nodes: Parsed ``toJSON`` of the condition.
        schema: The table's columns, as Spark names them.
        expressions: Access to values that JSON cannot hold.
    """
    stack: list[_Read] = []
    for number in range(len(nodes) - 1, -1, -1):  # children before their parents, no recursion
        node = nodes[number]
        children = tuple(stack.pop() for _ in range(node["num-children"]))
        place = _Place(node, number, children, schema, expressions)
        stack.append(_READERS.get(place.name, _unknown)(place))
    return _truth(stack.pop())


def _unknown(place: _Place) -> _Read:
    return place.unknown


def _truth(read: _Read) -> Predicate:
    """Convert the result of a node to a predicate."""
    match read:
        case _Column(parts, type_, _):
            known = pa.types.is_boolean(type_)
            return Comparison(parts, "=", pa.scalar(value=True)) if known else Unknown(str(parts))
        case _Value(scalar):
            known = pa.types.is_boolean(scalar.type) or not scalar.is_valid
            return Constant(scalar.as_py()) if known else Unknown(str(scalar))
    return read


def _and(place: _Place) -> _Read:
    return And(tuple(map(_truth, place.children)))


def _or(place: _Place) -> _Read:
    return Or(tuple(map(_truth, place.children)))


def _not(place: _Place) -> _Read:
    return Not(_truth(place.children[0]))


def _attribute(place: _Place) -> _Read:
    name, spark_type = place.node["name"], place.node["dataType"]
    field = _named(name, place.schema)
    if field is None:
        return place.unknown
    return _Column((field.name,), field.type, spark_type)


def _field(place: _Place) -> _Read:
    (child,) = place.children
    if not isinstance(child, _Column) or not pa.types.is_struct(child.type):
        return place.unknown
    spark_field = child.spark_type["fields"][place.node["ordinal"]]
    field = _named(spark_field["name"], child.type)
    if field is None:
        return place.unknown
    return _Column((*child.parts, field.name), field.type, spark_field["type"])


def _named(name: str, fields: pa.Schema | pa.StructType) -> pa.Field | None:
    """Return a field by name, ignoring case if needed: Spark keeps the condition's spelling."""
    same = [field for field in fields if field.name == name]
    same = same or [field for field in fields if field.name.lower() == name.lower()]
    return same[0] if len(same) == 1 else None


def _literal(place: _Place) -> _Read:
    type_, text = arrow_type(place.node["dataType"]), place.node["value"]
    if text is None:
        return _Value(pa.scalar(None, type_))
    if pa.types.is_binary(type_) or (pa.types.is_timestamp(type_) and type_.tz is not None):
        # JSON has the address of binary values, and ambiguous local times
        text = place.expressions.value(place.number)
    value = scalar_of(text, type_)
    return place.unknown if value is None else _Value(value)


def _comparison(place: _Place) -> _Read:
    operator, (left, right) = _OPERATORS[place.name], place.children
    if isinstance(left, _Value):
        left, right, operator = right, left, _FLIPPED[operator]
    if not isinstance(left, _Column) or not isinstance(right, _Value):
        return place.unknown
    if right.is_null:
        return IsNull(left.parts) if operator == "<=>" else Constant(None)
    scalar = in_type(right.scalar, left.type)
    return place.unknown if scalar is None else Comparison(left.parts, operator, scalar)


def _in(place: _Place) -> _Read:
    column, *listed = place.children
    if not isinstance(column, _Column):
        return place.unknown
    values = [each for each in listed if isinstance(each, _Value)]
    if len(values) < len(listed):
        return place.unknown
    scalars = [in_type(each.scalar, column.type) for each in values if not each.is_null]
    return _listed(column, scalars, has_null=len(scalars) < len(values)) or place.unknown


def _in_set(place: _Place) -> _Read:
    """Convert a longer list, whose values Spark keeps in internal form: dates as days."""
    (column,), found = place.children, place.expressions.members(place.number)
    if not isinstance(column, _Column) or found is None or pa.types.is_binary(column.type):
        return place.unknown
    texts, has_null = found
    scalars = [scalar_of(text, column.type) for text in texts]
    return _listed(column, scalars, has_null=has_null) or place.unknown


def _listed(column: _Column, scalars: Sequence[pa.Scalar | None], *, has_null: bool) -> In | None:
    """Return the list as a predicate, or None if a value has no match in Arrow."""
    known = tuple(scalar for scalar in scalars if scalar is not None)
    return In(column.parts, known, has_null) if len(known) == len(scalars) else None


def _starts_with(place: _Place) -> _Read:
    column, prefix = place.children
    if not isinstance(column, _Column) or not isinstance(prefix, _Value):
        return place.unknown
    if not pa.types.is_string(column.type) or prefix.is_null:
        return place.unknown
    return StartsWith(column.parts, prefix.scalar.as_py())


def _like(place: _Place) -> _Read:
    """Convert a pattern that Spark could not simplify; its prefix is a condition of its own."""
    begins = _starts_with(place)
    if not isinstance(begins, StartsWith):
        return place.unknown
    ends = _WILDCARDS + place.expressions.escape(place.number)
    prefix = re.split(f"[{re.escape(ends)}]", begins.prefix, maxsplit=1)[0]
    return And((StartsWith(begins.column, prefix), place.unknown))


def _is_null(place: _Place) -> _Read:
    (child,) = place.children
    return IsNull(child.parts) if isinstance(child, _Column) else place.unknown


def _is_not_null(place: _Place) -> _Read:
    return Not(_truth(_is_null(place)))


def _is_nan(place: _Place) -> _Read:
    """Convert a test for NaN, which is false for null."""
    (child,) = place.children
    if not isinstance(child, _Column) or not pa.types.is_floating(child.type):
        return place.unknown
    return Comparison(child.parts, "<=>", pa.scalar(float("nan"), child.type))


_READERS: Mapping[str, Callable[[_Place], _Read]] = {
    "And": _and,
    "Or": _or,
    "Not": _not,
    "AttributeReference": _attribute,
    "GetStructField": _field,
    "Literal": _literal,
    "In": _in,
    "InSet": _in_set,
    "StartsWith": _starts_with,
    "Like": _like,
    "IsNull": _is_null,
    "IsNotNull": _is_not_null,
    "IsNaN": _is_nan,
    **dict.fromkeys(_OPERATORS, _comparison),
}
