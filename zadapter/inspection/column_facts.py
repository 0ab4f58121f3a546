"""Facts of single columns: overlap, reads, constant files, files without bounds."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import NameParts, join
from zadapter.table.column_bounds import counts, mask
from zadapter.table.file_stats import child, row_counts
from zadapter.table.overlap.depth import Depth, Depths
from zadapter.table.overlap.extents import Extent
from zadapter.table.snapshot import Snapshot

NO_STATS = "the log has no bounds"
CONTRADICTORY = "the bounds contradict each other"
HALF = "only one of the bounds is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """Facts from the bounds of one column."""

    column: str
    depth: Depth | None
    """How many files overlap; None if no file has bounds."""
    share: float
    """Mean share of the rows, from 0 to 1, in files that a range filter on the column reads."""
    constant: int
    """Number of files with one value of the column."""
    empty: int
    """Number of files with only null or NaN."""
    unbounded: Mapping[str, int]
    """Number of files without bounds, by the reason why."""


def column_facts(
    files: pa.Table, column: NameParts, extent: Extent, depth: Depths, share: float
) -> ColumnFacts:
    """Return the facts of one column.

    Args:
        files: The file table.
        column: The column.
        extent: Its range in each file.
        depth: Its depth at each file.
        share: Share of rows that range filters on it read.
    """
    constant = extent.known & (extent.low == extent.high)
    return ColumnFacts(
        column=join(column),
        depth=depth.summary(row_counts(files)),
        share=share,
        constant=int(constant.sum()),
        empty=int((~extent.present).sum()),
        unbounded=_count_unbounded(files, column, extent),
    )


def _count_unbounded(files: pa.Table, column: NameParts, extent: Extent) -> dict[str, int]:
    """Return the number of files without bounds by reason."""
    without = ~extent.known & extent.present
    if not without.any():
        return {}
    low, high = (child(files["stats"], join(column), side) for side in ("min", "max"))
    if low is None or high is None:
        return {NO_STATS: int(without.sum())}
    valid = low.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    valid += high.is_valid().to_numpy(zero_copy_only=False)
    crossed = np.zeros(len(valid), np.bool_)
    if not pa.types.is_null(extent.evidence.low.type):
        crossed = mask(pc.greater(low, high), default=False)
    reasons = np.where(crossed, CONTRADICTORY, np.where(valid == 1, HALF, NO_STATS))[without]
    return dict(Counter(reasons.tolist()))


def reason_without(snapshot: Snapshot, column: NameParts) -> str | None:
    """Return why no file of a table has bounds of a column, or None if files may have some."""
    if column in snapshot.without_bounds:
        return f"{snapshot.format} records no bounds of its type"
    if column in snapshot.without_stats:
        return "the table collects no stats of it"
    return None


def total_rows(files: pa.Table) -> int | None:
    """Return the rows of *files*, or None if a count is unknown."""
    rows = counts(files, "rows")
    return None if (rows < 0).any() else int(rows.sum())
