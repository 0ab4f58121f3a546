"""What rewrites of a table would save queries, and what they would cost, from its log alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints
from zadapter.inspection.pending_rewrite import cells_after, first_pays
from zadapter.lake.choice import Step
from zadapter.layout.box_rows import Cells, reads, rows_of_files
from zadapter.layout.layout import Request
from zadapter.layout.predict import Floats
from zadapter.planning.cost import BYTES_A_CORE_SECOND, SHUFFLED, Cost, ObjectStore, Prices
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import Reason, Renewal, Rewrite, worn
from zadapter.planning.partition_parts import FileArrays
from zadapter.planning.reading import Members, opening
from zadapter.planning.tiers import Tiers
from zadapter.table.overlap.depth import partition_numbers
from zadapter.table.overlap.extents import Space

PREDICTED = 16
"""Number of rewrites of a table, those of most bytes, whose effect is predicted; others save as
large a share of what filters read of their files now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What makes rewrites of a table due besides its files, and what they are paid by."""

    renewal: Renewal = field(default_factory=Renewal)
    """Clustered files that are rewritten, and how files count."""
    store: ObjectStore | None = None
    """The store of the table, if it bills requests."""
    prices: Prices | None = None
    """What is paid for requests, bytes and core hours; None: nothing."""
    tiers: Tiers | None = None
    """Which files are left alone or become larger, by their age; None for neither."""


def steps(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    limits: Limits,
    space: Space,
    terms: Terms = Terms(),
) -> tuple[Step, ...]:
    """Return the rewrites that are due, in the order in which ``optimize`` takes them.

    All tables are judged by the same filters, which may ask for any rows of the table: by its row
    groups, and by a cost of opening files.

    Args:
        files: The files, with stats of the key columns.
        request: The layout that the table has, or is to get.
        partition_columns: The table's partition columns.
        limits: Limits of one run of ``optimize``; with the bytes of the budget, so that each step
            fits in it where files can be rewritten in parts. Steps beyond these bytes are returned,
            too: for a later run.
        space: The files' boxes in the key columns.
        terms: What else makes rewrites due, and what they are paid by.
    """
    found = judge(files, request, partition_columns, limits, space, terms)
    return tuple(step for _, step in found)


def judge(
    files: pa.Table,
    request: Request,
    partition_columns: Sequence[str],
    limits: Limits,
    space: Space,
    terms: Terms = Terms(),
) -> list[tuple[Rewrite, Step]]:
    """Return the rewrites that :func:`steps` finds, and what each saves and costs."""
    found = maintenance(
        files,
        request,
        partition_columns,
        limits,
        renewal=terms.renewal,
        tiers=terms.tiers,
    )
    due = (*found.rewrites, *found.left)
    if not due:
        return []
    facts = FileArrays.of(files, request, worn(files), terms.renewal.count(files))
    before, saved = _predict(_Reader.of(facts, partition_columns, space), due)
    total = max(1, int(space.boxes.rows.sum()))
    dropped = _first_that_do_not_pay(request, due, before, saved)
    return [
        (rewrite, _step(rewrite, by_group, by_file / total, terms))
        for number, (rewrite, (by_group, by_file)) in enumerate(
            zip(due, saved.tolist(), strict=True)
        )
        if number not in dropped
    ]


def _first_that_do_not_pay(
    request: Request, due: Sequence[Rewrite], before: Floats, saved: Floats
) -> frozenset[int]:
    """Return the numbers of the first rewrites of files if they do not pay together."""
    at = [number for number, each in enumerate(due) if each.reason is Reason.FIRST]
    if not at:
        return frozenset()
    rows = max(1, sum(due[number].rows for number in at))
    now, less = before[at].sum(axis=0) / rows, saved[at].sum(axis=0) / rows
    (groups, files), (groups_after, files_after) = now.tolist(), (now - less).tolist()
    pays = first_pays(
        request, [due[number] for number in at], (files, files_after), (groups, groups_after)
    )
    return frozenset() if pays else frozenset(at)


def _step(rewrite: Rewrite, rows: float, share: float, terms: Terms) -> Step:
    """Return a rewrite after which filters read so many rows less, and that share by file."""
    cost = _cost(rewrite, terms.store)
    return Step(
        bytes=rewrite.bytes,
        saved=max(0.0, rows * rewrite.bytes / max(1, rewrite.rows)),
        seconds=cost.core_seconds or 0.0,
        money=(terms.prices and terms.prices.sum(cost)) or 0.0,
        files=len(rewrite.members),
        fewer=len(rewrite.members) - rewrite.cut_into,
        share=share,
    )


def _cost(rewrite: Rewrite, store: ObjectStore | None) -> Cost:
    size, gets, puts = rewrite.bytes, 0, 0
    if store is not None:
        files, written = len(rewrite.members), rewrite.cut_into
        gets, puts = store.requests(read=files, written=written, size=size, commits=1)
    return Cost(
        bytes_read=size,
        bytes_written=size,
        bytes_shuffled=int(SHUFFLED * size),
        get_requests=gets,
        put_requests=puts,
        core_seconds=size / BYTES_A_CORE_SECOND,
    )


def _predict(reader: "_Reader", due: Sequence[Rewrite]) -> tuple[Floats, Floats]:
    """Return the rows that filters read of the files of each rewrite, and how many less afterwards.

    Both are by row group, with a cost of opening files, and by file.
    """
    now = reader.now(np.concatenate([each.members for each in due]))
    edges = np.cumsum([0] + [len(each.members) for each in due])
    before = np.stack([np.add.reduceat(column, edges[:-1]) for column in now.T], axis=1)
    largest = sorted(range(len(due)), key=lambda number: -due[number].bytes)[:PREDICTED]
    after = np.array([reader.after(due[number]) for number in largest])
    kept = after.sum(axis=0) / np.maximum(before[largest].sum(axis=0), 1e-9)
    saved = before * (1 - np.minimum(kept, 1))
    saved[largest] = before[largest] - after
    return before, np.asarray(saved)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Filters on a table, and the cost of what they read."""

    request: Request
    space: Space
    row_groups: Floats
    """Number of row groups of each file that filters can tell apart."""
    opening: float
    """Cost of opening a file, in rows."""

    @classmethod
    def of(cls, facts: FileArrays, partition_columns: Sequence[str], space: Space) -> "_Reader":
        """Return the filters on a table."""
        request = facts.request
        number, names = partition_numbers(facts.files, partition_columns)
        count = int(facts.layout.max(initial=-1)) + 2
        runs, run_of = np.unique(number * count + facts.layout + 1, return_inverse=True)
        whole = np.bincount(number, facts.counted, len(names)).astype(np.int64)
        members = Members(
            sizes=facts.counted,
            rows=facts.rows,
            run_of=run_of,
            is_raw=runs % count == 0,
            whole=whole[runs // count],
        )
        rows, size = (np.float64(each.sum()) for each in (facts.rows, facts.counted))
        cost = float(opening(request, rows, size))
        return cls(request, space, members.row_groups(request), cost)

    def now(self, at: Ints) -> Floats:
        """Return what filters read of files *at* some indices, by row group and by file."""
        boxes, ones = self.space.boxes, np.ones(len(at))
        low, high, rows = boxes.low[at], boxes.high[at], boxes.rows[at].astype(np.float64)
        return self._read(Cells(low, high, rows, ones, self.row_groups[at]))

    def after(self, rewrite: Rewrite) -> Floats:
        """Return what filters read of the files that replace others, by row group and by file."""
        return np.asarray(self._read(cells_after(self.request, self.space, rewrite)).sum(axis=0))

    def _read(self, cells: Cells) -> Floats:
        asked, request, rows_at = self.space.ranges, self.request, self.space.rows_at
        by_group = reads(request, cells, rows_at, asked, self.opening)
        by_file = rows_of_files(asked, request, rows_at, cells)
        return np.stack([by_group, by_file], axis=1)
