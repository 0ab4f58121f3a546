"""Tables that queries join with a table and filter: which range of keys a filter leaves.

Readers with dynamic filters read the filtered table first, and pass the lowest and the highest key
of the rows that match to the scan of the large table.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import NameParts, join
from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.inspection.query_log import KeyRange
from zadapter.layout.filters import Filter, Mask, rank_filters
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.texts import text

AT_ONCE = 100
"""Number of filters whose matches are found at once."""


@dataclass(frozen=True, slots=True)
class JoinedFilter:
    """A filter of a table that a query joins with a table of facts by equal keys."""

    column: NameParts
    """The column of the table of facts."""
    table: str
    """The other table; the same text for the same table."""
    key: NameParts
    """The column that equals *column*."""
    predicate: Predicate
    """The filter, which restricts some of the columns *filtered*."""

    def __str__(self) -> str:
        return f"{join(self.column)} IN ({self.name} WHERE {text(self.predicate)})"

    @property
    def name(self) -> str:
        """The other table's name."""
        return self.table.rstrip("/").rpartition("/")[2]

    @property
    def filtered(self) -> tuple[NameParts, ...]:
        """Columns that have a range in each of the rows that match; none: the keys have none."""
        found = boxes(self.predicate)
        return tuple(sorted({part.column for box in found for part in box})) if all(found) else ()

    @property
    def through(self) -> str:
        """The other table and its filtered columns, as text."""
        return f"{self.name}.{', '.join(map(join, self.filtered))}"

    def to_range(
        self, found: tuple[pa.Scalar, pa.Scalar, float] | None, unread: str = ""
    ) -> KeyRange:
        """Return the range of keys.

        Args:
            found: The range; None: the other table was not read.
            unread: Why it was not read.
        """
        low, high, matching = found or (None, None, 1.0)
        return KeyRange(self.column, self.through, low, high, matching, unread)


@dataclass(frozen=True, eq=False)
class Dimension:
    """The lowest and the highest key for each combination of the values of some columns.

    Attributes:
        columns: These columns.
        values: Values of each of them.
        low: Lowest key of each combination; null where it has none.
        high: Highest key.
        keys: Number of keys.
    """

    columns: tuple[NameParts, ...]
    values: tuple[pa.Array, ...]
    low: pa.Array
    high: pa.Array
    keys: Ints

    def find_ranges(
        self, predicates: Sequence[Predicate]
    ) -> Iterator[tuple[pa.Scalar, pa.Scalar, float]]:
        """Yield the lowest and the highest key that match each filter, and the share that match.

        Rows that may match count, so a range may be too wide, never too narrow. Both keys are null
        if no row matches.
        """
        for at in range(0, len(predicates), AT_ONCE):
            some = predicates[at : at + AT_ONCE]
            for matches in self._find_matches([Filter(boxes(each), 1.0) for each in some]).T:
                kept, keys = pa.array(matches), int(self.keys[matches].sum())
                yield (
                    pc.min(self.low.filter(kept)),
                    pc.max(self.high.filter(kept)),
                    keys / max(1, int(self.keys.sum())),
                )

    @cached_property
    def _ranked(self) -> list[Ranked]:
        return [rank(each) for each in self.values]

    def _find_matches(self, filters: Sequence[Filter]) -> Mask:
        """Return which combinations may match filters, shape (combinations, filters)."""
        asked = rank_filters(filters, self.columns, [each.distinct for each in self._ranked])
        ranks = np.stack([each.ranks for each in self._ranked], axis=1)
        return asked.hits(ranks, ranks)
