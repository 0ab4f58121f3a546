"""The z-value of the literature: the bits of the columns, interleaved into bytes.

This is the specification, over Arrow.  ``zadapter.zvalues.spark_zvalue`` computes the same bytes as
a Spark expression; a property test keeps the two equal.

A z-value compares as unsigned bytes from the left.  It has the highest bit of each column first,
in the order of the columns, then the second highest bit of each, and so on; a column that has no
bits left drops out of the round.

Nulls are a class of their own, not a place among the values: with ``nulls="first"`` or ``"last"``
every column has one bit more in front of its highest one, which is 0 for what comes first, null or
value, and 1 for the other; the bits of a null's value are 0.  These class bits make up the leading
bytes of the z-value, one byte for up to eight columns, padded with zero bits on the left.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.errors import UsageError
from zadapter.zvalues.ordered_bytes import Bytes, ordinal

Nulls = Literal["first", "last"]

_BATCH = 1 << 16


def bit_order(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Return where each bit of a z-value comes from, its highest bit first.

    Args:
        widths: Bytes of each column.

    Returns:
        Pairs of a column and a bit of it, both counted from 0, bit 0 being the highest.
    """
    bits = [(column, bit) for column, width in enumerate(widths) for bit in range(8 * width)]
    return sorted(bits, key=lambda place: (place[1], place[0]))


def null_bit(nulls: Nulls) -> int:
    """Return the class bit of nulls; values have the other one.

    Raises:
        UsageError: *nulls* is neither ``"first"`` nor ``"last"``.
    """
    if nulls not in {"first", "last"}:
        raise UsageError(f'nulls is "first", "last" or None, not {nulls!r}')
    return int(nulls == "last")


def interleave(columns: Sequence[Bytes]) -> Bytes:
    """Interleave the bits of columns of bytes.

    Args:
        columns: One array of shape (rows, width) a column; widths may differ.

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

    Columns count by their direct ordinals (:func:`zadapter.zvalues.ordered_bytes.ordinal`).  For
    the z-value of ranks, give the ranks as unsigned integers, whose ordinals they are themselves;
    so the z-value of three uint32 columns is what ``interleave_bits`` of Delta Lake computes.

    >>> row = [pa.array([rank], pa.uint32()) for rank in (0, 99, 50)]
    >>> zvalue(row, nulls=None)[0].as_py().hex()
    '00000000000000000009901a'

    Args:
        columns: The key columns, most important first.
        width: Bytes that string and binary columns count with; other types have their own width.
        nulls: Where nulls of a column come, next to its values.  ``None`` leaves out the class
            bits: a row with a null in any column then has no z-value, but null.

    Returns:
        One z-value a row, all of the same length.

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
        raise UsageError(f"a z-value takes columns of one length, not of {sorted(lengths)}")
    return int(lengths.pop())


def _class_bytes(absent: npt.NDArray[np.bool_], nulls: Nulls) -> Bytes:
    bits = absent == bool(null_bit(nulls))
    padding = np.zeros((len(bits), -bits.shape[1] % 8), np.bool_)
    return np.packbits(np.hstack([padding, bits]), axis=1)
