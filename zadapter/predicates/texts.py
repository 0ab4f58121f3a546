"""Predicates as text for people, and why parts of them exclude no file."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import BINARY, has_zone, is_text, kind_of
from zadapter.base.names import join
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

SHOWN = 60
"""Maximum number of characters of a value."""
_LONGEST = 2 * SHOWN
"""Maximum number of characters of a condition."""
_LISTED = 5
"""Maximum number of values of a list."""


def text(predicate: Predicate) -> str:
    """Return a predicate as text that resembles SQL; long values and lists are cut."""
    match predicate:
        case And() | Or() | Not():
            return _format_combination(predicate)
        case Constant(value):
            return "NULL" if value is None else str(value).lower()
        case Unknown(sql):
            return _cut(sql)
        case leaf:
            return f"{join(leaf.column)} {_format_comparison(leaf)}"


def _format_combination(predicate: And | Or | Not) -> str:
    match predicate:
        case And(parts) | Or(parts):
            word = " AND " if isinstance(predicate, And) else " OR "
            return word.join(map(_inner, parts)) or str(isinstance(predicate, And)).lower()
        case Not(IsNull(column)):
            return f"{join(column)} IS NOT NULL"
        case Not(part):
            return f"NOT {_inner(part)}"


def _format_comparison(leaf: Comparison | In | StartsWith | IsNull) -> str:
    match leaf:
        case Comparison(_, op, value):
            return f"{op} {literal(value)}"
        case In(_, values):
            return f"IN ({_list(leaf, values)})"
        case StartsWith(_, prefix):
            return f"starts with {literal(pa.scalar(prefix))}"
        case IsNull():
            return "IS NULL"


def _inner(part: Predicate) -> str:
    return f"({text(part)})" if isinstance(part, And | Or) else text(part)


def _list(predicate: In, values: tuple[pa.Scalar, ...]) -> str:
    shown = list(map(literal, values[:_LISTED]))
    if len(values) > _LISTED:
        shown.append(f"... {len(values):,} values")
    return ", ".join([*shown, *(["NULL"] if predicate.has_null else [])])


def literal(value: pa.Scalar) -> str:
    """Return a value as text, texts in quotes."""
    shown = bounds_text(pa.array([value], value.type)).to_pylist()[0]
    return f"'{shown}'" if is_text(value.type) else str(shown)


def bounds_text(values: pa.Array) -> pa.Array:
    """Return values as texts, long ones cut."""
    if kind_of(values.type) is BINARY:
        return pa.array([None if v is None else v[: SHOWN // 2].hex() for v in values.to_pylist()],
                        pa.string())  # fmt: skip
    if has_zone(values.type):
        values = values.cast(pa.timestamp(values.type.unit))  # in UTC, without a zone's database
    return pc.utf8_slice_codeunits(values.cast(pa.string()), 0, SHOWN)


def conjuncts(predicate: Predicate) -> list[Predicate]:
    """Return the parts of a predicate that must all hold; none if it always holds."""
    pending, found = [predicate], list[Predicate]()
    while pending:
        match pending.pop():
            case And(parts):
                pending += reversed(parts)
            case Constant(value=True):
                pass
            case part:
                found.append(part)
    return found


def causes(predicate: Predicate) -> list[str]:
    """Return why parts of a predicate say nothing about files, once each."""
    return list(
        dict.fromkeys(
            _cut(found.why) if found.why else f"{_cut(found.sql)}, which is evaluated with the rows"
            for found in _find_unknown(predicate)
        )
    )


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."


def _find_unknown(predicate: Predicate) -> Iterator[Unknown]:
    pending = [predicate]
    while pending:
        match pending.pop():
            case And(parts) | Or(parts):
                pending += parts
            case Not(part):
                pending.append(part)
            case Unknown() as found:
                yield found
