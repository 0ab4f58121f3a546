"""The z-value of the literature: the bits of the columns, interleaved into bytes.

This is the specification, over Arrow. ``zadapter.spark.zvalue_expression`` computes the same bytes
as a Spark expression; a property test compares the two.

A z-value compares as unsigned bytes from the left. It consists of the highest bit of each column,
in the order of the columns, then the second highest bit of each, and so on. Columns without
remaining bits are skipped.

Nulls are distinct from all values. With ``nulls="first"`` or ``"last"``, every column has an
additional class bit above its highest bit: 0 for the class that comes first, null or value, and 1
for the other. The value bits of a null are 0. The class bits form the leading bytes of the z-value,
one byte per eight columns, padded with zero bits on the left.

The bits of a value are those of its ordinal: a fixed number of bytes, compared as unsigned bytes
from the left. The order is Spark's: NaN is above all other numbers and equal to itself, -0.0 equals
0.0, and strings are ordered by their UTF-8 bytes. The conversions follow Apache Iceberg's
``ZOrderByteUtils``, but every type keeps its own width, decimals are supported, and NaN is one
value.

==============================  =======================================================
type                            bytes
==============================  =======================================================
(u)int8 … (u)int64              its own width; signed ones with the sign bit flipped
float, double                   4, 8; all bits of negative numbers flipped, else the sign
decimal(p, s)                   the unscaled value; 4 if p <= 9, 8 if p <= 18, else 16
date                            8; days since 1970-01-01
timestamp, with or without tz   8; microseconds since 1970-01-01
boolean                         1; 0 or 1
fixed size binary               as it is
string, binary                  truncated or zero-padded to the requested width
==============================  =======================================================
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.key_types import DECIMAL, FLOAT, TIMESTAMP, kind_of, to_integers
from zadapter.errors import UsageError

Bytes = npt.NDArray[np.uint8]
Nulls = Literal["first", "last"]

_BATCH = 1 << 16
_MAX_PRECISION = 38
_DECIMAL_WIDTHS = {9: 4, 18: 8, _MAX_PRECISION: 16}


def bit_order(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the source of each bit of a z-value, highest bit first.

    Args:
        widths: Bytes of each column.

    Returns:
        Pairs of a column and its bit, both counted from 0; bit 0 is the highest.
    """
    bits = [(column, bit) for column, width in enumerate(widths) for bit in range(8 * width)]
    return sorted(bits, key=lambda source: (source[1], source[0]))


def null_bit(nulls: Nulls) -> int:
    """Return the class bit of nulls; values have the opposite bit.

    Raises:
        UsageError: *nulls* is neither ``"first"`` nor ``"last"``.
    """
    if nulls not in {"first", "last"}:
        raise UsageError(f'nulls must be "first", "last" or None, not {nulls!r}')
    return int(nulls == "last")


def interleave(columns: Sequence[Bytes]) -> Bytes:
    """Interleave the bits of columns of bytes.

    Args:
        columns: One array of shape (rows, width) per column; widths may differ.

    Returns:
        Bytes of shape (rows, sum of the widths).

    Raises:
        UsageError: There are no columns, or they differ in their number of rows.
    """
    rows = _common_length(columns)
    widths = [column.shape[1] for column in columns]
    starts = np.cumsum([0, *widths]) * 8
    places = np.array([starts[column] + bit for column, bit in bit_order(widths)], np.intp)
    mixed = np.empty((rows, sum(widths)), np.uint8)
    for start in range(0, rows, _BATCH):
        side_by_side = np.hstack([column[start : start + _BATCH] for column in columns])
        bits = np.unpackbits(side_by_side, axis=1)
        mixed[start : start + _BATCH] = np.packbits(np.take(bits, places, axis=1), axis=1)
    return mixed


def zvalue(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    *,
    width: int | None = None,
    nulls: Nulls | None = "first",
) -> pa.LargeBinaryArray:
    """Return the z-value of each row.

    The z-value interleaves the ordinals of the values
    (:func:`ordinal`). To interleave ranks, pass them as unsigned
    integers, which are their own ordinals. The z-value of three uint32 columns equals the result of
    Delta Lake's ``interleave_bits``.

    >>> row = [pa.array([rank], pa.uint32()) for rank in (0, 99, 50)]
    >>> zvalue(row, nulls=None)[0].as_py().hex()
    '00000000000000000009901a'

    Example:
        ```python
        import pyarrow as pa

        two, three = pa.array([2], pa.uint8()), pa.array([3], pa.uint8())
        assert zadapter.zvalue([two, three], nulls=None)[0].as_py() == bytes([0, 13])
        ```

    Args:
        columns: The key columns, most important first.
        width: Bytes used of string and binary columns; other types have their own width.
        nulls: Order of nulls relative to the values of a column. ``None`` omits the class bits: the
            z-value of a row with a null in any column is then null.

    Returns:
        One z-value per row, all of the same length.

    Raises:
        UsageError: There are no columns, they differ in length, or one of them has no ordinal.
    """
    rows = _common_length(columns)
    keys = interleave([ordinal(column, width=width) for column in columns])
    absent = np.stack([column.is_null().to_numpy(zero_copy_only=False) for column in columns], 1)
    if nulls is not None:
        keys = np.hstack([_class_bytes(absent, nulls), keys])
        absent = np.zeros((rows, 1), np.bool_)
    ends = np.arange(rows + 1, dtype=np.int64) * keys.shape[1]
    present = np.packbits(~absent.any(axis=1), bitorder="little")
    buffers = [pa.py_buffer(part) for part in (present, ends, np.ascontiguousarray(keys))]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)


def _common_length(columns: Sequence[Bytes] | Sequence[pa.Array | pa.ChunkedArray]) -> int:
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise UsageError(f"a z-value requires columns of equal length, not {sorted(lengths)}")
    return int(lengths.pop())


def _class_bytes(absent: npt.NDArray[np.bool_], nulls: Nulls) -> Bytes:
    bits = absent == bool(null_bit(nulls))
    padding = np.zeros((len(bits), -bits.shape[1] % 8), np.bool_)
    return np.packbits(np.hstack([padding, bits]), axis=1)


def width_of(type_: pa.DataType, width: int | None = None) -> int:
    """Return the number of bytes of an ordinal of *type_*.

    Args:
        type_: Type of the values.
        width: Bytes for string and binary, which have no width of their own; other types ignore it.

    Raises:
        UsageError: Values of *type_* have no ordinal, or it is string or binary and *width* is
            missing or less than 1.
    """
    kind, fixed = kind_of(type_), pa.types.is_fixed_size_binary(type_)
    if kind is not None and kind.is_bytes and not fixed:
        return text_width(str(type_), width)
    if kind is DECIMAL and type_.precision <= _MAX_PRECISION:
        return decimal_width(type_.precision)
    if kind is not None and kind is not DECIMAL:
        return kind.ordinal_bytes or (type_.bit_width // 8)
    raise UsageError(f"{type_} has no order-preserving bytes; omit the column")


def text_width(type_name: str, width: int | None) -> int:
    """Check and return the requested width of a string or binary ordinal.

    Raises:
        UsageError: *width* is missing or less than 1.
    """
    if width is None or width < 1:
        raise UsageError(
            f"{type_name} has no fixed width, and {width} is not a valid one; pass for example "
            "width=8 to compare the first 8 bytes"
        )
    return width


def decimal_width(precision: int) -> int:
    """Return the number of bytes of an ordinal of a decimal with up to 38 digits."""
    return next(width for digits, width in _DECIMAL_WIDTHS.items() if precision <= digits)


def ordinal(array: pa.Array | pa.ChunkedArray, *, width: int | None = None) -> Bytes:
    """Convert values to bytes with the same order.

    Two string or binary values have the same bytes if their first *width* bytes are equal, or
    differ only in trailing zeros. Other values have the same bytes only if they are equal.

    Args:
        array: The values.
        width: Bytes for string and binary; other types have their own width.

    Returns:
        Big-endian bytes of shape (rows, width). Bytes of nulls are zero; use ``array.is_null()`` to
        distinguish nulls.

    Raises:
        UsageError: Values of this type have no ordinal, *width* is missing, or a timestamp is not a
            whole number of microseconds in 64 bits.
    """
    size = width_of(array.type, width)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    filled = [_ordinal(chunk, size) for chunk in chunks if len(chunk)]
    return np.concatenate([np.zeros((0, size), np.uint8), *filled])


def _ordinal(array: pa.Array, size: int) -> Bytes:
    kind = kind_of(array.type)
    if kind is not None and kind.is_bytes:
        converted = _from_text(array, size)
    elif kind is DECIMAL:
        converted = _from_decimals(array, size)
    elif kind is FLOAT:
        converted = _from_floats(array.fill_null(0).to_numpy())
    else:
        converted = _from_integers(_integers(array, size).fill_null(0).to_numpy())
    converted[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return converted


def _integers(array: pa.Array, size: int) -> pa.Array:
    """Return values as integers of *size* bytes; timestamps count microseconds."""
    if kind_of(array.type) is TIMESTAMP:
        try:
            array = array.cast(pa.timestamp("us", array.type.tz))
        except pa.ArrowInvalid as error:
            message = f"{array.type} cannot be converted to microseconds: {error}"
            raise UsageError(message) from error
    integers = to_integers(array)
    return integers.cast(pa.int64()) if 8 * size > integers.type.bit_width else integers


def _from_integers(values: npt.NDArray[np.integer]) -> Bytes:
    converted = _big_endian(values)
    if np.issubdtype(values.dtype, np.signedinteger):
        converted[:, 0] ^= 0x80
    return converted


def _from_floats(values: npt.NDArray[np.floating]) -> Bytes:
    size = values.dtype.itemsize
    one_nan = np.where(np.isnan(values), values.dtype.type("nan"), values)
    bits = (one_nan + values.dtype.type(0)).view(f"u{size}")
    sign = bits.dtype.type(1 << (8 * size - 1))
    return _big_endian(np.where(bits & sign, ~bits, bits | sign))


def _from_decimals(array: pa.Array, size: int) -> Bytes:
    plain = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    count, offset = 16 * len(plain), 16 * plain.offset
    stored = np.frombuffer(plain.buffers()[1], np.uint8, count, offset).reshape(-1, 16)
    converted: Bytes = stored[:, size - 1 :: -1].copy()
    converted[:, 0] ^= 0x80
    return converted


def _from_text(array: pa.Array, size: int) -> Bytes:
    texts = array.cast(pa.large_binary())
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64, len(texts) + 1, 8 * texts.offset)
    first, last = offsets[0], offsets[-1]
    # positions beyond the end of a text refer to an additional zero
    content = np.append(np.frombuffer(data or b"", np.uint8)[first:last], np.uint8(0))
    places = offsets[:-1, None] + np.arange(size)
    inside = places < offsets[1:, None]
    return content[np.where(inside, places - first, -1)]


def _big_endian(values: npt.NDArray[np.generic]) -> Bytes:
    size = values.dtype.itemsize
    swapped = np.ascontiguousarray(values.astype(values.dtype.newbyteorder(">")))
    return swapped.view(np.uint8).reshape(len(values), size)
