"""What the filters of a log read of a table: as it is, and as layouts would place its rows.

Both are measured on a sample of the partitions with the most rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.contract import Backend
from zadapter.base.names import NameParts, join, leaves, split
from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Floats, Keys, Mask, rank_filters
from zadapter.layout.layout import Layout, Request
from zadapter.layout.predict import (
    BOXES,
    Boxes,
    boxes_of_rows,
    boxes_of_stats,
    extend,
    shares_by_filter,
)
from zadapter.planning.file_groups import find_roots, roots_of
from zadapter.planning.file_size import (
    choose_file_size,
    counted_sizes,
    find_requests,
    present_request,
    target_file_size,
)
from zadapter.planning.options import ROW_GROUPS, Options
from zadapter.spark.footer_reader import pick_files, read_row_groups
from zadapter.spark.sample import files_to_read, sample, sample_size
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts, total
from zadapter.table.snapshot import Snapshot

MIN_ROWS = 100_000
"""Minimum number of sampled rows."""
MOST_PARTITIONS = 16
"""Maximum number of partitions that layouts are predicted in: those with the most rows."""
FEWEST_ROWS = 50
"""Minimum number of sampled rows of a file that is predicted."""
FOOTERS = 64
"""Maximum number of files whose footers are read."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Sampled rows of some partitions.

    Attributes:
        rows: The rows.
        roots: The partitions.
        root_of: Partition of each row.
    """

    rows: pa.Table
    roots: tuple[tuple[str | None, ...], ...]
    root_of: Ints

    @classmethod
    def of(cls, drawn: pa.Table, snapshot: Snapshot) -> "_Rows":
        """Keep the partitions with the most rows."""
        held = [drawn[join((name,))].combine_chunks() for name in snapshot.partition]
        roots, root_of = roots_of(held, drawn.num_rows)
        counts = np.bincount(root_of, minlength=len(roots))
        kept = np.sort(np.argsort(-counts, kind="stable")[:MOST_PARTITIONS])
        number = np.full(len(roots), -1)
        number[kept] = np.arange(len(kept))
        number_of = number[root_of]
        rows = drawn.filter(pa.array(number_of >= 0))
        return cls(rows, tuple(roots[at] for at in kept) or ((),), number_of[number_of >= 0])

    def of_column(self, parts: NameParts) -> pa.Array:
        """Return the values of a column."""
        return self.rows[join(parts)].combine_chunks()

    def budget(self, files: int) -> Ints:
        """Share files among the partitions; a file has enough rows for a prediction."""
        counts = np.bincount(self.root_of, minlength=len(self.roots))
        most = np.maximum(1, counts // FEWEST_ROWS)
        exact = files * counts / max(1, int(counts.sum()))
        return np.clip(np.rint(exact), 1, most).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class SampledRowGroups:
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
        budget: Number of files that a layout of other columns gets in each partition.
        target_file_size: Target size of these files, in bytes.
        budgets: The same numbers for columns of which a layout is stored, which has its own size.
        sizes: These sizes.
        partition: Which of *columns* partitions hold one value of.
        row_groups: Row groups of some of its files; None: they are unknown.
        row_groups_to_write: Number of row groups of a file that a layout gets.
        counted: Bytes of *files*, as they count for the number of files to write; None: all.
        size_of_all: Bytes of the files of all partitions; None: *files* are all.
    """

    columns: tuple[NameParts, ...]
    values: tuple[pa.Array, ...]
    files: pa.Table = field(repr=False)
    roots: tuple[tuple[str | None, ...], ...]
    root_of: Ints = field(repr=False)
    budget: Ints
    target_file_size: int
    partition: frozenset[NameParts]
    budgets: Mapping[tuple[NameParts, ...], Ints] = field(default_factory=dict, repr=False)
    sizes: Mapping[tuple[NameParts, ...], int] = field(default_factory=dict, repr=False)
    row_groups: SampledRowGroups | None = field(default=None, repr=False)
    row_groups_to_write: int = ROW_GROUPS
    counted: int | None = None
    size_of_all: int | None = None

    @property
    def size(self) -> int:
        """Bytes of the table, with the partitions that are not sampled."""
        return total(self.files, "size") if self.size_of_all is None else self.size_of_all

    @cached_property
    def _ranked(self) -> list[Ranked]:
        return [rank(column) for column in self.values]

    @cached_property
    def current_files(self) -> "Divided":
        """The rows as today's files divide them."""
        return self._in(self.files)

    def find_matches(self, filters: Sequence[Filter]) -> Mask:
        """Return which of the sampled rows may match filters, shape (rows, filters)."""
        asked = rank_filters(filters, self.columns, [each.distinct for each in self._ranked])
        ranks = np.stack([each.ranks for each in self._ranked], axis=1)
        return asked.hits(ranks, ranks) | ~np.isin(np.arange(len(filters)), asked.filter)

    def find_end(self, column: NameParts, rows: Mask, count: int, *, descending: bool) -> pa.Scalar:
        """Return the last of the first values of a column; null if there are too few.

        Args:
            column: The column.
            rows: The sampled rows of which these are.
            count: Number of rows of the table.
            descending: Whether the first values are the highest.
        """
        ranked = self._ranked[self.columns.index(column)]
        held = np.sort(ranked.ranks[rows & (ranked.ranks > 0)])
        # of few rows, none is in the sample; the first sampled row is beyond them
        first = max(1, ceil(count * len(ranked.ranks) / max(1, int(row_counts(self.files).sum()))))
        if first > len(held):
            return pa.scalar(None, self.values[self.columns.index(column)].type)
        return ranked.distinct[int(held[-first] if descending else held[first - 1]) - 1]

    def row_group_share(self, filters: Sequence[Filter]) -> float | None:
        """Return the mean share of the rows in today's row groups that filters cannot skip."""
        if self.row_groups is None:
            return None
        by_file = mean_share(self.current_files.shares(filters), filters)
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
        ranked = extend(self._ranked, stats)
        return Divided(self.columns, ranked, boxes_of_stats(stats, row_counts(some), ranked))

    def _stats(self, files: pa.Table, column: NameParts) -> pa.StructArray | None:
        if column not in self.partition:
            return file_stats.column(files, column)
        held = file_stats.partition(files, join(column))
        nulls = pc.if_else(pc.is_null(held), pa.array(row_counts(files)), 0)
        return pa.StructArray.from_arrays([held, held, nulls], ["min", "max", "nulls"])

    def budget_of(self, keys: Keys) -> Ints:
        """Return the number of files that a layout gets in each partition."""
        return self.budgets.get(_columns(keys), self.budget)

    def size_of(self, keys: Keys) -> int:
        """Return the target size of the files of a layout, in bytes."""
        return self.sizes.get(_columns(keys), self.target_file_size)

    def count_files(self, keys: Keys) -> int:
        """Return the number of files that a rewrite by a layout would write."""
        counted = total(self.files, "size") if self.counted is None else self.counted
        return max(1, round(counted / self.size_of(keys)))

    def scale_budgets(self, scale: Callable[[Ints], Ints]) -> "SampledTable":
        """Return the table with other numbers of files to write."""
        budgets = {columns: scale(budget) for columns, budget in self.budgets.items()}
        return replace(self, budget=scale(self.budget), budgets=budgets)

    def fit_layout(self, keys: Keys) -> Layout:
        """Return a layout, fitted to the rows."""
        columns = _columns(keys)
        request = Request(
            columns=columns,
            weights=tuple(keys.weights.values()),
            target_file_size=self.size_of(keys),
            row_groups=self.row_groups_to_write,
            filters=keys.filters,
        )
        sample = self._ranked_of(columns)
        return fit(request, sample, self.roots, self.root_of, self.budget_of(keys).tolist())

    def _ranked_of(self, columns: Sequence[NameParts]) -> list[Ranked]:
        return [self._ranked[self.columns.index(column)] for column in columns]

    def divide_rows(self, keys: Keys) -> "tuple[Divided, Divided]":
        """Return the rows as files of a layout would divide them, and as their row groups would."""
        layout = self.fit_layout(keys)
        leaf = assign.leaves(layout, self._ranked_of(layout.request.columns), self.root_of)
        file = assign.files(layout, leaf, np.arange(len(leaf)))
        per_file = np.full(layout.files, self.row_groups_to_write)
        group = assign.row_groups(layout, leaf, file, per_file)
        return self._divide(file, layout.files), self._divide(group, int(per_file.sum()))

    def _divide(self, part_of: Ints, count: int) -> "Divided":
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

    columns: tuple[NameParts, ...]
    ranked: Sequence[Ranked]
    boxes: Boxes

    def shares(self, filters: Sequence[Filter]) -> Floats:
        """Return the share of the rows that each filter cannot skip."""
        asked = rank_filters(filters, self.columns, [each.distinct for each in self.ranked])
        return shares_by_filter(self.boxes, asked)


def _columns(keys: Keys) -> tuple[NameParts, ...]:
    return tuple(map(split, keys.weights))


def mean_share(shares: Floats, filters: Sequence[Filter]) -> float:
    """Return the mean of the shares that filters read, by the weights of the filters."""
    return float(np.average(shares, weights=[each.weight for each in filters]))


def sample_table(
    backend: Backend, snapshot: Snapshot, columns: tuple[NameParts, ...], options: Options
) -> tuple[SampledTable, Request | None]:
    """Sample columns of the partitions with the most rows.

    Args:
        backend: The table's backend.
        snapshot: The table.
        columns: The columns.
        options: The options of the rewrite, which decide the size of its files.

    Returns:
        The sample, with the key columns of the table's layout; and the request of that layout.
    """
    files = backend.files(snapshot, columns)
    request = present_request(files, snapshot.layouts)
    if request is not None and not {*request.columns} <= {c for c, _ in leaves(snapshot.schema)}:
        request = None  # the table has lost a column of its layout
    if request is not None:
        columns = tuple(dict.fromkeys((*columns, *request.columns)))
        files = backend.files(snapshot, columns)
    size_of_all, counts = total(files, "size"), FileCounts.of(files, snapshot, options, request)
    drawn = _sample_rows(backend, snapshot, files, columns, counts.most())
    rows = _Rows.of(drawn, snapshot)
    held = [file_stats.partition(files, name) for name in snapshot.partition]
    kept = find_roots(list(rows.roots), held, files.num_rows) >= 0
    files, counts = files.filter(pa.array(kept)), counts.within(kept)
    known = {field.name for field in snapshot.schema}
    identity = [(name,) for name in snapshot.partition if name in known]
    table = SampledTable(
        columns=(*columns, *identity),
        values=tuple(rows.of_column(parts) for parts in (*columns, *identity)),
        files=files,
        roots=rows.roots,
        root_of=rows.root_of,
        budget=rows.budget(counts.of_size(counts.size)),
        target_file_size=counts.size,
        partition=frozenset(identity),
        budgets={of: rows.budget(counts.of_size(size)) for of, size in counts.sizes.items()},
        sizes=counts.sizes,
        row_groups=_row_groups(backend, snapshot, files, columns),
        row_groups_to_write=int(options.row_groups),
        counted=int(counts.counted.sum()),
        size_of_all=size_of_all,
    )
    return table, request


@dataclass(frozen=True, slots=True, eq=False)
class FileCounts:
    """Into how many files a rewrite would cut files.

    Attributes:
        counted: Bytes of each file, as they count for this number.
        size: Target size of the files of a layout of other columns than a stored one has.
        sizes: Target size of the files of layouts of the columns of stored ones.
    """

    counted: Ints
    size: int
    sizes: Mapping[tuple[NameParts, ...], int]

    @classmethod
    def of(
        cls, files: pa.Table, snapshot: Snapshot, options: Options, present: Request | None
    ) -> "FileCounts":
        """Look up the sizes that the rewrite would choose."""
        layouts, limit = snapshot.layouts, snapshot.target_file_size
        stated = options.file_bytes
        if stated is not None:
            return cls(files["size"].to_numpy(), stated, {})
        sizes = {
            each.columns: choose_file_size(files, layouts, each.columns, each.curve, limit)
            for each in (*find_requests(files, layouts), present)
            if each is not None and (each is present or each.curve.value == options.curve)
        }
        counted = counted_sizes(files, layouts)
        return cls(counted, target_file_size(int(counted.sum()), limit), sizes)

    def of_size(self, size: int) -> int:
        """Return the number of files of a target size."""
        return max(1, round(int(self.counted.sum()) / size))

    def most(self) -> int:
        """Return the largest of the numbers."""
        return self.of_size(min([self.size, *self.sizes.values()]))

    def within(self, kept: Mask) -> "FileCounts":
        """Return the numbers for some of the files."""
        return replace(self, counted=self.counted[kept])


def _row_groups(
    backend: Backend, snapshot: Snapshot, files: pa.Table, columns: tuple[NameParts, ...]
) -> SampledRowGroups | None:
    picked = pick_files(snapshot, files, FOOTERS, ROW_GROUPS)
    table = read_row_groups(backend, snapshot, picked, columns)
    return None if table is None else SampledRowGroups(picked, table)


def _sample_rows(
    backend: Backend,
    snapshot: Snapshot,
    files: pa.Table,
    columns: tuple[NameParts, ...],
    cut_into: int,
) -> pa.Table:
    """Draw enough rows for a number of files."""
    read = files_to_read(files, columns)
    fraction = max(MIN_ROWS, sample_size(cut_into)) / max(1, int(row_counts(read).sum()))
    partition: list[NameParts] = [(name,) for name in snapshot.partition]
    return sample(backend.read(snapshot, read), [*columns, *partition], min(1.0, fraction))
