"""What the filters of a log read of a table: as it is, and as layouts would place its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from zadapter.base.names import Parts, join
from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Floats, Keys, rank_filters
from zadapter.layout.layout import Request
from zadapter.planning.predict import (
    Boxes,
    boxes_of_rows,
    ranked_with_stats,
    shares_by_filter,
)
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts

ROW_GROUPS = 16
"""Row groups of a file, as ``optimize`` writes them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledTable:
    """Rows of a table, and its files.

    Attributes:
        columns: Columns that can be keys, or that partitions hold one value of.
        values: Sampled values of each of them.
        files: The table's files, with stats of these columns.
        roots: The partitions.
        root_of: Partition of each sampled row.
        budget: Number of files to write in each partition.
        target_file_size: Target size of these files, in bytes.
        partition: Which of *columns* partitions hold one value of.
    """

    columns: tuple[Parts, ...]
    values: tuple[pa.Array, ...]
    files: pa.Table = field(repr=False)
    roots: tuple[tuple[str | None, ...], ...]
    root_of: Ints = field(repr=False)
    budget: Ints
    target_file_size: int
    partition: frozenset[Parts]

    @cached_property
    def _ranked(self) -> list[Ranked]:
        return [rank(column) for column in self.values]

    def now(self, filters: Sequence[Filter]) -> Floats:
        """Return the share of rows in today's files that each filter cannot skip."""
        stats = [self._stats(column) for column in self.columns]
        ranked, boxes = ranked_with_stats(self.values, stats, row_counts(self.files))
        asked = rank_filters(filters, self.columns, [each.distinct for each in ranked])
        return shares_by_filter(boxes, asked)

    def _stats(self, column: Parts) -> pa.StructArray | None:
        if column not in self.partition:
            return file_stats.column(self.files, column)
        held = self.files["partition"].combine_chunks().field(join(column))
        rows = pa.array(row_counts(self.files))
        nulls = pa.compute.if_else(pa.compute.is_null(held), rows, 0)
        return pa.StructArray.from_arrays([held, held, nulls], ["min", "max", "nulls"])

    def then(self, keys: Keys, filters: Sequence[Filter]) -> tuple[Floats, Floats]:
        """Return the shares that each filter will not skip, by file and by row group."""
        columns = {join(column): at for at, column in enumerate(self.columns)}
        at = [columns[name] for name in keys.weights]
        request = Request(
            columns=tuple(self.columns[number] for number in at),
            weights=tuple(keys.weights.values()),
            target_file_size=self.target_file_size,
            row_groups=ROW_GROUPS,
            filters=keys.filters,
        )
        sample = [self.values[number] for number in at]
        layout = fit(request, sample, self.roots, self.root_of, self.budget.tolist())
        leaf = assign.leaves(layout, sample, self.root_of)
        file = assign.files(layout, leaf, np.arange(len(leaf)))
        per_file = np.full(layout.files, ROW_GROUPS)
        group = assign.row_groups(layout, leaf, file, per_file)
        asked = rank_filters(filters, self.columns, [each.distinct for each in self._ranked])
        by_file, by_group = (
            shares_by_filter(self._boxes(part_of, count), asked)
            for part_of, count in ((file, layout.files), (group, int(per_file.sum())))
        )
        return by_file, by_group

    def _boxes(self, part_of: Ints, count: int) -> Boxes:
        ranks = np.stack([each.ranks for each in self._ranked], axis=1)
        boxes = boxes_of_rows(ranks, part_of, count)
        held = boxes.rows > 0
        return replace(boxes, low=boxes.low[held], high=boxes.high[held], rows=boxes.rows[held])
