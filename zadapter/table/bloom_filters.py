"""Bloom filters of Parquet files: for which columns, and how large.

A Bloom filter of a column states that a value is certainly not in a row group, or may be in it. It
holds a hash of each value's bytes, so it is wrong for values that are equal with different bytes.
"""

from collections.abc import Mapping, Sequence
from math import log

import pyarrow as pa

from zadapter.base.key_types import DECIMAL, UNLIKE, kind_of
from zadapter.base.names import NameParts, join, leaves

FPP = 0.01
"""Share of the row groups without a value that a reader opens nevertheless, at most. It is the
default of Parquet's writers; Iceberg before 1.10 has no property for it."""
_BITS_PER_BYTE, _SMALLEST = 8, 32
_DIGITS = 18
"""Digits of a decimal that Parquet's writers store as a number; others are bytes."""


def refusal(
    parts: NameParts, type_: pa.DataType, physical: Mapping[NameParts, NameParts]
) -> str | None:
    """Return why a column cannot have a Bloom filter, or None if it can.

    Args:
        parts: The column.
        type_: Its type.
        physical: Names of columns in the files, where they differ from the logical names.
    """
    kind = kind_of(type_)
    if pa.types.is_struct(type_):
        return "it is a struct; pass one of its fields"
    reason = UNLIKE if kind is None else kind.no_bloom_filter
    if reason is not None:
        return reason.format(type=type_)
    if kind is DECIMAL and type_.precision > _DIGITS:
        return "Iceberg fails to look for values of another number of bytes in it"
    if dotted := [part for part in physical.get(parts, parts) if "." in part]:
        return f"Parquet's writer reads the dot in {join((dotted[0],))} as a nested field"
    return None


def writable(
    columns: Sequence[NameParts], schema: pa.Schema, physical: Mapping[NameParts, NameParts]
) -> frozenset[NameParts]:
    """Return the columns that exist and can have a Bloom filter.

    A table may have lost a column since its layout was requested, or have another one of its name.
    """
    types = dict(leaves(schema))
    return frozenset(
        column
        for column in columns
        if column in types and refusal(column, types[column], physical) is None
    )


def size_of(values: int) -> int:
    """Return the bytes of a filter of a number of distinct values, with at most :data:`FPP`.

    Parquet's split block filters set 8 bits for each value (BloomFilter.md of the format), and some
    readers require a power of two.

    >>> size_of(1), size_of(25_000), size_of(100_000)
    (32, 32768, 131072)
    """
    bits = -_BITS_PER_BYTE * values / log(1 - FPP ** (1 / _BITS_PER_BYTE))
    needed = max(_SMALLEST, int(bits) // _BITS_PER_BYTE)
    return 1 << (needed - 1).bit_length()
