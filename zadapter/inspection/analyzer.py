"""Computes an analysis from the file table of a snapshot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import NameParts, join
from zadapter.base.ranks import Ints
from zadapter.inspection.analysis import Analysis, Partition, RowGroups, SortedRun
from zadapter.inspection.column_facts import ColumnFacts, column_facts
from zadapter.inspection.pending_rewrite import PendingRewrite, find_pending
from zadapter.inspection.query_log import QueryLog
from zadapter.inspection.reads import FileTotals, Query, reads, totals
from zadapter.layout.layout import Request
from zadapter.planning.maintenance import Limits
from zadapter.planning.merges import Renewal
from zadapter.planning.reading import filter_weights
from zadapter.table import file_stats
from zadapter.table.file_stats import find_constant, row_counts, total
from zadapter.table.overlap import depth as depths
from zadapter.table.overlap.depth import Depth, Depths, partition_numbers
from zadapter.table.overlap.extents import Extent, Space, extent, shares_by_column, space
from zadapter.table.snapshot import Snapshot

WORST = 10
"""Number of partitions that are listed."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The files to analyze, and what is known of the table."""

    snapshot: Snapshot
    files: pa.Table
    columns: tuple[NameParts, ...]
    """The columns to analyze, the key columns first."""
    request: Request | None
    """The layout of the key columns; None for no key columns."""
    table_files: int
    """Number of live files of the table, of which *files* are those that may match a condition."""
    limits: Limits
    target_file_size: int
    left_out: Mapping[str, str]
    """Columns that are not analyzed, and why."""
    note: str
    """What could not be determined, and why."""

    @cached_property
    def rows(self) -> Ints:
        """Rows of each file, estimated where the log has no count."""
        return row_counts(self.files)

    @cached_property
    def extents(self) -> list[Extent]:
        """The range of each column in each file."""
        return [extent(self.files, column) for column in self.columns]

    @cached_property
    def _partitions(self) -> tuple[Ints, list[str]]:
        return partition_numbers(self.files, tuple(self.snapshot.partition))

    @cached_property
    def depths(self) -> list[Depths]:
        """The depth of each file in each column."""
        number, _ = self._partitions
        return [depths.depths(each, number) for each in self.extents]

    @property
    def keys(self) -> int:
        """Number of key columns."""
        return 0 if self.request is None else len(self.request.columns)

    @cached_property
    def every(self) -> Space:
        """The boxes of the files in all columns."""
        return space(self.extents, self.rows)

    @cached_property
    def space(self) -> Space:
        """The boxes of the files in the key columns."""
        weights = None if self.request is None else filter_weights(self.request)
        every, keys = self.every.boxes, slice(self.keys)
        return Space(replace(every, low=every.low[:, keys], high=every.high[:, keys]), weights)

    def column_facts(self) -> tuple[ColumnFacts, ...]:
        """Return the facts of each column."""
        if not self.files.num_rows or not self.columns:
            return ()
        shares = shares_by_column(self.every)
        found = zip(self.columns, self.extents, self.depths, shares.tolist(), strict=True)
        return tuple(column_facts(self.files, *each) for each in found)

    def depth(self) -> Depth | None:
        """Return the depth in all key columns."""
        number, _ = self._partitions
        return depths.box_depths(self.space.boxes, number) if self.keys else None

    def find_pending(self) -> PendingRewrite | None:
        """Return what ``optimize`` would rewrite, judged by the bounds of files."""
        if self.request is None or not self.files.num_rows:
            return None
        names = tuple(self.snapshot.partition)
        renewal = Renewal.of(self.files, self.snapshot.layouts, self.request)
        return find_pending(self.files, self.request, names, self.limits, self.space, renewal)

    def worst(self) -> tuple[int, tuple[Partition, ...]]:
        """Return the number of partitions, and those whose files overlap most."""
        number, names = self._partitions
        count = len(names) if self.files.num_rows else 0
        chosen = self.depths[: self.keys or None]
        mean = np.zeros(count)
        files = np.bincount(number, minlength=count)
        for each in chosen:
            known = np.bincount(number, each.most > 0, minlength=count)
            mean += np.bincount(number, each.mean, minlength=count) / np.maximum(known, 1)
        mean /= max(1, len(chosen))
        sizes = np.bincount(number, self.files["size"].to_numpy(), minlength=count)
        rows = np.bincount(number, self.rows, minlength=count)
        order = np.lexsort((-sizes, -mean))[:WORST].tolist()
        return count, tuple(
            Partition(
                partition=names[at],
                totals=FileTotals(files=int(files[at]), rows=int(rows[at]), bytes=int(sizes[at])),
                depth=float(mean[at]),
            )
            for at in order
        )

    def runs(self) -> tuple[SortedRun, ...]:
        """Return the files by layout, those of no layout first, then by bytes."""
        layouts = pa.chunked_array(self.files["layout"]).combine_chunks().dictionary_encode()
        number = layouts.indices.fill_null(-1).to_numpy().astype(np.int64) + 1
        ids = [None, *layouts.dictionary.to_pylist()]
        sums = [
            np.bincount(number, weights, minlength=len(ids))
            for weights in (None, self.rows, self.files["size"].to_numpy())
        ]
        found = [
            SortedRun(
                layout=name,
                columns=self._columns_of(name),
                totals=FileTotals(files=int(files), rows=int(rows), bytes=int(size)),
            )
            for name, files, rows, size in zip(ids, *sums, strict=True)
        ]
        return (found[0], *sorted(found[1:], key=lambda run: -run.totals.bytes))

    def _columns_of(self, layout: str | None) -> tuple[str, ...]:
        """Return the key columns of a layout: the first half of its id is the request's."""
        request = self.request
        if layout is None or request is None or not layout.startswith(request.id):
            return ()
        return tuple(map(join, request.columns))


def analysis(
    subject: Subject,
    *,
    where: str | None,
    queries: Sequence[Query],
    log: QueryLog | None = None,
    row_groups: RowGroups | None,
    rewrite: PendingRewrite | None,
) -> Analysis:
    """Return the analysis of a table.

    Args:
        subject: The files, and what is known of the table.
        where: The condition that they may match.
        queries: What queries read.
        log: The log that they come from.
        row_groups: What filters read by row group, if footers were read.
        rewrite: What would be rewritten, if that is known.
    """
    files, snapshot = subject.files, subject.snapshot
    partitions, worst = subject.worst()
    keys = subject.keys and files.num_rows
    share = subject.space.share_now if keys else None
    return Analysis(
        table=snapshot.table,
        format=snapshot.format,
        version=snapshot.version,
        by=tuple(map(join, subject.columns[: subject.keys])),
        alike=tuple(map(join, find_constant(files, subject.columns[: subject.keys]))),
        where=where,
        totals=totals(files),
        table_files=subject.table_files,
        row_groups=row_groups,
        columns=subject.column_facts(),
        left_out=subject.left_out,
        depth=subject.depth() if keys else None,
        share=share,
        sampled=bool(keys) and subject.space.sampled,
        queries=tuple(queries),
        reads=reads(log, queries) if log is not None and queries else None,
        runs=subject.runs(),
        deleted_rows=_count_deleted_rows(files),
        deletes=files.num_rows - files["deletes"].null_count,
        small_files=int(pc.sum(pc.less(files["size"], subject.target_file_size // 2)).as_py() or 0),
        target_file_size=subject.target_file_size,
        partitions=partitions,
        worst=worst,
        rewrite=_add_share(rewrite, share) if rewrite is not None and files.num_rows else None,
        note=subject.note,
        files=_with_depth(subject),
    )


def _add_share(rewrite: PendingRewrite, share: float | None) -> PendingRewrite:
    """Return a rewrite with the table's share, which a plan that rewrites nothing leaves out."""
    if rewrite.due or share is None:
        return rewrite
    return replace(rewrite, share_before=share, share_after=share)


def _count_deleted_rows(files: pa.Table) -> int | None:
    if file_stats.DELETED not in files.schema.names:
        return 0
    is_known = not files[file_stats.DELETED].null_count
    return total(files, file_stats.DELETED) if is_known else None


def _with_depth(subject: Subject) -> pa.Table:
    """Return the file table with the depth of each file in each column."""
    named = dict(zip(map(join, subject.columns), subject.depths, strict=True))
    if not named:
        return subject.files
    return subject.files.append_column("depth", depths.as_structs(named))
