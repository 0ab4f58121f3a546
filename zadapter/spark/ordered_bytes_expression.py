"""Order-preserving conversion of Spark values to bytes.

Column expressions of public functions compute the bytes of :mod:`zadapter.layout.ordered_bytes`.
They are exact for every value, and independent of ANSI mode and the session's time zone.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from pyspark.sql import Column, types
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import BOOLEAN, FLOAT, INTEGER, KEY_TYPES, find_by_sql_name
from zadapter.errors import UsageError
from zadapter.layout.ordered_bytes import decimal_width, text_width, width_of

_WORD = 8


class Word(NamedTuple):
    """A part of an ordinal.

    Attributes:
        value: BIGINT whose lowest ``size`` bytes are the part, null for null; higher bits are
            undefined.
        size: Number of bytes, at most 8.
    """

    value: Column
    size: int


def words(column: Column, type_: types.DataType, width: int | None = None) -> list[Word]:
    """Return the ordinal of *column* as words, from the left.

    Args:
        column: The values.
        type_: Type of the values.
        width: Bytes for string and binary; other types have their own width.

    Raises:
        UsageError: Values of this type have no ordinal, or *width* is missing. A string with a
            collation has no ordinal, since it is not ordered by its bytes.
    """
    name = type_.simpleString()
    row = find_by_sql_name(name)
    if row is None:
        raise UsageError(f"{name} has no order-preserving bytes; omit the column")
    if row.kind.is_bytes:
        return _text(column.cast("binary"), text_width(name, width))
    if isinstance(type_, types.DecimalType):
        return _decimal(column, type_)
    size = width_of(row.arrow)
    if row.kind is FLOAT:
        return [_float(column, type_, size, _FRACTION_BITS[size])]
    integer = _INTEGERS[row.name](column)
    return [Word(integer, size) if row.kind is BOOLEAN else _signed(integer, size)]


def _signed(value: Column, size: int) -> Word:
    return Word(value.bitwiseXOR(F.lit(-1 << (8 * size - 1))), size)


def _bigint(value: Column) -> Column:
    return value.cast("bigint")


def _days(date: Column) -> Column:
    return F.unix_date(date).cast("bigint")


def _micros_ntz(timestamp: Column) -> Column:
    # a cast to timestamp would lose values in gaps and overlaps of the session's time zone
    minutes = (_days(timestamp.cast("date")) * 24 + F.hour(timestamp)) * 60 + F.minute(timestamp)
    seconds = F.extract(F.lit("SECOND"), timestamp)
    return minutes * 60_000_000 + (seconds * 1_000_000).cast("bigint")


_INTEGERS: Mapping[str, Callable[[Column], Column]] = {
    **{row.name: _bigint for row in KEY_TYPES if row.kind in {BOOLEAN, INTEGER}},
    "date": _days,
    "timestamp": F.unix_micros,
    "timestamp_ntz": _micros_ntz,
}
"""The integers of key types that are whole numbers, as BIGINT."""
_FRACTION_BITS = {4: 23, 8: 52}
"""Bits of the fraction of a floating-point number by its bytes."""


def _float(number: Column, type_: types.DataType, size: int, fraction_bits: int) -> Word:
    """Compute the bits of an IEEE 754 number by arithmetic that is exact in double.

    No deterministic function returns the bits. The number is scaled by a power of two into [1, 4),
    which tolerates an error of half a binade in log2(). The scaled number minus 1 if it is below 2,
    or else its half, is the fraction, including the carry into the exponent. Subnormal numbers have
    the lowest scale and a scaled number in [0, 1); the missing 1 lowers the exponent by one.
    """
    bias = (1 << (8 * size - 2 - fraction_bits)) - 1
    one = 1 << fraction_bits
    largest = float((2 - 0.5**fraction_bits) * 2.0**bias)
    magnitude = F.abs(number.cast("double"))
    finite = F.least(magnitude, F.lit(largest))
    # log2() of zero is null, which greatest() ignores
    exponent = F.greatest(F.floor(F.log2(finite) - 0.5), F.lit(1 - bias))
    scaled = finite * F.pow(F.lit(2.0), -exponent)
    fraction = F.least(scaled - 1, scaled / 2) * float(one)
    bits = (exponent + bias) * one + fraction.cast("bigint")
    # in this order, since NaN is above infinity; neither condition is true for null
    above = F.when(magnitude <= largest, 0).when(magnitude <= float("inf"), 1)
    beyond = above.when(F.isnan(magnitude), one // 2 + 1)
    return _signed((bits + beyond).bitwiseXOR(_flips(number, type_)), size)


def _flips(number: Column, type_: types.DataType) -> Column:
    """Return a mask that flips all bits of a negative number by XOR: -1, else 0."""
    # zero of the same type, since a common decimal type may have too few digits for both
    return F.when(number < F.lit(0).cast(type_), F.lit(-1)).otherwise(F.lit(0))


def _decimal(number: Column, type_: types.DecimalType) -> list[Word]:
    size = decimal_width(type_.precision)
    # by text, since products, abs() and minus are rounded beyond 38 digits
    text = F.format_number(number, type_.scale)
    if size <= _WORD:
        return [_signed(F.translate(text, ",.", "").cast("bigint"), size)]
    # the bits of a negative number are the flipped bits of a natural number
    flips = _flips(number, type_)
    natural = F.translate(text, ",.-", "").cast("decimal(38,0)") + flips
    upper = F.call_function("div", natural, F.lit(Decimal(1 << 64)))
    lower = _signed_number((natural % F.lit(Decimal(1 << 64))).cast("string"), base=10)
    return [_signed(upper.bitwiseXOR(flips), _WORD), Word(lower.bitwiseXOR(flips), _WORD)]


def _signed_number(digits: Column, base: int) -> Column:
    """Convert the digits of an unsigned 64-bit number to the BIGINT with the same bits."""
    return F.conv(digits, base, -10).cast("bigint")


def _text(binary: Column, width: int) -> list[Word]:
    return [_slice(binary, start, min(_WORD, width - start)) for start in range(0, width, _WORD)]


def _slice(binary: Column, start: int, size: int) -> Word:
    digits = F.rpad(F.hex(F.substring(binary, start + 1, size)), 2 * size, "0")
    return Word(_signed_number(digits, base=16), size)
