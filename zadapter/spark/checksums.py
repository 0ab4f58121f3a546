"""What a table holds, in a few numbers that do not depend on the order of its rows.

Two tables whose rows have other files, other names for them and another order give the same
numbers; one row lost, doubled or changed gives others, but for a chance of about 2**-64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.names import quote

_HALF = 32


@dataclass(frozen=True, slots=True)
class Totals:
    """What rows add up to.

    Attributes:
        rows: How many there are.
        checksum: 24 bytes, in hexadecimal.
        matches: For each condition how many rows it is true for.
    """

    rows: int
    checksum: str
    matches: tuple[int, ...]


def by_file(rows: DataFrame, conditions: Sequence[Column]) -> Mapping[str, Totals]:
    """Return what the rows of each file add up to, by the name that Spark has for it.

    Args:
        rows: What is read from files.
        conditions: Conditions on the rows.
    """
    words = [word for field in rows.schema for word in _words(_column(field), field.dataType)]
    hashed = rows.select(
        F.input_file_name().alias("file"),
        F.xxhash64(*words).alias("hash"),
        *(F.coalesce(c, F.lit(False)).alias(f"c{i}") for i, c in enumerate(conditions)),  # noqa: FBT003
    )
    found = hashed.groupBy("file").agg(
        F.count(F.lit(1)),
        # in halves: whole numbers of 64 bits would soon add up to too much
        F.sum(F.shiftrightunsigned("hash", _HALF)),
        F.sum(F.col("hash").bitwiseAND(F.lit((1 << _HALF) - 1))),
        F.bit_xor("hash"),
        *(F.count_if(f"c{i}") for i in range(len(conditions))),
    )
    return {
        str(name): Totals(count, _text((high << _HALF) + low, mixed), tuple(matches))
        for name, count, high, low, mixed, *matches in found.collect()
    }


def together(parts: Sequence[Totals], conditions: int) -> Totals:
    """Return what the rows of all *parts* add up to, of so many conditions."""
    numbers = [_numbers(part.checksum) for part in parts]
    return Totals(
        rows=sum(part.rows for part in parts),
        checksum=_text(sum(n for n, _ in numbers), reduce(xor, (m for _, m in numbers), 0)),
        matches=tuple(sum(part.matches[i] for part in parts) for i in range(conditions)),
    )


def _text(total: int, mixed: int) -> str:
    return f"{total % (1 << 128):032x}{mixed % (1 << 64):016x}"


def _numbers(text: str) -> tuple[int, int]:
    return int(text[:32], 16), int(text[32:], 16)


def _column(field: T.StructField) -> Column:
    return F.col(quote((field.name,)))


def _words(column: Column, type_: T.DataType) -> list[Column]:
    """Return what is hashed of a value: all of it, and which parts are null.

    Spark's hash passes over nulls, so that (null, 1) and (1, null) would be the same.
    """
    inner: list[Column] = [column]
    if isinstance(type_, T.StructType):
        inner = [
            word for field in type_ for word in _words(column.getField(field.name), field.dataType)
        ]
    elif isinstance(type_, T.ArrayType):
        inner = _elements(column, type_.elementType)
    elif isinstance(type_, T.MapType):
        keys, values = F.map_keys(column), F.map_values(column)
        inner = [*_elements(keys, type_.keyType), *_elements(values, type_.valueType)]
    return [column.isNull(), *inner]


def _elements(array: Column, type_: T.DataType) -> list[Column]:
    hashed: Any = F.transform(array, lambda each: F.xxhash64(*_words(each, type_)))
    return [F.size(array), hashed]
