"""Columns whose Bloom filters let the equality filters of a log skip row groups."""

from collections.abc import Sequence

import numpy as np

from zadapter.base.names import NameParts, join
from zadapter.base.ranks import Ranked
from zadapter.inspection.advice import BloomFilterEffect
from zadapter.inspection.advise.judging import Divided, SampledTable
from zadapter.layout.filters import Filter, Floats, Keys, Range, rank_filters
from zadapter.table.bloom_filters import FPP, refusal, size_of
from zadapter.table.encoding import distinct_values
from zadapter.table.file_stats import row_counts
from zadapter.table.snapshot import Snapshot

LEAST = 0.05
"""Minimum share that a column's filters save of what all queries read by row group."""


def bloom_filters(
    snapshot: Snapshot,
    table: SampledTable,
    keys: Keys,
    older: Sequence[Filter],
    newer: Sequence[Filter],
) -> dict[str, BloomFilterEffect]:
    """Return the columns whose Bloom filters pay by the older part of a log, best first.

    Args:
        snapshot: The table.
        table: Sampled rows of it.
        keys: The layout that the Bloom filters are written with.
        older: Filters by which the columns are chosen.
        newer: Filters by which the effects are predicted.
    """
    _, row_groups = table.divide_rows(keys)
    files = table.count_files(keys)
    wanted = dict[str, tuple[float, BloomFilterEffect]]()
    for at, column in enumerate(table.columns):
        values = table.values[at]
        if column in table.partition or refusal(column, values.type, snapshot.physical):
            continue
        predicted = _Column(table, row_groups, column, row_groups.ranked[at], files)
        gain, effect = predicted.gain(older), predicted.effect(newer)
        if gain >= LEAST and effect is not None:
            wanted[join(column)] = gain, effect
    best_first = sorted(wanted.items(), key=lambda item: -item[1][0])
    return {name: effect for name, (_, effect) in best_first}


class _Column:
    """Bloom filters of one column.

    A value lies in some of the row groups whose bounds hold it: in each of its rows' own one, if
    the rows are spread over them evenly. Of the others, a Bloom filter lets a reader open few.
    """

    def __init__(
        self,
        table: SampledTable,
        row_groups: Divided,
        column: NameParts,
        ranked: Ranked,
        files: int,
    ) -> None:
        self._row_groups, self._column, self._ranked = row_groups, column, ranked
        self._rows = int(row_counts(table.files).sum())
        self._count = files * table.row_groups_to_write
        self._sampled = np.bincount(ranked.ranks, minlength=len(ranked.distinct) + 1)
        self._fraction = len(ranked.ranks) / max(1, self._rows)
        valid = round(self._sampled[1:].sum() / max(self._fraction, 1e-9))
        self._usual = valid / max(1.0, distinct_values(self._sampled[1:], valid))

    def gain(self, filters: Sequence[Filter]) -> float:
        """Return the share that the filters save of what all queries read by row group."""
        before, after = self._shares(filters)
        weights = np.array([each.weight for each in filters])
        return float(((before - after) @ weights) / max(1e-9, before @ weights))

    def effect(self, filters: Sequence[Filter]) -> BloomFilterEffect | None:
        """Return the predicted effect on queries that look for values; None if there are none."""
        asked = np.array([find_points(each, self._column) is not None for each in filters])
        if not asked.any():
            return None
        before, after = self._shares(filters)
        weights = np.array([each.weight for each in filters])
        return BloomFilterEffect(
            weight=float(weights[asked].sum() / weights.sum()),
            row_group_share=float(np.average(before[asked], weights=weights[asked])),
            row_group_share_filtered=float(np.average(after[asked], weights=weights[asked])),
            bytes=self._count * size_of(-(-self._rows // self._count)),
        )

    def _shares(self, filters: Sequence[Filter]) -> tuple[Floats, Floats]:
        """Return the share of the rows in row groups that each filter reads, without and with."""
        before = self._row_groups.shares(filters)
        matching = self._matching_rows(filters)
        opened = np.maximum(1.0, before * self._count)
        held = 1 - (1 - 1 / opened) ** matching
        filtered = before * (held + (1 - held) * FPP)
        return before, np.where(np.isnan(matching), before, filtered)

    def _matching_rows(self, filters: Sequence[Filter]) -> Floats:
        """Estimate the rows with the values that each filter looks for; NaN: it looks for none.

        A value is in as many rows as others, corrected by how often it is in the sample: rows of a
        value are taken to be distributed exponentially, and those in the sample are Poisson.
        """
        found = np.full(len(filters), np.nan)
        points = {n: p for n, f in enumerate(filters) if (p := find_points(f, self._column))}
        if not points:
            return found
        alone = [Filter(((*ranges,),), 1.0) for ranges in points.values()]
        asked = rank_filters(alone, [self._column], [self._ranked.distinct])
        seen = np.where(asked.low <= asked.high, self._sampled[asked.low % len(self._sampled)], 0)
        rows = (seen + 1) / (self._fraction + 1 / max(1.0, self._usual))
        found[list(points)] = np.bincount(asked.filter, rows, minlength=len(points))
        return found


def find_points(asked: Filter, column: NameParts) -> list[Range] | None:
    """Return the values that a filter looks for in a column; None: other rows may match, too."""
    found = list[Range]()
    for box in asked.boxes:
        ranges = [part for part in box if part.column == column]
        if not ranges or not all(map(_is_point, ranges)):
            return None
        found += ranges
    return list(dict.fromkeys(found)) or None


def _is_point(part: Range) -> bool:
    return part.low is not None and part.low == part.high and part.closed == "both"
