"""A layout as Spark expressions: one array look-up and one comparison per level.

All expressions are public API and support code generation. Cuts are passed as one string literal,
which the optimizer folds into an array of the column's type, so Spark's own comparison applies. A
level compares one column. A level of several columns compares integers in the order of their
values, and looks up the column by the node: one comparison per column would exceed the JIT's limit
of 8 000 bytecodes per method (integration/bench/README.md).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import (
    BOOLEAN,
    DATE,
    DECIMAL,
    INTEGER,
    find_by_sql_name,
    has_zone,
    kind_of,
    texts,
    to_cast_name,
    to_integers,
    values,
)
from zadapter.base.names import NameParts, quote
from zadapter.base.ranks import rank
from zadapter.layout.layout import Layout
from zadapter.layout.levels import Level

_DIGITS = 18
"""Decimals of up to this number of digits are whole 64-bit numbers of their last digit."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows with additional integer columns, whose names contain a random token.

    Attributes:
        rows: The rows.
        file: Number of each row's file.
        position: Name of the column that orders rows within a file.
        added: Names of the additional columns.
    """

    rows: DataFrame
    file: Column
    position: str
    added: tuple[str, ...]


def constant(written: Sequence[str | None], type_: str) -> Column:
    """Return an array of *type_* as an expression that the optimizer folds into one literal."""
    array = F.from_json(F.lit(json.dumps(written)), "array<string>")
    return array if type_ == "string" else array.cast(f"array<{type_}>")


def integers(numbers: Sequence[int | None], type_: str = "int") -> Column:
    """Return an array literal of integers."""
    return constant([None if n is None else str(n) for n in numbers], type_)


def add_keys(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> KeyedRows:
    """Add to each row the position of its leaf along the curve, and its file.

    Args:
        rows: The rows.
        layout: The layout of the new files.
        partition: The table's partition columns and their types.
    """
    token = uuid4().hex
    position, file, salt = f"place-{token}", f"file-{token}", f"salt-{token}"
    shared = bool((layout.width > 1).any())
    if shared:
        # the position in the input, not rand(), since Spark may rerun stages
        rows = rows.withColumn(salt, F.monotonically_increasing_id())
    rows = rows.withColumn(position, _root(rows, layout, partition))
    keys = comparable(rows, layout.request.columns)
    numbered = _to_integers([level for level in layout.levels if level.others], keys)
    numbers = f"numbers-{token}"
    if numbered:
        rows = rows.withColumn(numbers, F.array(*(each.numbers for each in numbered.values())))
    for level in layout.levels:
        if level.others:
            right = _right_by_number(level, numbered, F.col(numbers), F.col(position))
        else:
            column, type_ = keys[level.column]
            right = column >= F.get(constant(texts(level.cuts), type_), F.col(position))
        rows = rows.withColumn(position, _child(F.col(position), right))
    rows = rows.drop(numbers)
    places = layout.places
    if layout.order is not None:
        rows = rows.withColumn(position, F.get(integers(places.tolist()), F.col(position)))
    leaf_at = np.argsort(places)
    target = F.get(integers(layout.first_file[leaf_at].tolist()), F.col(position))
    if shared:
        width = F.get(integers(layout.width[leaf_at].tolist()), F.col(position))
        target = target + F.pmod(F.col(salt), width).cast("int")
        # the place alone does not determine a salted file number, so it is shuffled with the rows
        rows, target = rows.withColumn(file, target).drop(salt), F.col(file)
    return KeyedRows(rows, target, position, (position, file) if shared else (position,))


@dataclass(frozen=True, slots=True)
class _IntegerColumn:
    """A column's values as integers in their order.

    Attributes:
        numbers: The integers as a BIGINT.
        codes: Ascending distinct cuts, if the integer of a value is the number of cuts that are not
            above it; None if it is the value itself.
    """

    numbers: Column
    codes: pa.Array | None

    def cuts(self, cuts: pa.Array) -> list[int | None]:
        """Return the least integer of the values that are not below each cut."""
        if self.codes is not None:
            ranks = rank(pa.concat_arrays([self.codes, cuts])).ranks[len(self.codes) :]
            return [int(each) or None for each in ranks]
        if kind_of(cuts.type) is DECIMAL:
            # by text, since arithmetic rounds to the digits of the caller's decimal context
            return [None if text is None else int(text.replace(".", "")) for text in texts(cuts)]
        return list(to_integers(cuts).cast(pa.int64()).to_pylist())


def _to_integers(
    levels: Sequence[Level], keys: Sequence[tuple[Column, str]]
) -> dict[int, _IntegerColumn]:
    """Return the columns of some levels as integers; *keys* are all columns and their types."""
    cuts: dict[int, list[pa.Array]] = {}
    for level in levels:
        for each in level.by_column:
            cuts.setdefault(each.column, []).append(each.cuts)
    numbered = {}
    for at, found in sorted(cuts.items()):
        column, type_ = keys[at]
        whole = _whole(column, type_, found[0].type)
        if whole is not None:
            numbered[at] = _IntegerColumn(whole, None)
        else:
            codes = rank(pa.concat_arrays(found)).distinct
            numbered[at] = _IntegerColumn(rank_column(column, codes, type_).cast("bigint"), codes)
    return numbered


def _whole(column: Column, spark_type: str, type_: pa.DataType) -> Column | None:
    """Return values that are whole numbers as BIGINT, or None for values that are none."""
    row = find_by_sql_name(spark_type)
    if row is not None and row.kind in {INTEGER, BOOLEAN}:
        return column.cast("bigint")
    if row is not None and row.kind is DATE:
        return F.unix_date(column).cast("bigint")
    if row is not None and has_zone(row.arrow) and type_.unit == "us":
        return F.unix_micros(column)
    if kind_of(type_) is DECIMAL and type_.precision <= _DIGITS and type_.scale >= 0:
        return (column * F.lit(Decimal(10) ** type_.scale)).cast("bigint")
    return None


def _right_by_number(
    level: Level, numbered: Mapping[int, _IntegerColumn], numbers: Column, node: Column
) -> Column:
    """Return whether rows go right at a level of several columns.

    Args:
        level: The level.
        numbered: The columns that have integers.
        numbers: The rows' integers, an array in the order of *numbered*.
        node: The rows' nodes.
    """
    place = np.zeros(len(level.cuts), np.int64)
    cuts: list[int | None] = [None] * len(level.cuts)
    places = {column: place for place, column in enumerate(numbered)}
    for each in level.by_column:
        for at, cut in enumerate(numbered[each.column].cuts(each.cuts)):
            if cut is not None:
                place[at], cuts[at] = places[each.column], cut
    number = F.get(numbers, F.get(integers(place.tolist()), node))
    return number >= F.get(integers(cuts, "bigint"), node)


def rank_column(column: Column, distinct: pa.Array, type_: str) -> Column:
    """Return 0 for null and r for the r-th of the ascending *distinct* values, by binary search."""
    position: Column = F.lit(0)
    for cuts in search_levels(texts(distinct)):
        position = descend(column, cuts, type_, position)
    return position


def search_levels(written: Sequence[str | None]) -> Iterator[list[str | None]]:
    """Yield the cuts of each level of a binary search over ascending values, written as text."""
    depth = max(1, len(written).bit_length())
    for level in range(depth):
        half = 1 << (depth - level - 1)
        at = [node * 2 * half + half for node in range(1 << level)]
        yield [written[p - 1] if p <= len(written) else None for p in at]


def descend(column: Column, cuts: Sequence[str | None], type_: str, node: Column) -> Column:
    """Return the node below *node* that the values of a column reach; nulls go left."""
    return _child(node, column >= F.get(constant(cuts, type_), node))


def _child(node: Column, right: Column) -> Column:
    """Return the node below *node*, the left one where *right* is null.

    Bits are set, since sums and products check for overflow in ANSI mode.
    """
    step = F.coalesce(right.cast("int"), F.lit(0))
    return F.shiftleft(node, 1).bitwiseOR(step)


def comparable(rows: DataFrame, columns: Sequence[NameParts]) -> list[tuple[Column, str]]:
    """Return each column and the type of its constants; binary columns compare as hexadecimal."""
    picked = [F.col(quote(parts)) for parts in columns]
    types = [field.dataType.simpleString() for field in rows.select(*picked).schema]
    return [
        (F.hex(column), "string") if type_ == "binary" else (column, to_cast_name(type_))
        for column, type_ in zip(picked, types, strict=True)
    ]


def _root(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> Column:
    """Return the row's root: the index of its partition values among the layout's roots.

    After each column, the distinct prefixes of values are renumbered. This keeps look-up tables
    small.
    """
    root_index: Column = F.lit(0)
    numbers: dict[tuple[str | None, ...], int] = {(): 0}
    keys = comparable(rows, [(name,) for name in partition])
    for index, (type_, (column, spark_type)) in enumerate(
        zip(partition.values(), keys, strict=True)
    ):
        distinct = rank(values([root[index] for root in layout.roots], type_)).distinct
        ranks = {text: at for at, text in enumerate([None, *texts(distinct)])}
        longer = {root[: index + 1]: 0 for root in layout.roots}
        longer = {prefix: number for number, prefix in enumerate(longer)}
        table = [0] * (len(numbers) * len(ranks))
        for prefix, number in longer.items():
            table[numbers[prefix[:-1]] * len(ranks) + ranks[prefix[-1]]] = number
        root_index = F.get(
            integers(table), root_index * len(ranks) + rank_column(column, distinct, spark_type)
        )
        numbers = longer
    return root_index
