"""How values of each kind of key type are written as text.

Cuts are passed as JSON: to the layout stored with a table, and to Spark as one literal that is cast
to the column's type. The text must therefore be exact, and Spark must read it as the same value.
Floats are written with digits that round-trip, timestamps with a time zone in UTC, and binary as
hexadecimal (Spark compares such columns as ``hex(column)``, which preserves their order).

A form is a column of the table in :mod:`zadapter.base.key_types`.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Texts = Sequence[str | None]


class Form(NamedTuple):
    """The text of values of a kind."""

    write: Callable[[pa.Array], list[str | None]]
    """Convert values to text; nulls become None."""
    read: Callable[[Texts, pa.DataType], pa.Array]
    """Convert text that :attr:`write` has written to values of a type."""
    literal: Callable[[Any, pa.DataType], pa.Scalar | None]
    """Convert a literal in the JSON of Spark's expressions, or in bytes for binary values. Spark
    writes timestamps as microseconds, and dates as such or as days. None: it has no match."""


def _plain(values: pa.Array) -> list[str | None]:
    return [None if v is None else str(v) for v in values.to_pylist()]


def _cast(written: Texts, type_: pa.DataType) -> pa.Array:
    return pc.cast(pa.array(written, pa.string()), type_)


def _boolean_texts(values: pa.Array) -> list[str | None]:
    return [None if v is None else str(v).lower() for v in values.to_pylist()]


def _booleans(written: Texts, type_: pa.DataType) -> pa.Array:
    return pa.array([None if t is None else t == "true" for t in written], type_)


def _float_texts(values: pa.Array) -> list[str | None]:
    short = pa.types.is_float32(values.type)
    return [None if v is None else _float_text(v, short=short) for v in values.to_pylist()]


def _float_text(value: float, *, short: bool) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if short else repr(value)


def _floats(written: Texts, type_: pa.DataType) -> pa.Array:
    return pa.array([None if t is None else float(t) for t in written], type_)


def _decimal_texts(values: pa.Array) -> list[str | None]:
    return [None if v is None else format(v, "f") for v in values.to_pylist()]


def _hexadecimal(values: pa.Array) -> list[str | None]:
    return [None if v is None else v.hex().upper() for v in values.to_pylist()]


def _from_hexadecimal(written: Texts, type_: pa.DataType) -> pa.Array:
    return pa.array([None if t is None else bytes.fromhex(t) for t in written], type_)


def _date_texts(values: pa.Array) -> list[str | None]:
    return _calendar_texts(values.cast(pa.int32()).cast(pa.int64()), "D")


def _dates(written: Texts, type_: pa.DataType) -> pa.Array:
    return _since_epoch(written, "D").cast(pa.int32()).cast(type_)


def _timestamp_texts(values: pa.Array) -> list[str | None]:
    zone = "" if values.type.tz is None else "Z"
    written = _calendar_texts(values.cast(pa.int64()), values.type.unit)
    return [None if text is None else f"{text}{zone}" for text in written]


def _timestamps(written: Texts, type_: pa.DataType) -> pa.Array:
    plain = [None if text is None else text.removesuffix("Z") for text in written]
    return _since_epoch(plain, type_.unit).cast(type_)


_EARLY = re.compile(r"\A-(\d{1,3})-")


def _calendar_texts(integers: pa.Array, unit: str) -> list[str | None]:
    """Write numbers of a unit since 1970 in the proleptic Gregorian calendar."""
    since_epoch: Any = integers.fill_null(0).to_numpy(zero_copy_only=False)
    written = np.datetime_as_string(since_epoch.astype(f"datetime64[{unit}]"))
    return [
        _EARLY.sub(_four_digits, text) if valid else None
        for text, valid in zip(written, integers.is_valid().to_pylist(), strict=True)
    ]


def _four_digits(year: re.Match[str]) -> str:
    """Pad a year before 0 to Spark's four digits; numpy counts the sign as a digit."""
    return f"-{year[1]:0>4}-"


def _since_epoch(written: Texts, unit: str) -> pa.Array:
    moments = np.array(written, dtype=f"datetime64[{unit}]").astype(np.int64)
    return pa.array(moments, mask=np.array([text is None for text in written], bool))


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS = re.compile(r"-?\d+")
_REPLACED = "\ufffd"


def _boolean_literal(text: str, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(text == "true", type_)


def _integer_literal(text: str, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(int(text), type_)


def _float_literal(text: str, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(text).cast(type_)  # Python's own float would be rounded twice


def _decimal_literal(text: str, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(text), type_)


def _date_literal(text: str, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a date, or days since 1970; return None outside the years 1 to 9999."""
    if _DAYS.fullmatch(text):
        return pa.scalar(int(text), pa.int32()).cast(type_)
    if not _DATE.fullmatch(text) or text.startswith("0000"):
        return None
    return pa.scalar(date.fromisoformat(text), type_)


def _text_literal(text: str, type_: pa.DataType) -> pa.Scalar | None:
    # the replacement character may stand for bytes that are not UTF-8
    return None if _REPLACED in text else pa.scalar(text, type_)


def _binary_literal(value: Any, type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(bytes(value), type_)


BOOLEANS = Form(_boolean_texts, _booleans, _boolean_literal)
INTEGERS = Form(_plain, _cast, _integer_literal)
FLOATS = Form(_float_texts, _floats, _float_literal)
DECIMALS = Form(_decimal_texts, _cast, _decimal_literal)
DATES = Form(_date_texts, _dates, _date_literal)
TIMESTAMPS = Form(_timestamp_texts, _timestamps, _integer_literal)
TEXTS = Form(_plain, _cast, _text_literal)
HEXADECIMAL = Form(_hexadecimal, _from_hexadecimal, _binary_literal)
