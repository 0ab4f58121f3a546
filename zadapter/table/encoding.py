"""Parquet encoding of the rows of a rewrite."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.key_types import BOOLEAN, DECIMAL, INTEGER, kind_of
from zadapter.base.names import NameParts
from zadapter.base.ranks import Ints, Ranked, argsort, narrow
from zadapter.table.bloom_filters import size_of
from zadapter.table.staged_files import new_id

KEPT = 256
"""Maximum characters of a key, and bytes of a bound in a footer, that are kept. With fewer, texts
with a long common prefix, such as URLs, would be equal."""
SEEN = 20_000
"""Values in a first page, after which Parquet's writers decide whether a dictionary pays."""

SAVED = 0.2
"""Minimum share of a column that a dictionary must save, since it takes time
(integration/bench/README.md)."""
_DIGITS = {np.int32: 9, np.int64: 18}
"""Maximum digits of decimals that are stored as integers (LogicalTypes.md, "DECIMAL")."""
_CODEC = "snappy"
"""Codec for estimates of compressed size: Spark's default; others compress at least as well."""


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Options for the format's writer; table properties determine all others."""

    row_group: int | None = None
    """Maximum rows in a row group; None: the format's default."""
    plain: frozenset[NameParts] = frozenset()
    """Columns written without a dictionary."""
    bloom_filters: frozenset[NameParts] = frozenset()
    """Columns with a Bloom filter in each row group. A row group whose values are all in a
    dictionary has none: readers look into the dictionary."""
    whole: bool = False
    """Whether the rows are those of all files, so that the new files replace every file."""
    write: str = field(default_factory=new_id, compare=False)
    """Id of the one write that this is for. Its files' names contain it, or 16 characters of it."""

    def settings(self, physical: Mapping[NameParts, NameParts]) -> dict[str, str]:
        """Return the settings of Spark's Parquet writer, as write options or session settings.

        Args:
            physical: Names of columns in the files, where they differ from the logical names.
        """
        # without truncation, a footer omits bounds that are too long for it
        options = {"parquet.statistics.truncate.length": str(KEPT)}
        if self.row_group is not None:
            options["parquet.block.row.count.limit"] = str(self.row_group)
        for parts in self.plain:
            path = ".".join(physical.get(parts, parts))
            options[f"parquet.enable.dictionary#{path}"] = "false"
        for parts in self.bloom_filters:
            path = ".".join(physical.get(parts, parts))
            options[f"parquet.bloom.filter.enabled#{path}"] = "true"
            if self.row_group is not None:
                options[f"parquet.bloom.filter.expected.ndv#{path}"] = str(self.row_group)
                options["parquet.bloom.filter.max.bytes"] = str(size_of(self.row_group))
        return options


def find_abandoned_dictionaries(footer: pq.FileMetaData) -> frozenset[str]:
    """Return the columns for which the writer tried a dictionary and gave it up.

    Parquet's writers give up a dictionary after the first page if it has saved no bytes. Row groups
    of an eighth of the size take eight times as many attempts, each more expensive than the write
    itself: 3.2 s of 18 s for lineitem SF1.

    Args:
        footer: The footer of a file with the same or similar rows.

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
    # if no column has a dictionary, the writer did not try
    return frozenset(tried - used) if used else frozenset()


def dictionary_pays(values: Ranked, group: Ints, rows: int) -> bool:
    """Return whether a dictionary shrinks a compressed column of numbers, estimated by a sample.

    A dictionary stores each distinct value of a row group once, and an index for each row. The
    number of distinct values is extrapolated from the sample's distinct values, and those that
    occur once or twice in it (Colwell et al., "Models and estimators linking individual-based and
    sample-based rarefaction, extrapolation and comparison of assemblages", 2012, equation 9). A
    frequent value therefore does not make other values seem to repeat more often.

    Args:
        values: Sampled values of a column.
        group: Row group of each value.
        rows: Number of rows in a row group.

    Returns:
        False if a dictionary saves less than :data:`SAVED`. True if the sample is too small, and
        for texts, since they are longer than their index.
    """
    if not _number(values.distinct.type):
        return True
    valid = np.flatnonzero(values.ranks)
    valid = valid[argsort(group[valid])]
    group, ranks = group[valid], narrow(values.ranks[valid])
    groups = len(np.unique(group))
    if groups == len(valid):
        return True
    by_value = np.lexsort((ranks, narrow(group)))
    changes = (np.diff(group[by_value]) != 0) | (np.diff(ranks[by_value]) != 0)
    starts = np.flatnonzero(np.append([True], changes))
    first, counts = by_value[starts], np.diff(np.append(starts, len(valid)))
    rows = max(1, rows * len(valid) // len(values.ranks))
    distinct = distinct_values(counts, rows * groups) / groups
    plain = _measure_compressed(values.value_of(ranks))
    once = _measure_compressed(values.value_of(ranks[np.sort(first)]))
    index_bytes = np.log2(max(1.0, distinct)) / 8
    return bool(once * distinct / rows + index_bytes <= (1 - SAVED) * plain)


def _number(type_: pa.DataType) -> bool:
    kind = kind_of(type_)
    return kind is not None and kind is not BOOLEAN and not kind.is_bytes


def distinct_values(counts: Ints, rows: int) -> float:
    """Estimate the distinct values in *rows* rows from the *counts* of each sampled value."""
    sampled, once, twice = counts.sum(), (counts == 1).sum(), (counts == 2).sum()  # noqa: PLR2004
    unseen = once * (once - 1) / (2 * (twice + 1))
    if unseen == 0:
        return len(counts)
    missed = (1 - once / (sampled * unseen + once)) ** max(0, rows - sampled)
    return float(len(counts) + unseen * (1 - missed))


def _measure_compressed(values: pa.Array) -> float:
    """Return compressed bytes per value, in the order in which values are written."""
    return len(pa.compress(_encode_plain(values), codec=_CODEC, asbytes=True)) / len(values)


def _encode_plain(values: pa.Array) -> bytes:
    """Return numbers in Parquet's plain encoding, with at least 32 bits each (Encodings.md)."""
    type_ = values.type
    if kind_of(type_) is INTEGER and type_.bit_width < 32:  # noqa: PLR2004
        values = values.cast(pa.int32())
    stored: bytes = values.buffers()[1].to_pybytes()
    is_decimal = kind_of(type_) is DECIMAL and type_.bit_width == 128  # noqa: PLR2004
    if is_decimal and type_.precision <= _DIGITS[np.int64]:
        width = np.int32 if type_.precision <= _DIGITS[np.int32] else np.int64
        stored = np.frombuffer(stored, np.int64)[::2].astype(width).tobytes()
    return stored
