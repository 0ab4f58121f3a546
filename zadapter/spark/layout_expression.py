"""A layout as Spark expressions: one array look-up and one comparison per level.

Levels of several columns, which a layout has that was learned, are one look-up per column instead:
values are numbered by comparisons with literals, and tables lead from number to number
(:mod:`zadapter.layout.diagram`).

The expressions are SQL text, because a call into the JVM takes a tenth of a millisecond. All of
them support code generation. Cuts are passed as one string literal, which the optimizer folds into
an array of the column's type, so Spark's own comparison applies. A level compares one column. Where
the diagram is too large, a level of several columns compares integers in the order of their values,
and looks up the column by the node: one comparison per column would exceed the JIT's limit of 8 000
bytecodes per method (integration/bench/README.md).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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
from zadapter.base.names import NameParts, quote, text_literal
from zadapter.base.ranks import rank
from zadapter.layout import assign
from zadapter.layout.diagram import Decision, decide
from zadapter.layout.layout import Layout
from zadapter.layout.levels import Level
from zadapter.spark.jvm.spark_classes import (
    expression,
    select_columns,
    with_column,
    with_columns,
)

MOST_CUTS, CUTS_A_LEVEL = 64, 2
"""Maximum number of literals that values are compared with, and how many take as many bytecodes as
a level. More would exceed the JIT's limit of 8 000 bytecodes per method. A method also has some 70
for each other column of a table, so that tables of some 35 columns may exceed it."""
_Key = tuple[str, str]
"""A key column as SQL text, and the type of its constants."""
_DIGITS = 18
"""Decimals of up to this number of digits are whole 64-bit numbers of their last digit."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows with additional integer columns, whose names contain a random token.

    Attributes:
        rows: The rows.
        file: The number of each row's file, as its name will have it.
        position: Name of the column that orders rows within a file.
        added: Names of the additional columns.
    """

    rows: DataFrame
    file: Column
    position: str
    added: tuple[str, ...]


def constant(written: Sequence[str | None], type_: str) -> str:
    """Return an array of *type_* as an expression that the optimizer folds into one literal."""
    array = f"from_json({text_literal(json.dumps(written))}, 'array<string>')"
    return array if type_ == "string" else f"CAST({array} AS array<{type_}>)"


def _integers(numbers: Sequence[int | None], type_: str = "int") -> str:
    return constant([None if n is None else str(n) for n in numbers], type_)


def add_keys(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> KeyedRows:
    """Add to each row the position of its leaf along the curve, and its file.

    Args:
        rows: The rows.
        layout: The layout of the new files.
        partition: The table's partition columns and their types.
    """
    token = uuid4().hex
    position, numbers, salt = f"place-{token}", f"numbers-{token}", f"salt-{token}"
    if _is_shared(layout):
        # the position in the input, not rand(), since Spark may rerun stages
        rows = rows.withColumn(salt, F.monotonically_increasing_id())
    every = [*layout.request.columns, *((name,) for name in partition)]
    rows, plain = _add_plain_names(rows, every, token)
    rows = _add_root(rows, layout, partition, position, plain)
    keys = comparable(rows, [plain.get(parts, parts) for parts in layout.request.columns])
    node = quote((position,))
    rows, levels = _pass_diagram(rows, layout, keys, position)
    several = [level for level in levels if level.others]
    rows, numbered = _add_integers(rows, several, keys, numbers)
    for level in levels:
        if level.others:
            right = _right_by_number(level, numbered, quote((numbers,)), node)
        else:
            column, type_ = keys[level.column]
            right = f"{column} >= get({constant(texts(level.cuts), type_)}, {node})"
        rows = with_column(rows, position, _child(node, right))
    added = [*([numbers] if numbered else []), *(name for (name,) in plain.values())]
    rows = rows.drop(*added) if added else rows
    if layout.order is not None:
        place = f"get({_integers(layout.places.tolist())}, {node})"
        rows = with_column(rows, position, place)
    return _add_file(rows, layout, token)


def find_diagram(layout: Layout) -> tuple[int, tuple[Decision, ...]]:
    """Return the number of a layout's first levels that are a diagram, and its look-ups, if any."""
    upper = max((at + 1 for at, level in enumerate(layout.levels) if level.others), default=0)
    most_cuts = MOST_CUTS - CUTS_A_LEVEL * (len(layout.levels) - upper)
    passed = decide(layout.levels[:upper], len(layout.roots), most_cuts) if upper else None
    return (0, ()) if passed is None else (upper, passed)


def _pass_diagram(
    rows: DataFrame, layout: Layout, keys: Sequence[_Key], position: str
) -> tuple[DataFrame, Sequence[Level]]:
    """Replace the root of each row by its node below all levels of several columns.

    Returns:
        The rows, and the levels below; all levels if their diagram is too large.
    """
    upper, passed = find_diagram(layout)
    if not passed:
        return rows, layout.levels
    bits = [len(each.cuts).bit_length() for each in passed]
    state = f"shiftleft({quote((position,))}, {bits[0]})"
    for each, here, after in zip(passed, bits, [*bits[1:], 0], strict=True):
        spare = (1 << here) - len(each.cuts) - 1
        table = np.pad(each.next << after, ((0, 0), (0, spare))).ravel().tolist()
        number = _count_cuts(*keys[each.column], texts(each.cuts))
        state = f"get({_integers(table)}, {state} | {number})"
    return with_column(rows, position, state), layout.levels[upper:]


def _count_cuts(column: str, type_: str, cuts: Sequence[str | None], below: int = 0) -> str:
    """Return how many of ascending cuts are not above the values of a column, 0 for null.

    Args:
        column: The column.
        type_: The type of its constants.
        cuts: The cuts, as text.
        below: Number that is added.
    """
    if not cuts:
        return str(below)
    half = len(cuts) // 2
    cut = text_literal(str(cuts[half]))
    right = f"{column} >= {cut if type_ == 'string' else f'CAST({cut} AS {type_})'}"
    above = _count_cuts(column, type_, cuts[half + 1 :], below + half + 1)
    return f"IF({right}, {above}, {_count_cuts(column, type_, cuts[:half], below)})"


def _add_plain_names(
    rows: DataFrame, columns: Sequence[NameParts], token: str
) -> tuple[DataFrame, dict[NameParts, NameParts]]:
    """Add columns whose names contain a ``$`` under other names.

    Spark replaces ``${name}`` in SQL text by the setting of that name, also between backticks.

    Returns:
        The rows, and the names of the added columns by the parts of the others.
    """
    odd = [parts for parts in columns if any("$" in part for part in parts)]
    names = [f"key-{number}-{token}" for number in range(len(odd))]
    added = {name: F.col(quote(parts)) for name, parts in zip(names, odd, strict=True)}
    plain: dict[NameParts, NameParts] = dict(zip(odd, ((name,) for name in names), strict=True))
    return rows.withColumns(added) if added else rows, plain


def _add_file(rows: DataFrame, layout: Layout, token: str) -> KeyedRows:
    """Number the file of each row: one of those of its leaf, by the salt if there are several."""
    position, name, salt = f"place-{token}", f"file-{token}", f"salt-{token}"
    node, leaf_at = quote((position,)), np.argsort(layout.places)
    first, numbers = layout.first_file[leaf_at], assign.name_numbers(layout)
    if not _is_shared(layout):
        # leaves of a root without files have no rows
        of_leaf = numbers[np.minimum(first, layout.files - 1)]
        file = f"get({_integers(of_leaf.tolist())}, {node})"
        return KeyedRows(rows, Column(expression(rows.sparkSession, file)), position, (position,))
    width = f"get({_integers(layout.width[leaf_at].tolist())}, {node})"
    file = (
        f"get({_integers(first.tolist())}, {node}) + CAST(pmod({quote((salt,))}, {width}) AS int)"
    )
    # the place alone does not determine a salted file number, so it is shuffled with the rows
    rows = with_column(rows, name, f"get({_integers(numbers.tolist())}, {file})").drop(salt)
    return KeyedRows(rows, F.col(name), position, (position, name))


def _is_shared(layout: Layout) -> bool:
    """Return whether some leaf has several files."""
    return bool((layout.width > 1).any())


@dataclass(frozen=True, slots=True)
class _IntegerColumn:
    """A column's values as integers in their order.

    Attributes:
        numbers: The integers, a BIGINT.
        codes: Ascending distinct cuts, if the integer of a value is the number of cuts that are not
            above it; None if it is the value itself.
    """

    numbers: str
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


def _add_integers(
    rows: DataFrame, levels: Sequence[Level], keys: Sequence[_Key], name: str
) -> tuple[DataFrame, dict[int, _IntegerColumn]]:
    """Add an array of the columns of some levels as integers.

    Args:
        rows: The rows.
        levels: The levels.
        keys: All key columns and their types.
        name: Name of the array.
    """
    cuts: dict[int, list[pa.Array]] = {}
    for level in levels:
        for each in level.by_column:
            cuts.setdefault(each.column, []).append(each.cuts)
    numbered, ranks = dict[int, _IntegerColumn](), dict[str, tuple[_Key, pa.Array]]()
    for at, found in sorted(cuts.items()):
        whole = _whole(*keys[at], found[0].type)
        codes = None
        if whole is None:
            codes = rank(pa.concat_arrays(found)).distinct
            ranks[f"{name}-{at}"] = (keys[at], codes)
            whole = f"CAST({quote((f'{name}-{at}',))} AS bigint)"
        numbered[at] = _IntegerColumn(whole, codes)
    if numbered:
        every = ", ".join(each.numbers for each in numbered.values())
        rows = with_column(_add_ranks(rows, ranks), name, f"array({every})").drop(*ranks)
    return rows, numbered


def _whole(column: str, spark_type: str, type_: pa.DataType) -> str | None:
    """Return values that are whole numbers as BIGINT, or None for values that are none."""
    row = find_by_sql_name(spark_type)
    if row is not None and row.kind in {INTEGER, BOOLEAN}:
        return f"CAST({column} AS bigint)"
    if row is not None and row.kind is DATE:
        return f"CAST(unix_date({column}) AS bigint)"
    if row is not None and has_zone(row.arrow) and type_.unit == "us":
        return f"unix_micros({column})"
    if kind_of(type_) is DECIMAL and type_.precision <= _DIGITS and type_.scale >= 0:
        return f"CAST({column} * {10**type_.scale}BD AS bigint)"
    return None


def _right_by_number(
    level: Level, numbered: Mapping[int, _IntegerColumn], numbers: str, node: str
) -> str:
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
    number = f"get({numbers}, get({_integers(place.tolist())}, {node}))"
    return f"{number} >= get({_integers(cuts, 'bigint')}, {node})"


def _add_ranks(rows: DataFrame, ranks: Mapping[str, tuple[_Key, pa.Array]]) -> DataFrame:
    """Add 0 for null and r for the r-th of the ascending distinct values, by binary search.

    One projection a level, since the expression of one projection would double with every level.

    Args:
        rows: The rows.
        ranks: For the name of each new column, a key and distinct values.
    """
    steps = {
        name: [(key, cuts) for cuts in search_levels(texts(distinct))]
        for name, (key, distinct) in ranks.items()
    }
    if not steps:
        return rows
    rows = with_columns(rows, dict.fromkeys(steps, "0"))
    for level in zip_longest(*steps.values()):
        todo = {name: step for name, step in zip(steps, level, strict=True) if step is not None}
        rows = with_columns(
            rows,
            {
                name: descend(column, cuts, type_, quote((name,)))
                for name, ((column, type_), cuts) in todo.items()
            },
        )
    return rows


def search_levels(written: Sequence[str | None]) -> Iterator[list[str | None]]:
    """Yield the cuts of each level of a binary search over ascending values, written as text."""
    depth = max(1, len(written).bit_length())
    for level in range(depth):
        half = 1 << (depth - level - 1)
        at = [node * 2 * half + half for node in range(1 << level)]
        yield [written[p - 1] if p <= len(written) else None for p in at]


def descend(column: str, cuts: Sequence[str | None], type_: str, node: str) -> str:
    """Return the node below *node* that the values of a column reach; nulls go left."""
    return _child(node, f"{column} >= get({constant(cuts, type_)}, {node})")


def _child(node: str, right: str) -> str:
    """Return the node below *node*, the left one where *right* is null.

    Bits are set, since sums and products check for overflow in ANSI mode. The generated code of
    IF is two thirds of that of COALESCE, which also writes to a field for every row.
    """
    return f"(shiftleft({node}, 1) | IF({right}, 1, 0))"


def comparable(rows: DataFrame, columns: Sequence[NameParts]) -> list[_Key]:
    """Return each column and the type of its constants; binary columns compare as hexadecimal."""
    picked = [quote(parts) for parts in columns]
    schema = select_columns(rows, picked, picked).schema if picked else ()
    types = [field.dataType.simpleString() for field in schema]
    return [
        (f"hex({column})", "string") if type_ == "binary" else (column, to_cast_name(type_))
        for column, type_ in zip(picked, types, strict=True)
    ]


def _add_root(
    rows: DataFrame,
    layout: Layout,
    partition: Mapping[str, pa.DataType],
    name: str,
    plain: Mapping[NameParts, NameParts],
) -> DataFrame:
    """Add the root of each row: the index of its partition values among the layout's roots.

    After each column, the distinct prefixes of values are renumbered. This keeps look-up tables
    small.
    """
    root_index, ranks_of = "0", dict[str, tuple[_Key, pa.Array]]()
    numbers: dict[tuple[str | None, ...], int] = {(): 0}
    keys = comparable(rows, [plain.get((column,), (column,)) for column in partition])
    for index, (type_, key) in enumerate(zip(partition.values(), keys, strict=True)):
        distinct = rank(values([root[index] for root in layout.roots], type_)).distinct
        ranks = {text: at for at, text in enumerate([None, *texts(distinct)])}
        longer = {root[: index + 1]: 0 for root in layout.roots}
        longer = {prefix: number for number, prefix in enumerate(longer)}
        table = [0] * (len(numbers) * len(ranks))
        for prefix, number in longer.items():
            table[numbers[prefix[:-1]] * len(ranks) + ranks[prefix[-1]]] = number
        ranks_of[f"{name}-{index}"] = (key, distinct)
        place = f"{root_index} * {len(ranks)} + {quote((f'{name}-{index}',))}"
        root_index = f"get({_integers(table)}, {place})"
        numbers = longer
    rows = with_column(_add_ranks(rows, ranks_of), name, root_index)
    return rows.drop(*ranks_of) if ranks_of else rows
