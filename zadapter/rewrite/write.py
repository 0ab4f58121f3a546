"""Shuffle, sort and write of one job's rows into the files of its layout."""

from dataclasses import dataclass, field, replace

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend import builds
from zadapter.backend.builds import Standing
from zadapter.backend.contract import Backend
from zadapter.base.interrupts import ignoring_errors
from zadapter.base.names import NameParts, leaves, quote
from zadapter.layout import assign
from zadapter.layout.layout import Layout, Request
from zadapter.planning.file_groups import Job
from zadapter.rewrite.fitting import PlannedJob
from zadapter.spark.checksum import RowTotals, observe_totals, read_observation
from zadapter.spark.compat.spark_api import repartition_by_id
from zadapter.spark.footer_reader import metadata
from zadapter.spark.layout_expression import add_keys
from zadapter.spark.narrowing.row_test import failure
from zadapter.spark.narrowing.sort import find_untested_component, narrows, sort_and_narrow
from zadapter.table.bloom_filters import writable
from zadapter.table.encoding import Encoding, dictionary_pays, find_abandoned_dictionaries
from zadapter.table.file_stats import live_rows, total
from zadapter.table.snapshot import Snapshot, Written


@dataclass(frozen=True, kw_only=True)
class ClusteredRows:
    """Rows partitioned by file and sorted along the curve."""

    rows: DataFrame
    """The table's columns."""
    untested: str | None
    """The untested component that makes this fall back to DataFrame operations; None for none."""
    watch: tuple[DataFrame, str] | None = field(default=None, repr=False)
    """The executed rows, and the name of their observation."""

    def read_totals(self) -> RowTotals | None:
        """Return the totals of the rows read, once they are written; None if it is unknown.

        The totals may count rows twice (see :func:`~zadapter.spark.checksum.observe_totals`).
        """
        return None if self.watch is None else read_observation(*self.watch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What one write is for."""

    write_id: str
    whole: bool
    """Whether the job replaces all files of the table."""
    checksum: bool
    """Whether to compute a checksum of the rows read."""


def write(
    backend: Backend, snapshot: Snapshot, planned: PlannedJob, spark: SparkSession, aim: Aim
) -> tuple[Written, ClusteredRows]:
    """Read, shuffle, sort and write the rows of *planned* to files that are invisible to readers.

    Args:
        backend: The table's backend.
        snapshot: The version that is read.
        planned: The job.
        spark: A session.
        aim: What the write is for.
    """
    file_encoding = encoding(backend, snapshot, planned.job, planned.layout.request, spark, planned)
    file_encoding = replace(file_encoding, whole=aim.whole, write=aim.write_id)
    rows = backend.read(snapshot, planned.job.files)
    shuffled = cluster_rows(rows, planned.layout, snapshot, checksum=aim.checksum)
    return backend.write(snapshot, shuffled.rows, planned.layout, file_encoding), shuffled


def encoding(
    backend: Backend,
    snapshot: Snapshot,
    job: Job,
    request: Request,
    spark: SparkSession,
    planned: PlannedJob | None = None,
) -> Encoding:
    """Choose the encoding by the footer of the largest file, or leave it to the format.

    Args:
        backend: Backend of the table that is read.
        snapshot: The version that is read.
        job: The files that are read.
        request: The layout that is written.
        spark: A session.
        planned: The job with a sample of its keys; None if there is no sample.
    """
    files = job.files
    rows = live_rows(files)
    plain: frozenset[NameParts] = frozenset()
    largest = max(files.select(["size", "path"]).to_pylist(), key=lambda file: file["size"])
    # the reader raises a better error for a file that cannot be read
    with ignoring_errors():
        (uri,) = backend.uris(snapshot, [largest["path"]])
        size, footer = metadata(spark, uri)
        plain = _plain(snapshot, footer)
        if rows is None:
            rows = footer.num_rows * total(files, "size") // size
    parts = sum(group.cut_into * group.row_groups for group in job.groups)
    row_group = None if rows is None else max(1, -(-rows // parts))
    # sorting brings equal keys together, so their old encoding predicts little about the new one
    plain -= set(request.columns)
    if planned is not None and row_group is not None:
        plain |= _plain_keys(planned, row_group)
    filtered = writable(request.bloom_filters, snapshot.schema, snapshot.physical)
    return Encoding(row_group=row_group, plain=plain, bloom_filters=filtered)


def _plain(snapshot: Snapshot, footer: pq.FileMetaData) -> frozenset[NameParts]:
    """Return the columns for which the writer of a file gave up its dictionary."""
    given_up = find_abandoned_dictionaries(footer)
    columns = [parts for parts, _ in leaves(snapshot.schema)]
    return frozenset(p for p in columns if ".".join(snapshot.physical.get(p, p)) in given_up)


def _plain_keys(planned: PlannedJob, rows: int) -> frozenset[NameParts]:
    """Return the keys that a dictionary would not shrink in row groups of *rows* rows."""
    group = assign.row_groups(planned.layout, planned.leaf_of, planned.file_of, planned.row_groups)
    keys = zip(planned.layout.request.columns, planned.sample.ranked, strict=True)
    return frozenset(key for key, values in keys if not dictionary_pays(values, group, rows))


def cluster_rows(
    rows: DataFrame, layout: Layout, snapshot: Snapshot, *, checksum: bool = False
) -> ClusteredRows:
    """Shuffle each row to the partition of its file, and sort each partition along the curve.

    A shuffle by number needs no sampling pass, and adaptive execution does not change the number of
    partitions. A sort by a single integer is a radix sort. Partition columns are constant within a
    file; they precede the integer, since the writer would otherwise sort by them again.

    Args:
        rows: The table's columns, then the partition fields that are not table columns.
        layout: The layout of the new files.
        snapshot: The snapshot of the rows.
        checksum: Whether to compute a checksum of the rows read.
    """
    untested = _find_untested(rows.sparkSession)
    name = None
    if checksum and untested is None:
        rows, name = observe_totals(rows, snapshot.schema.names)
    keyed_rows = add_keys(rows, layout, snapshot.partition)
    shuffled = repartition_by_id(keyed_rows.rows, layout.files, keyed_rows.file)
    order = (*snapshot.partition, keyed_rows.position)
    computed = {column for column in snapshot.partition if column not in snapshot.schema.names}
    added = {*computed, *keyed_rows.added}
    if untested is None and narrows(shuffled, added):
        sorted_rows = sort_and_narrow(shuffled, order, added)
        if isinstance(sorted_rows, DataFrame):
            watch = None if name is None else (shuffled, name)
            return ClusteredRows(rows=sorted_rows, untested=None, watch=watch)
        untested = sorted_rows
    plain = shuffled.sortWithinPartitions(*(quote((column,)) for column in order))
    return ClusteredRows(rows=plain.drop(*added), untested=untested)


def _find_untested(spark: SparkSession) -> str | None:
    """Return the component of a session that was not tested, or has failed a test, or None."""
    if untested := find_untested_component(spark):
        return untested
    listed = builds.standing(spark.version) is Standing.LISTED
    wrong = None if listed else failure(spark)
    return None if wrong is None else f"Spark {spark.version} (its self-test failed: {wrong})"
