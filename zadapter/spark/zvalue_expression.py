"""The z-value of the literature as a Spark expression, without a UDF.

The expression computes the bytes of :mod:`zadapter.layout.zvalue`. A constant table of 256
integers spreads each byte of a column over eight bytes of the z-value. The results of all columns
are combined by OR. It is exact for every value, and independent of ANSI mode and the session's time
zone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import BOOLEAN, FLOAT, INTEGER, KEY_TYPES, find_by_sql_name
from zadapter.base.names import quote, split
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.layout.zvalue import Nulls, bit_order, decimal_width, null_bit, text_width, width_of

_CHUNK = 64
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


def zvalue(
    rows: DataFrame,
    columns: Sequence[str],
    *,
    width: int | None = None,
    nulls: Nulls | None = "first",
) -> Column:
    """Return the z-value of the rows of a DataFrame, as a deterministic expression over it.

    For example ``rows.sort(zvalue(rows, ["pickup", "place.id"]))``.

    Args:
        rows: The DataFrame that has the columns, for their types; no job runs.
        columns: Names of the key columns, ``a.b`` for a field of a struct.
        width: Bytes used of string and binary columns; other types have their own width.
        nulls: Order of nulls relative to the values of a column. ``None`` omits the class bits: the
            z-value of a row with a null in any column is then null.

    Returns:
        BINARY, the same bytes as :func:`zadapter.layout.zvalue.zvalue`.

    Raises:
        UnknownColumnError: *rows* has no such column.
        UsageError: There are no columns, or one of them is ambiguous or has no ordinal.
    """
    if not columns:
        raise UsageError("a z-value requires at least one column")
    keys = [F.col(quote(split(name))) for name in columns]
    typed = zip(columns, keys, strict=True)
    ordinals = [words(key, _type_of(rows, name, key), width) for name, key in typed]
    if nulls is None:
        return F.unhex(F.concat(*_interleave(ordinals)))
    total = [[Word(F.coalesce(value, F.lit(0)), size) for value, size in o] for o in ordinals]
    return F.unhex(F.concat(*_class_bytes(keys, nulls), *_interleave(total)))


def _type_of(rows: DataFrame, name: str, column: Column) -> types.DataType:
    try:
        return rows.select(column).schema[0].dataType
    except AnalysisException as error:
        if (error.getCondition() or "").startswith("AMBIGUOUS"):
            raise UsageError(f"column {name!r} is ambiguous; rename one of them") from error
        raise UnknownColumnError(name, rows.columns) from error


def _class_bytes(columns: Sequence[Column], nulls: Nulls) -> list[Column]:
    """Return the leading bytes with the class bits, as hexadecimal text."""
    absent = null_bit(nulls)
    bits = [F.when(column.isNull(), absent).otherwise(1 - absent) for column in columns]
    padded = [F.lit(0)] * (-len(bits) % 8) + bits
    return [_hex(reduce(_shift_in, padded[i : i + 8]), 1) for i in range(0, len(padded), 8)]


def _shift_in(bits: Column, bit: Column) -> Column:
    return bits * 2 + bit


def _interleave(ordinals: Sequence[Sequence[Word]]) -> list[Column]:
    """Return the z-value in parts of eight bytes, as hexadecimal text."""
    columns = [list(chain.from_iterable(map(_bytes, ordinal))) for ordinal in ordinals]
    order = bit_order([len(column) for column in columns])
    chunks = [order[start : start + _CHUNK] for start in range(0, len(order), _CHUNK)]
    return [_hex(_combine_bits(columns, chunk), len(chunk) // 8) for chunk in chunks]


def _bytes(word: Word) -> list[Column]:
    shifts = range(8 * (word.size - 1), -1, -8)
    return [F.shiftrightunsigned(word.value, shift).bitwiseAND(255) for shift in shifts]


def _combine_bits(columns: Sequence[Sequence[Column]], chunk: Sequence[tuple[int, int]]) -> Column:
    """Return the BIGINT of one part; *chunk* lists the sources of its bits."""
    spread = [
        F.get(_constant(table), columns[column][byte])
        for (column, byte), table in _tables(chunk).items()
    ]
    combined = reduce(Column.bitwiseOR, spread)
    # Spark compiles a repeated expression to a method of its own. All parts in one method would
    # exceed the JIT's limit of 8 000 bytecodes, and with eight columns run 15 times as long.
    return combined.bitwiseOR(combined)


def _tables(chunk: Sequence[tuple[int, int]]) -> dict[tuple[int, int], npt.NDArray[np.uint64]]:
    """Return, by column and byte, the bits of a part that each value of the byte sets."""
    tables: dict[tuple[int, int], npt.NDArray[np.uint64]] = {}
    values, one = np.arange(256, dtype=np.uint64), np.uint64(1)
    for position, (column, bit) in enumerate(reversed(chunk)):
        table = tables.setdefault((column, bit // 8), np.zeros(256, np.uint64))
        table |= (values >> np.uint64(7 - bit % 8) & one) << np.uint64(position)
    return tables


def _constant(table: npt.NDArray[np.uint64]) -> Column:
    # one literal that folds to a constant; an array literal is sent to the JVM item by item
    return F.from_json(F.lit(json.dumps(table.view(np.int64).tolist())), "array<bigint>")


def _hex(value: Column, size: int) -> Column:
    return F.lpad(F.hex(value), 2 * size, "0")


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
        return _split_words(column.cast("binary"), text_width(name, width))
    if isinstance(type_, types.DecimalType):
        return _decimal(column, type_)
    size = width_of(row.arrow)
    if row.kind is FLOAT:
        return [_float(column, type_, size, _FRACTION_BITS[size])]
    integer = _INTEGERS[row.name](column)
    return [Word(integer, size) if row.kind is BOOLEAN else _flip_sign(integer, size)]


def _flip_sign(value: Column, size: int) -> Word:
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
    return _flip_sign((bits + beyond).bitwiseXOR(_flips(number, type_)), size)


def _flips(number: Column, type_: types.DataType) -> Column:
    """Return a mask that flips all bits of a negative number by XOR: -1, else 0."""
    # zero of the same type, since a common decimal type may have too few digits for both
    return F.when(number < F.lit(0).cast(type_), F.lit(-1)).otherwise(F.lit(0))


def _decimal(number: Column, type_: types.DecimalType) -> list[Word]:
    size = decimal_width(type_.precision)
    # by text, since products, abs() and minus are rounded beyond 38 digits
    text = F.format_number(number, type_.scale)
    if size <= _WORD:
        return [_flip_sign(F.translate(text, ",.", "").cast("bigint"), size)]
    # the bits of a negative number are the flipped bits of a natural number
    flips = _flips(number, type_)
    natural = F.translate(text, ",.-", "").cast("decimal(38,0)") + flips
    upper = F.call_function("div", natural, F.lit(Decimal(1 << 64)))
    lower = _parse_unsigned((natural % F.lit(Decimal(1 << 64))).cast("string"), base=10)
    return [_flip_sign(upper.bitwiseXOR(flips), _WORD), Word(lower.bitwiseXOR(flips), _WORD)]


def _parse_unsigned(digits: Column, base: int) -> Column:
    """Convert the digits of an unsigned 64-bit number to the BIGINT with the same bits."""
    return F.conv(digits, base, -10).cast("bigint")


def _split_words(binary: Column, width: int) -> list[Word]:
    return [_slice(binary, start, min(_WORD, width - start)) for start in range(0, width, _WORD)]


def _slice(binary: Column, start: int, size: int) -> Word:
    digits = F.rpad(F.hex(F.substring(binary, start + 1, size)), 2 * size, "0")
    return Word(_parse_unsigned(digits, base=16), size)
