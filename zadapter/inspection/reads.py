"""What the queries of a log read of a table as it is, and how much of that in vain.

Files are read in vain if their bounds allow matching rows and they hold none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
import pyarrow as pa

from zadapter.base.printable import abridge
from zadapter.base.quantities import show, show_count
from zadapter.base.ranks import Ints
from zadapter.inspection.column_facts import total_rows
from zadapter.inspection.conjuncts import find_unused
from zadapter.inspection.query_log import QueryLog
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.pruning import matching
from zadapter.predicates.texts import causes
from zadapter.report.facts import Listing
from zadapter.table.column_bounds import Mask
from zadapter.table.file_stats import row_counts, total

NO_POSITION = "row groups are not counted, since the format has no positions of rows in a file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTotals:
    """Number of files, rows and bytes."""

    files: int
    rows: int | None
    """Live rows; None: the log has no row counts."""
    bytes: int

    def __str__(self) -> str:
        rows = "unknown rows" if self.rows is None else show_count(self.rows, "rows")
        return f"{show_count(self.files, 'files')}, {rows}, {show(self.bytes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsRead:
    """What is left to read by row group after pruning by bounds."""

    files: int
    """Number of files whose footers were read."""
    of: int
    """Number of files that are kept."""
    kept: int
    """Number of row groups of these files that may hold matching rows."""
    row_groups: int
    """Number of all row groups of these files."""
    rows: int
    """Rows in the row groups that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What a query finds in the files that it opens, counted by a read of their rows."""

    rows: int
    """Number of matching rows."""
    files: int
    """Number of opened files that hold some."""
    in_vain: float
    """Share of the opened files, from 0 to 1, that hold none."""
    row_groups: int | None
    """Number of opened row groups that hold some, of the files whose footers were read; None:
    unknown."""
    row_groups_in_vain: float | None
    """Share of these row groups that hold none."""
    exact: bool
    """Whether bounds can answer all parts of the filter. Other parts count as true, so that the
    shares in vain are at least these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a filter reads after pruning by the bounds of files."""

    condition: str
    weight: float
    """Sum of the weights of its entries in the log."""
    read: FileTotals
    """The files that may hold matching rows."""
    share: float
    """Share of the table's rows in them, from 0 to 1."""
    unused: tuple[str, ...]
    """Parts of the condition that exclude no file, and why."""
    row_groups: GroupsRead | None = None
    """None: no footers were read."""
    matches: Matches | None = None
    """None: they were not counted."""

    @property
    def files_in_vain(self) -> float:
        """Number of files that its entries open in vain, if it was counted."""
        return self.weight * (self.read.files - self.matches.files) if self.matches else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What the queries of a log read together."""

    entries: int
    """Entries of the log."""
    filters: int
    """Distinct filters of these entries."""
    judged: int
    """Number of filters that were judged: the heaviest."""
    unused: Mapping[str, int]
    """Number of entries that have no usable filter, by reason."""
    share: float
    """Mean share of the rows in files that the filters cannot skip, weighted."""
    counted: int
    """Number of filters whose matches were counted: those that open most."""
    in_vain: float | None
    """Share of the files that these open which hold no matching row, weighted; None: not
    counted."""
    row_groups_in_vain: float | None
    """The same of row groups; None if it is unknown."""
    note: str
    """What could not be counted, and why; empty: nothing."""

    def facts(self) -> dict[str, str]:
        """Return the reads as readable facts, by name."""
        judged = f", the {self.judged:,} heaviest judged" if self.judged < self.filters else ""
        found = {
            "queries": f"{show_count(self.entries, 'entries')}, "
            f"{show_count(self.filters, 'filters')}{judged}",
            "a query reads": f"{self.share:.1%} of the rows",
        }
        if self.in_vain is not None:
            groups = self.row_groups_in_vain
            more = "" if groups is None else f", {groups:.1%} of the opened row groups"
            found["in vain"] = (
                f"{self.in_vain:.1%} of the opened files{more}, by "
                f"{show_count(self.counted, 'filters')}{'; ' if self.note else ''}{self.note}"
            )
        unused = abridge([f"{n:,} {why}" for why, n in self.unused.items()], "; ")
        return found | ({"unused entries": unused} if unused else {})


@dataclass(frozen=True, slots=True, eq=False)
class Footers:
    """Row groups of some files.

    Attributes:
        table: The row groups as a file table.
        file_of: Index of each row group's file among all files.
    """

    table: pa.Table
    file_of: Ints

    def select_row_groups(self, predicate: Predicate, may: Mask) -> Mask:
        """Return which row groups a filter opens that opens the files *may*."""
        return matching(predicate, self.table) & may[self.file_of]


def query(
    condition: str,
    predicate: Predicate,
    files: pa.Table,
    may: Mask,
    *,
    weight: float = 1.0,
    footers: Footers | None = None,
) -> Query:
    """Return what a filter reads after pruning by bounds.

    Args:
        condition: The filter as text.
        predicate: The filter.
        files: The files.
        may: Which of them the filter opens.
        weight: Weight of the filter.
        footers: Row groups of some of the files, if they are known.
    """
    read = files.filter(pa.array(may))
    rows, every = int(row_counts(read).sum()), int(row_counts(files).sum())
    found = None
    if footers is not None:
        kept, opened = footers.select_row_groups(predicate, may), may[footers.file_of]
        found = GroupsRead(
            files=len(np.unique(footers.file_of[opened])),
            of=read.num_rows,
            kept=int(kept.sum()),
            row_groups=int(opened.sum()),
            rows=int(row_counts(footers.table)[kept].sum()),
        )
    return Query(
        condition=condition,
        weight=weight,
        read=totals(read),
        share=rows / every if every else 0.0,
        unused=find_unused(predicate, files),
        row_groups=found,
    )


def totals(files: pa.Table) -> FileTotals:
    """Return the number of files, their rows and bytes."""
    return FileTotals(files=files.num_rows, rows=total_rows(files), bytes=total(files, "size"))


def matches_of(
    predicate: Predicate,
    may: Mask,
    in_files: Ints,
    footers: Footers | None = None,
    in_groups: Ints | None = None,
) -> Matches:
    """Return what a filter finds in the files that it opens.

    Args:
        predicate: The filter.
        may: Which files it opens.
        in_files: Number of matching rows in each file.
        footers: Row groups of some of them.
        in_groups: Number of matching rows in each row group; None if it is unknown.
    """
    hit = in_files[may] > 0
    hit_groups = None
    if footers is not None and in_groups is not None:
        hit_groups = in_groups[footers.select_row_groups(predicate, may)] > 0
    return Matches(
        rows=int(in_files[may].sum()),
        files=int(hit.sum()),
        in_vain=_share_in_vain(hit) or 0.0,
        row_groups=None if hit_groups is None else int(hit_groups.sum()),
        row_groups_in_vain=None if hit_groups is None else _share_in_vain(hit_groups),
        exact=not causes(predicate),
    )


def _share_in_vain(hit: Mask) -> float | None:
    return float(1 - hit.mean()) if len(hit) else None


def reads(log: QueryLog, queries: Sequence[Query]) -> Reads:
    """Return what the queries of a log read together; there is one at least."""
    counted = [(each, each.matches) for each in queries if each.matches is not None]
    files = [(q.weight * q.read.files, q.weight * m.files) for q, m in counted]
    groups = [
        (q.weight * q.row_groups.kept, q.weight * m.row_groups)
        for q, m in counted
        if q.row_groups is not None and m.row_groups is not None
    ]
    lacks = any(q.row_groups is not None and m.row_groups is None for q, m in counted)
    return Reads(
        entries=log.entries,
        filters=len(log.filters),
        judged=len(queries),
        unused=dict(log.unused),
        share=fsum(q.weight * q.share for q in queries) / fsum(q.weight for q in queries),
        counted=len(counted),
        in_vain=_in_vain(files),
        row_groups_in_vain=_in_vain(groups),
        note=NO_POSITION if lacks else "",
    )


def _in_vain(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the share of what is opened that holds nothing, given both for each filter."""
    opened = fsum(of for of, _ in pairs)
    return 1 - fsum(hit for _, hit in pairs) / opened if opened else None


def listing(queries: Sequence[Query]) -> Listing:
    """Return the queries as a table, those that open most files in vain first."""
    ordered = sorted(queries, key=lambda each: -each.files_in_vain)
    columns = ["condition", "files", "rows read"]
    by_group = any(each.row_groups is not None for each in queries)
    columns += ["row groups"] if by_group else []
    counted = any(each.matches is not None for each in queries)
    columns += ["matching rows", "files in vain"] if counted else []
    by_group_counted = any(m is not None and m.row_groups is not None
                           for m in (each.matches for each in queries))  # fmt: skip
    columns += ["row groups in vain"] if by_group_counted else []
    columns += ["excludes nothing"]
    return Listing("queries", tuple(columns), tuple(_row(each, columns) for each in ordered))


def _row(each: Query, columns: Sequence[str]) -> tuple[object, ...]:
    found, groups = each.matches, each.row_groups
    least = "" if found is None or found.exact else "at least "
    vain = None if found is None else found.row_groups_in_vain
    cells: dict[str, object] = {
        "condition": each.condition,
        "files": each.read.files,
        "rows read": f"{each.share:.1%}",
        "row groups": None if groups is None else f"{groups.kept:,} of {groups.row_groups:,}",
        "matching rows": None if found is None else found.rows,
        "files in vain": "" if found is None else f"{least}{found.in_vain:.1%}",
        "row groups in vain": "" if vain is None else f"{least}{vain:.1%}",
        "excludes nothing": abridge(each.unused, "; "),
    }
    return tuple(cells[name] for name in columns)
