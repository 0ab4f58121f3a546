"""How the rows of a rewrite are put into Parquet."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.names import Parts
from zadapter.base.ranks import Ints, rank

KEPT = 256
"""Characters of a key, or bytes of a bound in a footer, that are kept at most: texts that share a
long prefix, as URLs do, would be all alike with fewer."""
SEEN = 20_000
"""Values after which Parquet's writers judge whether a dictionary pays: those of a first page."""

SAVED = 0.2
"""Share of a column that a dictionary has to save: building it takes time (zadapter/README.md)."""
_DIGITS = {np.int32: 9, np.int64: 18}
"""Of decimals that are written as whole numbers (LogicalTypes.md, "DECIMAL")."""
_CODEC = "snappy"
"""What tells how well numbers can be compressed: Spark's default, and the least that others do."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """What a backend tells its format's writer; the rest is the table's to say."""

    row_group: int | None = None
    """Rows in a row group, at most; None leaves that to the format."""
    plain: frozenset[Parts] = frozenset()
    """Columns written without a dictionary."""
    whole: bool = False
    """Whether the rows are those of all files, so that none stays beside what is written."""

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

    A dictionary has each of a row group's values once, and for each row its place. How many values
    there are is extrapolated from how many the sample has, and has once or twice (Colwell et al.,
    "Models and estimators linking individual-based and sample-based rarefaction, extrapolation and
    comparison of assemblages", 2012, equation 9): so a value that most rows have makes the others
    come back no more often.

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
    groups = len(np.unique(group))
    if groups == len(there):
        return True
    _, first, counts = np.unique(
        group * (found.max() + 1) + found, return_index=True, return_counts=True
    )
    rows = max(1, rows * len(there) // len(values))
    distinct = _distinct(counts, rows * groups) / groups
    plain = _compressed(values.take(pa.array(there)))
    once = _compressed(values.take(pa.array(there[np.sort(first)])))
    place = np.log2(max(1.0, distinct)) / 8
    return bool(once * distinct / rows + place <= (1 - SAVED) * plain)


def _number(type_: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    return any(kind(type_) for kind in kinds)


def _distinct(counts: Ints, rows: int) -> float:
    """Estimate the distinct values of so many rows by how often a sample has each of its own."""
    sampled, once, twice = counts.sum(), (counts == 1).sum(), (counts == 2).sum()  # noqa: PLR2004
    unseen = once * (once - 1) / (2 * (twice + 1))
    if unseen == 0:
        return len(counts)
    missed = (1 - once / (sampled * unseen + once)) ** max(0, rows - sampled)
    return float(len(counts) + unseen * (1 - missed))


def _compressed(values: pa.Array) -> float:
    """Return bytes a value, in the order in which they are written."""
    return len(pa.compress(_stored(values), codec=_CODEC, asbytes=True)) / len(values)


def _stored(values: pa.Array) -> bytes:
    """Return numbers as Parquet's writers put them down, in 32 bits at least (Encodings.md)."""
    type_ = values.type
    if pa.types.is_integer(type_) and type_.bit_width < 32:  # noqa: PLR2004
        values = values.cast(pa.int32())
    stored: bytes = values.buffers()[1].to_pybytes()
    if pa.types.is_decimal128(type_) and type_.precision <= _DIGITS[np.int64]:
        width = np.int32 if type_.precision <= _DIGITS[np.int32] else np.int64
        stored = np.frombuffer(stored, np.int64)[::2].astype(width).tobytes()
    return stored
