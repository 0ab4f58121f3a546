"""Conversion of a condition that Spark has analysed and optimised to a predicate.

Spark resolves columns, inserts casts, folds constants and simplifies, under its own settings, time
zone and functions. The result is a tree of Catalyst expressions, which ``TreeNode.toJSON`` writes
as a list in pre-order. Some fifteen classes become predicates, all others :class:`Unknown`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from zadapter.base.key_types import BINARY, BOOLEAN, has_nan, has_zone, is_text, kind_of
from zadapter.base.names import NameParts, join
from zadapter.predicates.predicate import (
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
_FUNCTION = "a function whose results bounds do not limit"
_COMPARISON = "a comparison of a column with something that is not a constant of its type"
_WHY = {
    "Cast": "a cast of a column, whose order bounds do not keep",
    **dict.fromkeys((*_OPERATORS, "In", "InSet"), _COMPARISON),
}
"""Why an expression is no predicate, by its class."""


class Expressions(Protocol):
    """Access to values that the JSON of an expression lacks; nodes are numbered in pre-order."""

    def value(self, number: int) -> Any:
        """Return the internal value of a literal: microseconds or bytes."""

    def members(self, number: int) -> tuple[list[str], bool] | None:
        """Return the non-null values of an ``InSet`` as text, and whether it contains null."""

    def escape(self, number: int) -> str:
        """Return the escape character of a ``Like``."""

    def sql(self, number: int) -> str:
        """Return a node as SQL."""


@dataclass(frozen=True, slots=True)
class _Column:
    parts: NameParts
    type: pa.DataType
    spark_type: Any
    """The type in Spark's JSON notation."""


@dataclass(frozen=True, slots=True)
class _Value:
    scalar: pa.Scalar

    @property
    def is_null(self) -> bool:
        return not self.scalar.is_valid


@dataclass(frozen=True, slots=True)
class _Opaque:
    """A node that is no predicate, and the innermost node in it that is none."""

    number: int
    inner: int
    name: str
    """The class of the innermost node."""


_Read = _Column | _Value | _Opaque | Predicate
"""Result of converting a node."""


@dataclass(frozen=True, slots=True)
class _NodeContext:
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
    def unknown(self) -> _Opaque:
        """The node as one that is no predicate, for the reason of the innermost such node."""
        for child in self.children:
            if isinstance(child, _Opaque):
                return replace(child, number=self.number)
        return _Opaque(self.number, self.number, self.name)

    def truth(self, read: _Read) -> Predicate:
        """Convert the result of a node to a predicate."""
        match read:
            case _Column(parts, type_, _) if kind_of(type_) is BOOLEAN:
                return Comparison(parts, "=", pa.scalar(value=True))
            case _Column(parts, _, _):
                return Unknown(join(parts))
            case _Value(scalar):
                is_truth_value = kind_of(scalar.type) is BOOLEAN or not scalar.is_valid
                return Constant(scalar.as_py()) if is_truth_value else Unknown(str(scalar))
            case _Opaque(number, inner, name):
                sql = self.expressions.sql
                return Unknown(sql(number), f"{sql(inner)}, {_WHY.get(name, _FUNCTION)}")
        return read


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
        context = _NodeContext(node, number, children, schema, expressions)
        stack.append(_READERS.get(context.name, _read_unknown)(context))
    return context.truth(stack.pop())


def _read_unknown(context: _NodeContext) -> _Read:
    return context.unknown


def _and(context: _NodeContext) -> _Read:
    return And(tuple(map(context.truth, context.children)))


def _or(context: _NodeContext) -> _Read:
    return Or(tuple(map(context.truth, context.children)))


def _not(context: _NodeContext) -> _Read:
    return Not(context.truth(context.children[0]))


def _attribute(context: _NodeContext) -> _Read:
    name, spark_type = context.node["name"], context.node["dataType"]
    field = _find_field(name, context.schema)
    if field is None:
        return context.unknown
    return _Column((field.name,), field.type, spark_type)


def _field(context: _NodeContext) -> _Read:
    (child,) = context.children
    if not isinstance(child, _Column) or not pa.types.is_struct(child.type):
        return context.unknown
    spark_field = child.spark_type["fields"][context.node["ordinal"]]
    field = _find_field(spark_field["name"], child.type)
    if field is None:
        return context.unknown
    return _Column((*child.parts, field.name), field.type, spark_field["type"])


def _find_field(name: str, fields: pa.Schema | pa.StructType) -> pa.Field | None:
    """Return a field by name, ignoring case if needed: Spark keeps the condition's spelling."""
    same = [field for field in fields if field.name == name]
    same = same or [field for field in fields if field.name.lower() == name.lower()]
    return same[0] if len(same) == 1 else None


def _literal(context: _NodeContext) -> _Read:
    type_, text = arrow_type(context.node["dataType"]), context.node["value"]
    if text is None:
        return _Value(pa.scalar(None, type_))
    if kind_of(type_) is BINARY or has_zone(type_):
        # JSON has the address of binary values, and ambiguous local times
        text = context.expressions.value(context.number)
    value = scalar_of(text, type_)
    return context.unknown if value is None else _Value(value)


def _comparison(context: _NodeContext) -> _Read:
    operator, (left, right) = _OPERATORS[context.name], context.children
    if isinstance(left, _Value):
        left, right, operator = right, left, _FLIPPED[operator]
    if not isinstance(left, _Column) or not isinstance(right, _Value):
        return context.unknown
    if right.is_null:
        return IsNull(left.parts) if operator == "<=>" else Constant(None)
    scalar = in_type(right.scalar, left.type)
    return context.unknown if scalar is None else Comparison(left.parts, operator, scalar)


def _in(context: _NodeContext) -> _Read:
    column, *listed = context.children
    if not isinstance(column, _Column):
        return context.unknown
    values = [value for value in listed if isinstance(value, _Value)]
    if len(values) < len(listed):
        return context.unknown
    scalars = [in_type(value.scalar, column.type) for value in values if not value.is_null]
    return _build_list(column, scalars, has_null=len(scalars) < len(values)) or context.unknown


def _in_set(context: _NodeContext) -> _Read:
    """Convert a longer list, whose values Spark keeps in internal form: dates as days."""
    (column,), members = context.children, context.expressions.members(context.number)
    if not isinstance(column, _Column) or members is None or kind_of(column.type) is BINARY:
        return context.unknown
    texts, has_null = members
    scalars = [scalar_of(text, column.type) for text in texts]
    return _build_list(column, scalars, has_null=has_null) or context.unknown


def _build_list(
    column: _Column, scalars: Sequence[pa.Scalar | None], *, has_null: bool
) -> In | None:
    """Return the list as a predicate, or None if a value has no match in Arrow."""
    converted = tuple(scalar for scalar in scalars if scalar is not None)
    return In(column.parts, converted, has_null) if len(converted) == len(scalars) else None


def _starts_with(context: _NodeContext) -> _Read:
    column, prefix = context.children
    if not isinstance(column, _Column) or not isinstance(prefix, _Value):
        return context.unknown
    if not is_text(column.type) or prefix.is_null:
        return context.unknown
    return StartsWith(column.parts, prefix.scalar.as_py())


def _like(context: _NodeContext) -> _Read:
    """Convert a pattern that Spark could not simplify; its prefix is a condition of its own."""
    begins = _starts_with(context)
    if not isinstance(begins, StartsWith):
        return context.unknown
    ends = _WILDCARDS + context.expressions.escape(context.number)
    prefix = re.split(f"[{re.escape(ends)}]", begins.prefix, maxsplit=1)[0]
    return And((StartsWith(begins.column, prefix), context.truth(context.unknown)))


def _is_null(context: _NodeContext) -> _Read:
    (child,) = context.children
    return IsNull(child.parts) if isinstance(child, _Column) else context.unknown


def _is_not_null(context: _NodeContext) -> _Read:
    (child,) = context.children
    return Not(IsNull(child.parts)) if isinstance(child, _Column) else context.unknown


def _is_nan(context: _NodeContext) -> _Read:
    """Convert a test for NaN, which is false for null."""
    (child,) = context.children
    if not isinstance(child, _Column) or not has_nan(child.type):
        return context.unknown
    return Comparison(child.parts, "<=>", pa.scalar(float("nan"), child.type))


_READERS: Mapping[str, Callable[[_NodeContext], _Read]] = {
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


def scalar_of(text: Any, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a Spark value to an Arrow scalar; None for types and values without a match."""
    kind = kind_of(type_)
    return None if kind is None else kind.text.literal(text, type_)


def in_type(scalar: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    """Return a value in a column's type, or None unless Spark compares both without a cast."""
    if is_text(scalar.type) and is_text(type_):
        return scalar.cast(type_)
    return scalar if scalar.type == type_ else None
