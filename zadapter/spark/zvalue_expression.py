"""The z-value of the literature as a Spark expression, without a UDF.

The expression computes the bytes of :mod:`zadapter.layout.zvalue`. A constant table of 256
integers spreads each byte of a column over eight bytes of the z-value. The results of all columns
are combined by OR.
"""

import json
from collections.abc import Sequence
from functools import reduce
from itertools import chain

import numpy as np
import numpy.typing as npt
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from zadapter.base.names import quote, split
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.layout.zvalue import Nulls, bit_order, null_bit
from zadapter.spark.ordered_bytes_expression import Word, words

_CHUNK = 64


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
        return F.unhex(F.concat(*_interleaved(ordinals)))
    total = [[Word(F.coalesce(value, F.lit(0)), size) for value, size in o] for o in ordinals]
    return F.unhex(F.concat(*_class_bytes(keys, nulls), *_interleaved(total)))


def _type_of(rows: DataFrame, name: str, column: Column) -> DataType:
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
    return [_hex(reduce(_shifted_in, padded[i : i + 8]), 1) for i in range(0, len(padded), 8)]


def _shifted_in(bits: Column, bit: Column) -> Column:
    return bits * 2 + bit


def _interleaved(ordinals: Sequence[Sequence[Word]]) -> list[Column]:
    """Return the z-value in parts of eight bytes, as hexadecimal text."""
    columns = [list(chain.from_iterable(map(_bytes, ordinal))) for ordinal in ordinals]
    order = bit_order([len(column) for column in columns])
    chunks = [order[start : start + _CHUNK] for start in range(0, len(order), _CHUNK)]
    return [_hex(_combined(columns, chunk), len(chunk) // 8) for chunk in chunks]


def _bytes(word: Word) -> list[Column]:
    shifts = range(8 * (word.size - 1), -1, -8)
    return [F.shiftrightunsigned(word.value, shift).bitwiseAND(255) for shift in shifts]


def _combined(columns: Sequence[Sequence[Column]], chunk: Sequence[tuple[int, int]]) -> Column:
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
