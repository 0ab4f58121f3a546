"""How the rows of a rewrite are put into Parquet."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.names import Parts
from zadapter.ranks import Ints, rank

KEPT = 256
"""Characters of a key, or bytes of a bound in a footer, that are kept at most: texts that share a
long prefix, as URLs do, would be all alike with fewer."""
SEEN = 20_000
"""Values after which Parquet's writers judge whether a dictionary pays: those of a first page."""

SAVED = 0.2
"""Share of a column that a dictionary has to save, since to build it takes time (DESIGN.md)."""
_CODEC = "snappy"
"""What tells how well numbers can be compressed: Spark's default, and the least that others do."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What a backend tells its format's writer; the rest is the table's to say."""

    row_group: int | None = None
    """Rows in a row group, at most; None leaves that to the format."""
    plain: frozenset[Parts] = frozenset()
    """Columns written without a dictionary."""

    def settings(self, physical: Mapping[Parts, Parts]) -> dict[str, str]:
        """Return what Spark hands on to its Parquet writer, as options or the session's settings.

        Args:
            physical: How files name the columns, where they do it differently.
        """
        # a footer has no bounds at all where whole values are too long for it
        said = {"parquet.statistics.truncate.length": str(KEPT)}
        if self.row_group is not None:
            said["parquet.block.row.count.limit"] = str(self.row_group)
        for parts in self.plain:
            path = ".".join(physical.get(parts, parts))
            said[f"parquet.enable.dictionary#{path}"] = "false"
        return said


def dictionary_given_up(footer: pq.FileMetaData) -> frozenset[str]:
    """Return the columns whose writer has tried a dictionary and found that it does not pay.

    Parquet's writers give a dictionary up after the first page, if it has saved no bytes. With
    row groups an eighth in size, that is eight times as many tries, each dearer than the writing
    itself: 3.2 s of 18 s, lineitem SF1.

    Args:
        footer: The footer of a file with the same rows, or rows like them.

    Returns:
        Paths in the file, parts joined by dots.
    """
    chunks = [
        column
        for group in map(footer.row_group, range(footer.num_row_groups))
        for column in map(group.column, range(footer.num_columns))
    ]
    tried = {c.path_in_schema for c in chunks if c.num_values >= SEEN}
    used = {c.path_in_schema for c in chunks if c.has_dictionary_page}
    # where nothing has a dictionary, the writer did not try
    return frozenset(tried - used) if used else frozenset()


def dictionary_pays(values: pa.Array, group: Ints, rows: int) -> bool:
    """Tell by a sample whether a dictionary makes a column of numbers smaller once compressed.

    If c of p pairs of sampled rows are equal, where both are of one row group, then a row of it
    has ``x = rows * c / p`` others equal to it, and of values drawn at random each is there
    ``x / (1 - exp(-x))`` times. A dictionary has each value once, and for each row its place.

    Args:
        values: Sampled values of a column.
        group: For each of them its row group.
        rows: How many rows a row group has.

    Returns:
        False only if it saves less than :data:`SAVED`: where too few rows are known, it is tried,
        and for texts always, which are longer than their place in it.
    """
    if not _number(values.type):
        return True
    ranks = rank(values).ranks
    there = np.flatnonzero(ranks)
    there = there[np.argsort(group[there], kind="stable")]
    found, group = ranks[there], group[there]
    pairs, same = _pairs(group), _pairs(group * (found.max(initial=0) + 1) + found)
    if pairs == 0:
        return True
    rows = max(1, rows * len(there) // len(values))
    others = rows * same / pairs
    each = others / -np.expm1(-others) if others else 1.0
    width = _compressed(values.take(pa.array(there)))
    place = np.log2(max(1.0, rows / each)) / 8
    return bool(width / each + place <= (1 - SAVED) * width)


def _number(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    return any(kind(type_) for kind in kinds)


def _compressed(values: pa.Array) -> float:
    """Return bytes a value, in the order in which they are written."""
    plain = values.buffers()[1]
    return len(pa.compress(plain, codec=_CODEC, asbytes=True)) / len(values)


def _pairs(numbers: Ints) -> int:
    """Count the pairs of equal numbers."""
    counts = np.unique(numbers, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())
