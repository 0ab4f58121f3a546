"""Sample of a table that layouts are judged on."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import Parts, join, leaves
from zadapter.base.ranks import Ints
from zadapter.inspection.advise.judging import RowGroups, SampledTable
from zadapter.layout.layout import Request
from zadapter.planning.file_groups import find_roots, roots_of
from zadapter.planning.file_size import heaviest_request, present_file_size
from zadapter.planning.options import ROW_GROUPS
from zadapter.spark.footers import few, known_row_groups
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


def sampled(
    backend: Backend, snapshot: Snapshot, columns: tuple[Parts, ...]
) -> tuple[SampledTable, Request | None]:
    """Sample columns of the partitions with the most rows.

    Returns:
        The sample, with the key columns of the table's layout; and the request of that layout.
    """
    files = backend.files(snapshot, columns)
    request = heaviest_request(files, snapshot.layouts)
    if request is not None and not {*request.columns} <= {c for c, _ in leaves(snapshot.schema)}:
        request = None  # the table has lost a column of its layout
    if request is not None:
        columns = tuple(dict.fromkeys((*columns, *request.columns)))
        files = backend.files(snapshot, columns)
    size = present_file_size(files, request, snapshot.target_file_size)
    cut_into = max(1, round(total(files, "size") / size))
    drawn = _drawn(backend, snapshot, files, columns, cut_into)
    rows = _Rows.of(drawn, snapshot)
    held = [file_stats.partition(files, name) for name in snapshot.partition]
    files = files.filter(pa.array(find_roots(list(rows.roots), held, files.num_rows) >= 0))
    known = {field.name for field in snapshot.schema}
    identity = [(name,) for name in snapshot.partition if name in known]
    table = SampledTable(
        columns=(*columns, *identity),
        values=tuple(rows.of_column(parts) for parts in (*columns, *identity)),
        files=files,
        roots=rows.roots,
        root_of=rows.root_of,
        budget=rows.budget(max(1, round(total(files, "size") / size))),
        target_file_size=size,
        partition=frozenset(identity),
        row_groups=_row_groups(backend, snapshot, files, columns),
    )
    return table, request


def _row_groups(
    backend: Backend, snapshot: Snapshot, files: pa.Table, columns: tuple[Parts, ...]
) -> RowGroups | None:
    """Read the row groups of some files."""
    picked = few(snapshot, files, FOOTERS, ROW_GROUPS)
    table = known_row_groups(backend, snapshot, picked, columns)
    return None if table is None else RowGroups(picked, table)


def _drawn(
    backend: Backend, snapshot: Snapshot, files: pa.Table, columns: tuple[Parts, ...], cut_into: int
) -> pa.Table:
    """Draw enough rows for a number of files."""
    read = files_to_read(files, columns)
    fraction = max(MIN_ROWS, sample_size(cut_into)) / max(1, int(row_counts(read).sum()))
    partition: list[Parts] = [(name,) for name in snapshot.partition]
    return sample(backend.read(snapshot, read), [*columns, *partition], min(1.0, fraction))


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

    def of_column(self, parts: Parts) -> pa.Array:
        """Return the values of a column."""
        return self.rows[join(parts)].combine_chunks()

    def budget(self, files: int) -> Ints:
        """Share files among the partitions; a file has enough rows for a prediction."""
        counts = np.bincount(self.root_of, minlength=len(self.roots))
        most = np.maximum(1, counts // FEWEST_ROWS)
        exact = files * counts / max(1, int(counts.sum()))
        return np.clip(np.rint(exact), 1, most).astype(np.int64)
