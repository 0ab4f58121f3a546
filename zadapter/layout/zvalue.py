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
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.errors import UsageError
from zadapter.layout.ordered_bytes import Bytes, ordinal

Nulls = Literal["first", "last"]

_BATCH = 1 << 16


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
    (:func:`zadapter.layout.ordered_bytes.ordinal`). To interleave ranks, pass them as unsigned
    integers, which are their own ordinals. The z-value of three uint32 columns equals the result of
    Delta Lake's ``interleave_bits``.

    >>> row = [pa.array([rank], pa.uint32()) for rank in (0, 99, 50)]
    >>> zvalue(row, nulls=None)[0].as_py().hex()
    '00000000000000000009901a'

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
