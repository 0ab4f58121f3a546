"""What a table holds, in a few numbers that do not depend on the order of its rows.

Two tables whose rows have other files, other names for them and another order give the same
numbers; one row lost, doubled or changed gives others, but for a chance of about 2**-64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.names import quote

_SHIFTS = (0, 21, 42)
"""Where the three parts of a hash begin. The sum of so few bits overflows after 2**41 rows."""
_BYTEWISE = "UTF8_BINARY"
"""The collation of texts that Spark hashes by their bytes."""


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
    hashed = rows.select(
        F.input_file_name().alias("file"),
        _hash(rows).alias("hash"),
        *(F.coalesce(c, F.lit(False)).alias(f"c{i}") for i, c in enumerate(conditions)),  # noqa: FBT003
    )
    matches = [F.count_if(f"c{i}") for i in range(len(conditions))]
    found = hashed.groupBy("file").agg(*_sums("hash"), *matches).collect()
    return {str(name): _totals(sums) for name, *sums in found}


def whole(rows: DataFrame) -> Totals:
    """Return what all rows add up to."""
    return _totals(rows.select(_hash(rows).alias("hash")).agg(*_sums("hash")).collect()[0])


def watched(rows: DataFrame, columns: Sequence[str]) -> tuple[DataFrame, str]:
    """Return *rows*, and the name under which Spark observes what *columns* of them add up to.

    Spark 4.1 counts the rows of a task again for each time that a stage is run again after its
    shuffle files were lost (SPARK-58183). So equal totals prove equal rows, other totals nothing.
    """
    name, hashed = f"checksum-{uuid4().hex}", f"hash-{uuid4().hex}"
    chosen = rows.select(*(F.col(quote((column,))) for column in columns))
    observed = rows.withColumn(hashed, _hash(chosen)).observe(name, *_sums(hashed))
    return observed.drop(hashed), name


def observed(rows: DataFrame, name: str) -> Totals | None:
    """Return what was observed under *name* where the plan of *rows* was executed, if anything."""
    found = rows._jdf.queryExecution().observedMetrics().get(name)  # noqa: SLF001
    if found.isEmpty():
        return None
    row = found.get()
    return _totals([row.get(number) for number in range(row.size())])


def _hash(rows: DataFrame) -> Column:
    words = [word for field in rows.schema for word in _words(_column(field), field.dataType)]
    return F.xxhash64(*words)


def _sums(name: str) -> list[Column]:
    """Return aggregates of a column of hashes, for :func:`_totals`."""
    hashed = F.col(name)
    low = F.lit((1 << _SHIFTS[1]) - 1)
    parts = [F.shiftrightunsigned(hashed, shift) for shift in _SHIFTS]
    parts = [*(part.bitwiseAND(low) for part in parts[:-1]), parts[-1]]
    return [F.count(F.lit(1)), F.bit_xor(hashed), *map(F.sum, parts)]


def _totals(sums: Sequence[Any]) -> Totals:
    count, mixed, *others = sums
    parts, matches = others[: len(_SHIFTS)], others[len(_SHIFTS) :]
    total = sum((part or 0) << shift for part, shift in zip(parts, _SHIFTS, strict=True))
    return Totals(count, _text(total, mixed or 0), tuple(matches))


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
    if isinstance(type_, T.StringType) and type_.collation != _BYTEWISE:
        inner = [column.cast("binary")]  # texts that the collation takes for equal are not the same
    elif isinstance(type_, T.VariantType):
        # Spark hashes no variants, and 1.5 is the same text in all types
        inner = [F.to_json(column), F.schema_of_variant(column)]
    elif isinstance(type_, T.FractionalType) and not isinstance(type_, T.DecimalType):
        # 0.0 and -0.0 have the same hash
        inner = [column, F.when(column == 0, column.cast("string"))]
    elif isinstance(type_, T.StructType):
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
