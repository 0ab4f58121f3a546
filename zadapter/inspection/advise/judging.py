"""What the filters of a log read of a table: as it is, and as layouts would place its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import Parts, join
from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Floats, Keys, rank_filters
from zadapter.layout.layout import Request
from zadapter.layout.predict import (
    BOXES,
    Boxes,
    boxes_of_rows,
    ranked_with_stats,
    shares_by_filter,
)
from zadapter.planning.options import ROW_GROUPS
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The row groups of some of a table's files.

    Attributes:
        files: These files.
        table: Their row groups, as a file table.
    """

    files: pa.Table
    table: pa.Table


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
        row_groups: Row groups of some of its files; None: they are unknown.
    """

    columns: tuple[Parts, ...]
    values: tuple[pa.Array, ...]
    files: pa.Table = field(repr=False)
    roots: tuple[tuple[str | None, ...], ...]
    root_of: Ints = field(repr=False)
    budget: Ints
    target_file_size: int
    partition: frozenset[Parts]
    row_groups: RowGroups | None = field(default=None, repr=False)

    @cached_property
    def _ranked(self) -> list[Ranked]:
        return [rank(column) for column in self.values]

    @cached_property
    def now(self) -> "Divided":
        """The rows as today's files divide them."""
        return self._in(self.files)

    def row_group_share(self, filters: Sequence[Filter]) -> float | None:
        """Return the mean share of the rows in today's row groups that filters cannot skip."""
        if self.row_groups is None:
            return None
        by_file = mean_share(self.now.shares(filters), filters)
        # the files that are known may overlap less or more than all files do
        known, within = (
            mean_share(self._in(files).shares(filters), filters)
            for files in (self.row_groups.files, self.row_groups.table)
        )
        return by_file * (within / known if known else 1.0)

    def _in(self, files: pa.Table) -> "Divided":
        """Return the rows as files, or row groups, divide them."""
        some = file_stats.spread(files, BOXES)
        stats = [self._stats(some, column) for column in self.columns]
        ranked, boxes = ranked_with_stats(self.values, stats, row_counts(some))
        return Divided(self.columns, ranked, boxes)

    def _stats(self, files: pa.Table, column: Parts) -> pa.StructArray | None:
        if column not in self.partition:
            return file_stats.column(files, column)
        held = file_stats.partition(files, join(column))
        nulls = pc.if_else(pc.is_null(held), pa.array(row_counts(files)), 0)
        return pa.StructArray.from_arrays([held, held, nulls], ["min", "max", "nulls"])

    def then(self, keys: Keys) -> "tuple[Divided, Divided]":
        """Return the rows as files of a layout would divide them, and as their row groups would."""
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
        return self._divided(file, layout.files), self._divided(group, int(per_file.sum()))

    def _divided(self, part_of: Ints, count: int) -> "Divided":
        ranks = np.stack([each.ranks for each in self._ranked], axis=1)
        boxes = boxes_of_rows(ranks, part_of, count)
        held = boxes.rows > 0
        filled = Boxes(boxes.low[held], boxes.high[held], boxes.rows[held])
        return Divided(self.columns, self._ranked, filled)


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """A table's rows in files or row groups.

    Attributes:
        columns: The columns that the boxes have.
        ranked: Known values of each column.
        boxes: The files or row groups, in these ranks.
    """

    columns: tuple[Parts, ...]
    ranked: Sequence[Ranked]
    boxes: Boxes

    def shares(self, filters: Sequence[Filter]) -> Floats:
        """Return the share of the rows that each filter cannot skip."""
        asked = rank_filters(filters, self.columns, [each.distinct for each in self.ranked])
        return shares_by_filter(self.boxes, asked)


def mean_share(shares: Floats, filters: Sequence[Filter]) -> float:
    """Return the mean of the shares that filters read, by the weights of the filters."""
    return float(np.average(shares, weights=[each.weight for each in filters]))
