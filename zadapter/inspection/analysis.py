"""The value that ``analyze`` returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from zadapter.base.printable import abridge
from zadapter.base.quantities import show, show_count
from zadapter.base.secrets import mask_fields
from zadapter.inspection.column_facts import ColumnFacts
from zadapter.inspection.pending_rewrite import PendingRewrite
from zadapter.inspection.reads import FileTotals, Query, Reads, listing
from zadapter.planning.effect import NOISE
from zadapter.report.facts import Facts, Listing, describe_table, html
from zadapter.report.pictures.figures import BOXES, clusters
from zadapter.report.pictures.pages import drawing
from zadapter.report.plan_text import describe_constant
from zadapter.table.overlap.depth import Depth

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedRun:
    """Files that one layout wrote."""

    layout: str | None
    """Id of the layout; None: files of no layout."""
    columns: tuple[str, ...]
    """Its key columns; empty if they are not known."""
    totals: FileTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A partition, and how much its files overlap."""

    partition: str
    totals: FileTotals
    depth: float
    """Mean depth of its files, over the key columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """What filters read by row group, from the footers of some files."""

    files: int
    """Number of files whose footers were read."""
    row_groups: int
    """Number of row groups in them."""
    share: float
    """Mean share of these files' rows, from 0 to 1, in row groups that a range filter reads."""
    share_by_file: float
    """The same share by file, of the same files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Facts):
    """How well a table is clustered, from its log alone."""

    table: str
    format: str
    version: int | None
    """The version that was read; None: a folder that is not registered as a table."""
    by: tuple[str, ...]
    """The requested key columns, or the table's current keys."""
    alike: tuple[str, ...] = ()
    """The key columns of which all rows have one value, or null, according to the stats."""
    where: str | None
    """The condition that files of the analysis may match."""
    totals: FileTotals
    table_files: int
    """Number of live files of the table, without the condition."""
    row_groups: RowGroups | None
    """None: no footers were read."""
    columns: tuple[ColumnFacts, ...]
    """Facts of each column with bounds, the key columns first."""
    left_out: Mapping[str, str]
    """Columns that are not analyzed, and why."""
    depth: Depth | None
    """How many files overlap in all key columns; None for no key columns."""
    share: float | None
    """Mean share of the rows, from 0 to 1, in files that a range filter on the key columns reads;
    None: no key columns."""
    sampled: bool
    """Whether depth and share of the key columns are computed from a sample of the files."""
    queries: tuple[Query, ...]
    reads: Reads | None
    """What the queries read together. None if there are no queries."""
    runs: tuple[SortedRun, ...]
    """The layouts that wrote files, by bytes; files of no layout come first."""
    deleted_rows: int | None
    """Rows that row-level deletes remove. None: the log does not record it for all files."""
    deletes: int
    """Number of files with row-level deletes."""
    small_files: int
    """Number of files below half of the target size."""
    target_file_size: int
    partitions: int
    worst: tuple[Partition, ...]
    """The partitions whose files overlap most, at most ten."""
    rewrite: PendingRewrite | None
    """What ``optimize`` would rewrite; None: the columns cannot be keys, or there are no files."""
    note: str
    """What could not be determined, and why."""
    files: pa.Table = field(repr=False, compare=False)
    """The file table, with the ``depth`` of each file in each column."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def due(self) -> bool:
        """Whether a rewrite is due."""
        return self.rewrite is not None and self.rewrite.due

    @property
    def verdict(self) -> str:
        """One sentence: what a rewrite would bring."""
        if not self.totals.files:
            none = "no file may hold rows that match the condition"
            return none if self.table_files else "the table has no files"
        if self.rewrite is None:
            return f"no rewrite is judged: {self.note}"
        done = self.rewrite
        if not done.due:
            waits = (
                f"; waiting: {show_count(done.rows_waiting, 'new rows')}"
                if done.rows_waiting
                else ""
            )
            if not self.by:
                return f"no rewrite is due: too few small files; {self.note}"
            return (
                f"no rewrite is due: range filters scan {done.share_before:.1%} of the rows{waits}"
            )
        files = f"{show_count(done.files, 'files')} ({show(done.bytes)})"
        return f"a rewrite of {files} would {_effect(done)}"

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def _repr_html_(self) -> str:
        picture = drawing(self.plot) if 0 < self.totals.files <= BOXES else ""
        return html(self) + picture

    def facts(self) -> Mapping[str, str]:
        """Return the analysis as readable facts, by name."""
        facts = {
            "table": describe_table(self.table, self.format, self.version),
            "verdict": self.verdict,
            "contents": str(self.totals),
            "runs": _runs(self.runs),
        }
        if self.where is not None:
            facts["where"] = self.where
        if self.by:
            facts["clustered by" if self.runs[-1].layout else "key columns"] = abridge(self.by)
        if self.share is not None:
            about = ", from a sample of the files" if self.sampled else ""
            facts["data scanned"] = f"{self.share:.1%} of the rows{about}"
        if self.depth is not None:
            facts["depth"] = (
                f"{self.depth.average:.1f} files on average, {self.depth.largest:,} at most"
            )
        return facts | self._more()

    def _more(self) -> dict[str, str]:
        """Return the facts that not every table has."""
        facts = {} if self.reads is None else self.reads.facts()
        if self.row_groups is not None:
            found = self.row_groups
            facts["by row group"] = (
                f"{found.share:.1%} of the rows, by file {found.share_by_file:.1%}, in "
                f"{show_count(found.row_groups, 'row groups')} of "
                f"{show_count(found.files, 'files')} "
                "whose footers were read"
            )
        if self.deletes:
            number = "unknown number" if self.deleted_rows is None else f"{self.deleted_rows:,}"
            facts["deleted rows"] = f"{number}, in {show_count(self.deletes, 'files')} with deletes"
        if self.small_files:
            size = show(self.target_file_size)
            facts["small files"] = f"{self.small_files:,}, below half of {size}"
        if self.rewrite is not None and self.rewrite.due:
            why = ", ".join(
                f"{reason}: {files:,}" for reason, files in self.rewrite.reasons.items()
            )
            facts["why"] = why
            facts["rewrite"] = (
                f"{show_count(self.rewrite.jobs, 'jobs')}, "
                f"{show_count(self.rewrite.files, 'files')} of "
                f"{show(self.rewrite.bytes)} -> {self.rewrite.files_written:,}, gain "
                f"{self.rewrite.gain:.0%}{'' if self.rewrite.planned else _BY_BOUNDS}"
            )
        if self.left_out:
            facts["not analyzed"] = _left_out(self.left_out)
        if hint := describe_constant(self.alike, self.by):
            facts["hint"] = hint
        if self.note and self.rewrite is not None:
            facts["note"] = self.note
        return facts

    def listings(self) -> Sequence[Listing]:
        """Return the columns, the queries, the depth histogram and the worst partitions."""
        return (
            Listing("columns", _COLUMNS, tuple(map(_column_row, self.columns))),
            listing(self.queries),
            Listing(
                "worst partitions",
                ("partition", "files", "bytes", "depth"),
                tuple(
                    (p.partition, p.totals.files, show(p.totals.bytes), p.depth)
                    for p in (self.worst if self.partitions > 1 else ())
                ),
            ),
        )

    def plot(self, columns: Sequence[str] | None = None) -> "Figure":
        """Draw the files' boxes in two columns, and the depth histogram.

        Args:
            columns: One or two columns; None: the first key columns, or the first columns.

        Returns:
            A figure of matplotlib.

        Raises:
            UsageError: A column has not been analyzed.
            MissingBackendError: matplotlib is not installed.
        """
        return clusters([(self.table, self.files)], columns or [c.column for c in self.columns[:2]])


_BY_BOUNDS = " by the bounds of files alone; plan=True (--plan) also samples rows"
_NAMED = 5
"""Number of runs whose files are named."""
_COLUMNS = (
    *("column", "average depth", "largest", "data scanned", "constant files"),
    *("without bounds", "why"),
)


def _column_row(column: ColumnFacts) -> tuple[object, ...]:
    depth = column.depth
    return (
        column.column,
        None if depth is None else depth.average,
        None if depth is None else depth.largest,
        f"{column.share:.1%}",
        column.constant,
        sum(column.unbounded.values()),
        "; ".join(column.unbounded),
    )


def _effect(due: PendingRewrite) -> str:
    if due.gain < NOISE:
        written = show_count(due.files_written, "files")
        return f"join them into {written}; filters scan as much as before"
    shares = f"from {due.share_before:.1%} of the rows to {due.share_after:.1%}"
    if due.share_after > due.share_before:  # the gain is then that by row group
        return (
            f"reduce the data scanned by {due.gain:.0%} by row group; by file it would go {shares}"
        )
    return f"reduce the data scanned by range filters {shares}"


def _left_out(left_out: Mapping[str, str]) -> str:
    """Return columns by the reason why they are left out."""
    columns: dict[str, list[str]] = {}
    for column, why in left_out.items():
        columns.setdefault(why, []).append(column)
    return "; ".join(f"{abridge(named)}: {why}" for why, named in columns.items())


def _runs(runs: Sequence[SortedRun]) -> str:
    """Return the number of runs, and what is in none."""
    raw = sum(run.totals.files for run in runs if run.layout is None)
    written = [run for run in runs if run.layout is not None]
    largest = ", ".join(f"{run.totals.files:,}" for run in written[:_NAMED])
    more = ", ..." if len(written) > _NAMED else ""
    of = f" of {largest}{more} files" if written else ""
    return f"{len(written):,}{of}; {show_count(raw, 'files')} in none"
