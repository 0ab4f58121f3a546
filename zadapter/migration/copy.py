"""Migration by copy: the rows of one table, written to files of another."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.backend.contract import MigrationBackend
from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts, join, leaves, quote
from zadapter.errors import VerificationError
from zadapter.layout.layout import Layout, Request
from zadapter.planning.file_groups import Job, every_job
from zadapter.rewrite.fitting import fit_jobs
from zadapter.rewrite.verify import stage_and_check
from zadapter.rewrite.write import cluster_rows, encoding
from zadapter.spark.compat.spark_api import rebalance
from zadapter.spark.files import discarding
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.file_stats import column_type, live_rows, structs, total
from zadapter.table.snapshot import Snapshot, Staged, Written
from zadapter.table.spec import Definition

_MAX_LAYOUT_BYTES = 256 << 30
"""Maximum bytes that one layout is fitted to."""
_DEFAULT_KEYS = 3
"""Number of columns that filters use if the table has no layout."""


@dataclass(frozen=True, slots=True)
class Lot:
    """Files to read in a version of the old table in which they are live."""

    snapshot: Snapshot
    files: pa.Table = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """The source and the target of a migration."""

    source: MigrationBackend
    target: MigrationBackend
    snapshot: Snapshot
    """Snapshot of the old table."""
    files: pa.Table = field(repr=False)
    """Files of the old table to migrate, with stats of all columns."""
    earlier: tuple[Lot, ...] = ()
    """Those of the files that are live in an older version only."""
    definition: Definition
    """Definition of the new table."""
    spark: SparkSession

    def columns(self) -> list[Column]:
        """Return the new table's columns as expressions on the old table."""
        computed = self.definition.computed
        return [
            (F.expr(computed[f.name]) if f.name in computed else F.col(quote((f.name,))))
            .cast(f.dataType)
            .alias(f.name, metadata={})
            for f in T.StructType.fromJson({"fields": list(self.definition.columns)})
        ]

    def rows(self, files: pa.Table) -> DataFrame:
        """Return the rows of *files* with the columns of the new table."""
        parts = [self.source.read(lot.snapshot, lot.files) for lot in self._lots(files)]
        columns = self.columns()
        return reduce(DataFrame.union, [part.select(*columns) for part in parts])

    def _lots(self, files: pa.Table) -> list[Lot]:
        """Divide *files* by the versions to read them in."""
        lots = [Lot(lot.snapshot, _among(files, lot.files)) for lot in self.earlier]
        lots = [lot for lot in lots if lot.files.num_rows]
        for lot in lots:
            files = files.filter(pc.invert(pc.is_in(files["path"], _paths(lot.files))))
        return [*lots, Lot(self.snapshot, files)] if files.num_rows or not lots else lots

    def files_as(self, pending: Snapshot) -> pa.Table:
        """Return the files with the partition values and stats of the new table."""
        partition, n = dict(pending.partition), self.files.num_rows
        values = [
            _cast(file_stats.partition(self.files, f.name), type_)
            for f, type_ in zip(self.definition.partition, partition.values(), strict=True)
        ]
        types = {
            parts: type_
            for parts, type_ in leaves(pending.schema)
            if parts[0] not in partition and is_key(type_)
        }
        schema = file_stats.schema(types, partition)
        stats = [_stats(self.files, parts, type_) for parts, type_ in types.items()]
        mixed = self.files["partition"].is_null().combine_chunks()
        fields = schema.field("partition"), schema.field("stats")
        # an unpartitioned table has no files with rows of several partitions
        partition_values = structs(values, fields[0].type, n, mixed if values else None)
        with_partition = file_stats.replace_column(self.files, fields[0], partition_values)
        return file_stats.replace_column(
            with_partition, fields[1], structs(stats, fields[1].type, n)
        )


def _among(files: pa.Table, others: pa.Table) -> pa.Table:
    return files.filter(pc.is_in(files["path"], _paths(others)))


def _paths(files: pa.Table) -> pa.Array:
    return files["path"].combine_chunks()


def _cast(values: pa.Array | None, type_: pa.DataType) -> pa.Array:
    if values is None:
        raise AssertionError("the new table has a partition field that the old one lacks")
    return values.cast(type_)


def _stats(files: pa.Table, parts: NameParts, type_: pa.DataType) -> pa.Array:
    """Return the stats of one column in the new type, unknown if they are missing."""
    target_type = column_type(type_)
    stats = file_stats.column(files, parts)
    try:
        return pa.nulls(files.num_rows, target_type) if stats is None else _as(stats, target_type)
    except pa.ArrowInvalid:
        return pa.nulls(files.num_rows, target_type)


def _as(stats: pa.StructArray, target_type: pa.StructType) -> pa.Array:
    children = [child.cast(f.type) for child, f in zip(stats.flatten(), target_type, strict=True)]
    return pa.StructArray.from_arrays(children, fields=list(target_type))


@dataclass(frozen=True, slots=True)
class Carried:
    """Files that were staged for the new table, and the layouts that placed their rows."""

    staged: Staged
    layouts: tuple[Layout, ...]


def plan_jobs(transfer: Transfer, pending: Snapshot, request: Request) -> list[Job]:
    """Return the jobs that write the rows.

    Args:
        transfer: The source and the target.
        pending: The new table before its first commit.
        request: The requested layout.
    """
    files = transfer.files_as(pending)
    kept = transfer.snapshot.layouts
    return every_job(
        files, request, tuple(pending.partition), kept, max_job_bytes=_MAX_LAYOUT_BYTES
    )


def copy_rows(
    transfer: Transfer, pending: Snapshot, request: Request | None
) -> tuple[Carried, ...]:
    """Write all rows to new files.

    Args:
        transfer: The source and the target.
        pending: The new table before its first commit.
        request: The requested layout; None: keep the order of rows.

    Raises:
        VerificationError: The written rows differ from the rows read; nothing was committed.
    """
    jobs = (
        [] if request is None else [(job, request) for job in plan_jobs(transfer, pending, request)]
    )
    written_files: list[Written] = []
    layouts: list[tuple[Layout, ...]] = []
    with discarding(transfer.spark, written_files):
        for job, layout_request in jobs:
            layout = _layout(transfer, pending, job, layout_request)
            file_encoding = encoding(
                transfer.source, transfer.snapshot, job, layout_request, transfer.spark
            )
            shuffled = cluster_rows(transfer.rows(job.files), layout, pending).rows
            written_files.append(transfer.target.write(pending, shuffled, layout, file_encoding))
            layouts.append((layout,))
        if not jobs and transfer.files.num_rows:
            written_files.append(write_unclustered(transfer, pending, transfer.files))
            layouts.append(())
        staged_files = [
            stage_and_check(transfer.target, pending, written, transfer.spark)
            for written in written_files
        ]
        check_rows(transfer, staged_files, transfer.files)
    return tuple(Carried(*pair) for pair in zip(staged_files, layouts, strict=True))


def _layout(transfer: Transfer, pending: Snapshot, job: Job, request: Request) -> Layout:
    if job.kept is not None:
        file_counts = dict(zip(job.roots, (group.cut_into for group in job.groups), strict=True))
        return job.kept.regrain([file_counts.get(root, 0) for root in job.kept.roots])
    snapshot = replace(transfer.snapshot, partition=pending.partition)
    (planned_job,) = fit_jobs(transfer.source, snapshot, request, [job])
    return planned_job.layout


def write_unclustered(transfer: Transfer, snapshot: Snapshot, files: pa.Table) -> Written:
    """Write the rows of *files* without a layout, separated by partition."""
    rows = transfer.rows(files)
    if snapshot.partition:
        cut_by = [quote((name,)) for name in snapshot.partition]
        rows = rebalance(rows, cut_by).sortWithinPartitions(*cut_by)
    return transfer.target.write(snapshot, rows, None, Encoding())


def check_rows(transfer: Transfer, staged_files: Sequence[Staged], files: pa.Table) -> None:
    """Compare the number of written rows with the number of live rows in *files*.

    Raises:
        VerificationError: The numbers differ.
    """
    log_rows = live_rows(files)
    live = transfer.rows(files).count() if log_rows is None else log_rows
    written = sum(total(s.files, "rows") for s in staged_files)
    if written != live:
        raise VerificationError(
            f"{transfer.snapshot.table} has {live} live rows, but {written} were written; "
            "nothing was committed"
        )


def keys_of(transfer: Transfer, request: Request | None) -> list[NameParts]:
    """Return the columns for filters: the key columns, or else the first columns with stats."""
    if request is not None:
        return list(request.columns)
    stats = transfer.files.schema.field("stats").type
    columns = [
        p for p, _ in leaves(transfer.snapshot.schema) if stats.get_field_index(join(p)) >= 0
    ]
    return columns[:_DEFAULT_KEYS]
