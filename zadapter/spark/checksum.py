"""Row counts and checksums of rows, independent of their order and files.

Equal rows in other files or in another order have the same checksum. If a row is lost, duplicated
or changed, the checksum differs, except with a probability of about 2**-64.
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
from zadapter.spark.compat.spark_api import has_collation, is_variant
from zadapter.spark.jvm.gateway import query_execution

_SHIFTS = (0, 21, 42)
"""First bits of the three parts of a hash. The sum of such a part overflows after 2**41 rows."""
_SEED = 0x7A61646170746572
"""Begins the second hash of a row."""


@dataclass(frozen=True, slots=True)
class RowTotals:
    """Totals of rows: counts and a checksum.

    Attributes:
        rows: Number of rows.
        checksum: 24 bytes, in hexadecimal.
        matches: Number of rows that match each condition.
    """

    rows: int
    checksum: str
    matches: tuple[int, ...]


def sum_by_file(rows: DataFrame, conditions: Sequence[Column]) -> Mapping[str, RowTotals]:
    """Return the totals of the rows of each file, by the file name that Spark reports.

    Args:
        rows: Rows that are read from files.
        conditions: Conditions on the rows.
    """
    hashed = rows.select(
        F.input_file_name().alias("file"),
        _hash(rows).alias("hash"),
        *(F.coalesce(c, F.lit(False)).alias(f"c{i}") for i, c in enumerate(conditions)),  # noqa: FBT003
    )
    matches = [F.count_if(f"c{i}") for i in range(len(conditions))]
    collected = hashed.groupBy("file").agg(*_sums("hash"), *matches).collect()
    return {str(name): _totals(sums) for name, *sums in collected}


def compute_totals(rows: DataFrame) -> RowTotals:
    """Return the totals of all rows."""
    return _totals(rows.select(_hash(rows).alias("hash")).agg(*_sums("hash")).collect()[0])


def observe_totals(rows: DataFrame, columns: Sequence[str]) -> tuple[DataFrame, str]:
    """Return *rows* with an observation of the totals of *columns*, and the observation's name.

    Spark 4.1 counts the rows of a task again whenever it reruns a stage after the loss of its
    shuffle files (SPARK-58183). Equal totals therefore prove equal rows; different totals prove
    nothing.
    """
    name, hashed = f"checksum-{uuid4().hex}", f"hash-{uuid4().hex}"
    chosen = rows.select(*(F.col(quote((column,))) for column in columns))
    observed = rows.withColumn(hashed, _hash(chosen)).observe(name, *_sums(hashed))
    return observed.drop(hashed), name


def read_observation(rows: DataFrame, name: str) -> RowTotals | None:
    """Return the observation *name* of the executed plan of *rows*, or None if there is none."""
    metrics = query_execution(rows).observedMetrics().get(name)
    if metrics.isEmpty():
        return None
    row = metrics.get()
    return _totals([row.get(number) for number in range(row.size())])


def hash_rows(rows: DataFrame, columns: Sequence[str]) -> tuple[Column, Column]:
    """Return two independent hashes of *columns*; the first is the one of checksums."""
    chosen = rows.select(*(F.col(quote((column,))) for column in columns))
    words = _row_words(chosen)
    return F.xxhash64(*words), F.xxhash64(F.lit(_SEED), *words)


def sum_hashes(rows: DataFrame, group: str, hashed: str) -> Mapping[str, RowTotals]:
    """Return the totals of each group of rows, by the column *group*.

    Args:
        rows: Rows with the two columns.
        group: Name of a column of texts.
        hashed: Name of the column with the first hash of :func:`hash_rows`.
    """
    collected = rows.groupBy(group).agg(*_sums(hashed)).collect()
    return {str(name): _totals(sums) for name, *sums in collected}


def _hash(rows: DataFrame) -> Column:
    return F.xxhash64(*_row_words(rows))


def _row_words(rows: DataFrame) -> list[Column]:
    return [word for field in rows.schema for word in _words(_select_field(field), field.dataType)]


def _sums(name: str) -> list[Column]:
    """Return aggregates of a column of hashes, for :func:`_totals`."""
    hashed = F.col(name)
    low = F.lit((1 << _SHIFTS[1]) - 1)
    parts = [F.shiftrightunsigned(hashed, shift) for shift in _SHIFTS]
    parts = [*(part.bitwiseAND(low) for part in parts[:-1]), parts[-1]]
    return [F.count(F.lit(1)), F.bit_xor(hashed), *map(F.sum, parts)]


def _totals(sums: Sequence[Any]) -> RowTotals:
    count, mixed, *others = sums
    parts, matches = others[: len(_SHIFTS)], others[len(_SHIFTS) :]
    total = sum((part or 0) << shift for part, shift in zip(parts, _SHIFTS, strict=True))
    return RowTotals(count, _format_checksum(total, mixed or 0), tuple(matches))


def add_totals(parts: Sequence[RowTotals], conditions: int) -> RowTotals:
    """Return the sum of *parts*, with matches of the given number of conditions."""
    numbers = [_parse_checksum(part.checksum) for part in parts]
    return RowTotals(
        rows=sum(part.rows for part in parts),
        checksum=_format_checksum(
            sum(n for n, _ in numbers), reduce(xor, (m for _, m in numbers), 0)
        ),
        matches=tuple(sum(part.matches[i] for part in parts) for i in range(conditions)),
    )


def _format_checksum(total: int, mixed: int) -> str:
    return f"{total % (1 << 128):032x}{mixed % (1 << 64):016x}"


def _parse_checksum(text: str) -> tuple[int, int]:
    return int(text[:32], 16), int(text[32:], 16)


def _select_field(field: T.StructField) -> Column:
    return F.col(quote((field.name,)))


def _words(column: Column, type_: T.DataType) -> list[Column]:
    """Return the columns to hash for a value: all its parts, and whether each is null.

    Spark's hash skips nulls, so (null, 1) and (1, null) would have the same hash.
    """
    inner: list[Column] = [column]
    if has_collation(type_):
        inner = [column.cast("binary")]  # texts that are equal in the collation may differ
    elif is_variant(type_):
        # Spark cannot hash variants, and the text of 1.5 is the same in all types
        inner = [F.to_json(column), F.call_function("schema_of_variant", column)]
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
    hashed: Any = F.transform(array, lambda element: F.xxhash64(*_words(element, type_)))
    return [F.size(array), hashed]
