"""Compaction: a rewrite of a table that has no key columns, which joins small files."""

from dataclasses import dataclass, field
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from zadapter.backend.contract import Backend
from zadapter.base.names import NameParts, leaves
from zadapter.errors import UsageError
from zadapter.planning.compaction import Compaction, compaction, group_files
from zadapter.planning.file_groups import Job, reasons
from zadapter.planning.file_size import USUAL
from zadapter.planning.options import Options
from zadapter.report.plan import Plan
from zadapter.rewrite.file_selection import SelectedFiles
from zadapter.rewrite.write import ClusteredRows
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Snapshot, Written

ORDERING = 32
"""Maximum number of columns that may order the files."""


@dataclass(frozen=True, kw_only=True)
class JoiningJob:
    """A job that joins files."""

    job: Job
    joined: tuple[pa.Table, ...] = field(repr=False)
    """The files to join, for each file to write."""


@dataclass(frozen=True, kw_only=True)
class CompactionPlan:
    """A compaction of a table: its jobs, and the files that they were planned from."""

    backend: Backend
    snapshot: Snapshot
    asked: SelectedFiles
    """The files, with stats of the columns that may order them, and those that may be joined."""
    target_file_size: int
    compaction: Compaction

    @property
    def files(self) -> pa.Table:
        """All live files of the table."""
        return self.asked.files

    @property
    def jobs(self) -> tuple[JoiningJob, ...]:
        """The jobs to run."""
        return tuple(
            JoiningJob(job=job, joined=tuple(group_files(job, self.target_file_size)))
            for job in self.compaction.jobs
        )

    def share_read(self, files: pa.Table) -> float:  # noqa: ARG002 - as RewritePlan
        """Return 0: without key columns, there are no typical filters."""
        return 0.0

    @cached_property
    def prediction(self) -> Plan:
        """The files to join."""
        groups = [group for job in self.compaction.jobs for group in job.groups]
        removed = file_stats.totals(group.files for group in groups)
        return Plan(
            table=self.snapshot.table,
            format=self.snapshot.format,
            version=self.snapshot.version,
            columns=(),
            curve="",
            target_file_size=self.target_file_size,
            groups=len(groups),
            jobs=len(self.compaction.jobs),
            files_before=self.files.num_rows,
            files_asked=self.asked.candidates.num_rows,
            files_young=self.asked.young,
            files_rewritten=removed["files"] or 0,
            files_written=sum(group.cut_into for group in groups),
            bytes_rewritten=removed["bytes"] or 0,
            rows=removed["rows"],
            share_before=0.0,
            share_after=0.0,
            reasons=reasons(groups),
            sort_order=self.snapshot.sort_order,
            files_owned=self.compaction.owned,
            files=self.files,
            groups_left=self.compaction.files_left,
            bytes_left=self.compaction.bytes_left,
        )

    @property
    def replaced(self) -> dict[str, int | None]:
        """Number, bytes and rows of the files to be replaced."""
        return file_stats.totals(job.files for job in self.compaction.jobs)


def ordering_columns(snapshot: Snapshot) -> tuple[NameParts, ...]:
    """Return the columns whose stats may order the files."""
    without = snapshot.without_stats | snapshot.without_bounds
    columns = [parts for parts, _ in leaves(snapshot.schema) if parts not in without]
    return tuple([parts for parts in columns if parts[0] not in snapshot.partition][:ORDERING])


def compaction_plan(
    options: Options,
    backend: Backend,
    snapshot: Snapshot,
    asked: SelectedFiles,
) -> CompactionPlan:
    """Plan a compaction.

    Args:
        options: The caller's options.
        backend: The table's backend.
        snapshot: The version that is read.
        asked: The files, with stats of the columns that may order them, and those to join.

    Raises:
        UsageError: The caller asks for new cuts.
    """
    if options.force:
        raise UsageError(
            f"{snapshot.table}: force= fits new cuts, but no file is clustered; pass by= (--by), "
            "one to four columns that filters use"
        )
    target = options.file_bytes or snapshot.target_file_size or USUAL
    return CompactionPlan(
        backend=backend,
        snapshot=snapshot,
        asked=asked,
        target_file_size=target,
        compaction=compaction(asked.candidates, target, tuple(snapshot.partition), options.limits),
    )


def write_joined(
    backend: Backend, snapshot: Snapshot, planned: JoiningJob, write_id: str
) -> tuple[Written, ClusteredRows]:
    """Write the rows of each set of files as one file."""
    rows = [backend.read(snapshot, files).coalesce(1) for files in planned.joined]
    computed = [name for name in snapshot.partition if name not in snapshot.schema.names]
    written = reduce(DataFrame.union, rows).drop(*computed)
    return backend.write(snapshot, written, None, Encoding(write=write_id)), ClusteredRows(
        rows=written, untested=None
    )
