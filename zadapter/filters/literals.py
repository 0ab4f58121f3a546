"""Constants in SQL text, typed as the column they are compared with.

Spark casts the column where a constant is of another family of types, and then the bounds of
the column say nothing about the outcome. So a constant that does not become a value of the
column's own type without loss has no scalar here.
"""

import math
import re
import struct
from datetime import date, datetime, time, tzinfo
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from zadapter.errors import UsageError
from zadapter.filters import datetimes

Value = bool | int | float | Decimal | str | bytes | date | datetime
"""A constant before it is typed; a decimal keeps the scale it is written with."""

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7]{2})|(.))", re.DOTALL)
_CONTROLS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_KEPT_FOR_LIKE = {"%": "\\%", "_": "\\_"}
_LAST_CHARACTER = 0x10FFFF

_INFINITIES = {"inf", "infinity", "+inf", "+infinity", "-inf", "-infinity"}
_INTEGER_BITS = {
    exp.DataType.Type.TINYINT: 8,
    exp.DataType.Type.SMALLINT: 16,
    exp.DataType.Type.INT: 32,
    exp.DataType.Type.BIGINT: 64,
}
_MAX_PRECISION = 38


def unquote(text: str) -> str:
    r"""Read a string in quotes as Spark does: ``\%`` and ``\_`` stay, other escapes go.

    >>> unquote(r"'a\tb\_c'")
    'a\tb\\_c'

    Raises:
        UsageError: An escape names no character.
    """
    plain = _ESCAPE.sub(_unescaped, text[1:-1])
    paired = plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return paired.encode(errors="replace").decode()  # a lone surrogate becomes a question mark


def _unescaped(match: re.Match[str]) -> str:
    short, long, octal, other = match.groups()
    if other is not None:
        return _CONTROLS.get(other) or _KEPT_FOR_LIKE.get(other, other)
    code = int(octal, 8) if octal else int(short or long, 16)
    if code > _LAST_CHARACTER:
        raise UsageError(f"{match[0]} is no character; the last one is \\U0010FFFF")
    return chr(code)


def scalar(node: exp.Expr, type_: pa.DataType, session: tzinfo | None) -> pa.Scalar | None:
    """Read *node* as a value of *type_*.

    Args:
        node: Any expression but NULL.
        type_: The column's type.
        session: The zone of timestamps that name none; None if it is not known.

    Returns:
        The value; None if *node* is no constant, or if Spark would not compare it as *type_*.
    """
    try:
        value = _value(node, session)
        return None if value is None else _typed(value, type_, session)
    except (ValueError, ArithmeticError):  # out of the type's range, or no such day
        return None


def _value(node: exp.Expr, session: tzinfo | None) -> Value | None:
    match node.unnest():
        case exp.Neg() as node:
            return _negative(_value(node.this, session))
        case exp.Literal() as node:
            return str(node.this) if node.is_string else _number(node.this)
        case exp.Boolean() as node:
            return bool(node.this)
        case exp.HexString() as node:
            return bytes.fromhex("0" * (len(node.this) % 2) + node.this)
        case exp.Cast() as node if not node.args.get("format"):
            return _cast(_value(node.this, session), node.to, session)
        case _:
            return None


def _number(text: str) -> int | float | Decimal:
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _negative(value: Value | None) -> Value | None:
    match value:
        case bool():
            return None
        case int() | float():
            return -value
        case Decimal():
            return value.copy_negate()  # unary minus would round to the context's precision
        case _:
            return None


def _cast(value: Value | None, to: exp.DataType, session: tzinfo | None) -> Value | None:
    if isinstance(value, str):
        return _parsed(value, to, session)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _converted(value, to)
    return None


def _converted(value: float | Decimal, to: exp.DataType) -> Value | None:
    match to.this:
        case exp.DataType.Type.DOUBLE:
            return float(value)
        case exp.DataType.Type.FLOAT:
            return _single(float(value))
        case exp.DataType.Type.DECIMAL:
            return _spelled_out(Decimal(value), to) if not isinstance(value, float) else None
        case _:
            bits = _INTEGER_BITS.get(to.this, 0)
            return value if isinstance(value, int) and value.bit_length() < bits else None


def _parsed(text: str, to: exp.DataType, session: tzinfo | None) -> Value | None:
    match to.this:
        case exp.DataType.Type.DATE:
            return datetimes.day(text)
        case exp.DataType.Type.TIMESTAMPTZ | exp.DataType.Type.TIMESTAMPLTZ:
            return datetimes.instant(text, session)
        case exp.DataType.Type.TIMESTAMPNTZ:
            return datetimes.wall_clock(text)
        case exp.DataType.Type.DOUBLE | exp.DataType.Type.FLOAT:
            return float(text) if text.lower() in {"nan", *_INFINITIES} else None
        case exp.DataType.Type.DECIMAL:
            return _spelled_out(Decimal(text), to)
        case _:
            return None


def _narrow(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def _single(value: float) -> float | None:
    """Round to single precision, unless *value* may owe its half to an earlier rounding."""
    below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
    return _narrow(value) if _narrow(below) == _narrow(above) else None


def _spelled_out(value: Decimal, to: exp.DataType) -> Decimal | None:
    """Accept a cast that only says which precision the number has, as ``1.5BD`` does."""
    parameters = [int(parameter.name) for parameter in to.expressions]
    return value if parameters == list(_precision(value)) else None


def _precision(value: Decimal) -> tuple[int, int]:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return max(len(digits), scale), scale


def _typed(value: Value, type_: pa.DataType, session: tzinfo | None) -> pa.Scalar | None:
    if pa.types.is_timestamp(type_):
        return _timestamp(value, type_, session)
    if pa.types.is_date32(type_):
        day = datetimes.day(value) if isinstance(value, str) else value
        return pa.scalar(day, type_) if type(day) is date else None
    if pa.types.is_floating(type_):
        return _floating(value, type_)
    if pa.types.is_decimal128(type_):
        return _fixed(value, type_)
    return pa.scalar(value, type_) if _same_family(value, type_) else None


def _same_family(value: Value, type_: pa.DataType) -> bool:
    match value:
        case bool():
            return bool(pa.types.is_boolean(type_))
        case int():
            return bool(pa.types.is_integer(type_))
        case str():
            return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
        case bytes():
            return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))
        case _:
            return False


def _floating(value: Value, type_: pa.DataType) -> pa.Scalar | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    double = float(value)
    if pa.types.is_float64(type_):
        return pa.scalar(double, type_)
    exact = math.isnan(double) or value == _narrow(double)
    return pa.scalar(double, type_) if pa.types.is_float32(type_) and exact else None


def _fixed(value: Value, type_: pa.Decimal128Type) -> pa.Scalar | None:
    """Type a decimal, unless Spark would have to round the column to compare the two."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    precision, scale = _precision(value) if isinstance(value, Decimal) else _as_decimal(value)
    whole = max(precision - scale, type_.precision - type_.scale)
    if whole + max(scale, type_.scale) > _MAX_PRECISION:
        return None
    return pa.scalar(Decimal(value), type_)


def _as_decimal(value: int) -> tuple[int, int]:
    """Return the precision and scale of Spark's decimal for an int, a bigint or a longer one."""
    if value.bit_length() < _INTEGER_BITS[exp.DataType.Type.INT]:
        return 10, 0
    return max(20, len(str(abs(value)))), 0


def _timestamp(value: Value, type_: pa.TimestampType, session: tzinfo | None) -> pa.Scalar | None:
    time_: Value | None = value
    if isinstance(value, str) and type_.tz:
        time_ = datetimes.instant(value, session)
    elif isinstance(value, str):
        time_ = datetimes.wall_clock(value)
    elif type(value) is date:
        time_ = datetime.combine(value, time())
    if not isinstance(time_, datetime):
        return None
    if type_.tz and time_.tzinfo is None:
        time_ = datetimes.at(time_, session)
    if time_ is None or bool(time_.tzinfo) != bool(type_.tz):
        return None
    return pa.scalar(time_, pa.timestamp("us", type_.tz)).cast(type_)
