"""Conversion of literals in Spark's JSON to Arrow."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS = re.compile(r"-?\d+")
_REPLACED = "\ufffd"


def scalar_of(text: Any, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a Spark value to an Arrow scalar; None for types and values without a match."""
    if pa.types.is_boolean(type_):
        return pa.scalar(text == "true", type_)
    if pa.types.is_date(type_):
        return _day(text, type_)
    if pa.types.is_floating(type_):
        return pa.scalar(text).cast(type_)  # Python's own float would be rounded twice
    if pa.types.is_string(type_) and _REPLACED in text:
        return None  # it may stand for bytes that are not UTF-8
    for is_type, read in _VALUES:
        if is_type(type_):
            return pa.scalar(read(text), type_)
    return None


def _day(text: str, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a date, or days since 1970; return None outside the years 1 to 9999."""
    if _DAYS.fullmatch(text):
        return pa.scalar(int(text), pa.int32()).cast(type_)
    if not _DATE.fullmatch(text) or text.startswith("0000"):
        return None
    return pa.scalar(date.fromisoformat(text), type_)


_VALUES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Any]], ...] = (
    (pa.types.is_integer, int),
    (pa.types.is_timestamp, int),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_string, str),
    (pa.types.is_binary, bytes),
)


def in_type(scalar: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    """Return a value in a column's type, or None unless Spark compares both without a cast."""
    if scalar.type == pa.string() and pa.types.is_large_string(type_):
        return scalar.cast(type_)
    return scalar if scalar.type == type_ else None
