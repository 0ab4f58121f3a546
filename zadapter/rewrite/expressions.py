"""A layout as Spark expressions: one array look-up and one comparison a level.

Everything is public API and goes into generated code.  Cuts travel as one string literal that the
optimizer folds into an array of the column's own type, so the comparison is Spark's own.  A level
looks at one column: choosing the column per node would outgrow the JIT's limit of 8 000 bytecodes
a method (zadapter/README.md).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_text import texts, values
from zadapter.base.names import Parts, quote
from zadapter.base.ranks import rank
from zadapter.layout.layout import Layout


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows with a few integer columns more, under names that no table has.

    Attributes:
        rows: The rows.
        file: The file each row goes to.
        place: Name of the column that orders rows within a file.
        added: The columns that are not the table's.
    """

    rows: DataFrame
    file: Column
    place: str
    added: tuple[str, ...]


def constant(written: Sequence[str | None], type_: str) -> Column:
    """Return an array of *type_* as one literal, which the optimizer folds."""
    array = F.from_json(F.lit(json.dumps(written)), "array<string>")
    return array if type_ == "string" else array.cast(f"array<{type_}>")


def integers(numbers: Sequence[int]) -> Column:
    """Return an array<int> literal."""
    return constant([str(n) for n in numbers], "int")


def keyed(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> Keyed:
    """Add to each row its leaf's place among all, and its file.

    Args:
        rows: The rows.
        layout: Where they are to go.
        partition: The table's partition columns and their types.
    """
    token = uuid4().hex
    place, file, salt = f"place-{token}", f"file-{token}", f"salt-{token}"
    shared = bool((layout.width > 1).any())
    if shared:
        # The position in the input, not rand(): Spark runs stages again
        rows = rows.withColumn(salt, F.monotonically_increasing_id())
    rows = rows.withColumn(place, _root(rows, layout, partition))
    keys = _comparable(rows, layout.request.columns)
    for level in layout.levels:
        column, type_ = keys[level.column]
        cut = F.get(constant(texts(level.cuts), type_), F.col(place))
        right = F.coalesce((column >= cut).cast("int"), F.lit(0))
        rows = rows.withColumn(place, F.col(place) * 2 + right)
    places = layout.places
    if layout.order is not None:
        rows = rows.withColumn(place, F.get(integers(places.tolist()), F.col(place)))
    leaf_at = np.argsort(places)
    target = F.get(integers(layout.first_file[leaf_at].tolist()), F.col(place))
    if shared:
        width = F.get(integers(layout.width[leaf_at].tolist()), F.col(place))
        target = target + F.pmod(F.col(salt), width).cast("int")
        # what follows from the place need not travel with the rows; what the salt decides must
        rows, target = rows.withColumn(file, target).drop(salt), F.col(file)
    return Keyed(rows, target, place, (place, file) if shared else (place,))


def ranked(column: Column, distinct: pa.Array, type_: str) -> Column:
    """Return 0 for null, r for the r-th of the ascending *distinct* values: a binary search."""
    depth = max(1, len(distinct).bit_length())
    place: Column = F.lit(0)
    written = texts(distinct)
    for level in range(depth):
        half = 1 << (depth - level - 1)
        at = [node * 2 * half + half for node in range(1 << level)]
        cuts = [written[p - 1] if p <= len(written) else None for p in at]
        right = F.coalesce((column >= F.get(constant(cuts, type_), place)).cast("int"), F.lit(0))
        place = place * 2 + right
    return place


def _comparable(rows: DataFrame, columns: Sequence[Parts]) -> list[tuple[Column, str]]:
    """Return each column and the type its constants are cast to; binary compares as hexadecimal."""
    picked = [F.col(quote(parts)) for parts in columns]
    types = [field.dataType.simpleString() for field in rows.select(*picked).schema]
    return [
        (F.hex(column), "string")
        if type_ == "binary"
        # spark.sql.timestampType may have the bare word mean timestamp_ntz
        else (column, "timestamp_ltz" if type_ == "timestamp" else type_)
        for column, type_ in zip(picked, types, strict=True)
    ]


def _root(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> Column:
    """Return the row's root: the place of its partition values among the layout's roots.

    Column by column, the values so far are numbered anew, so that the look-up tables stay small.
    """
    found: Column = F.lit(0)
    numbers: dict[tuple[str | None, ...], int] = {(): 0}
    keys = _comparable(rows, [(name,) for name in partition])
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
        found = F.get(integers(table), found * len(ranks) + ranked(column, distinct, spark_type))
        numbers = longer
    return found
