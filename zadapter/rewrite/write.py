"""Writing one job's rows along its layout."""

from contextlib import suppress
from dataclasses import replace

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.names import Parts, leaves
from zadapter.layout import assign
from zadapter.layout.layout import Request
from zadapter.planning.file_groups import Job
from zadapter.rewrite.planner import PlannedJob, RewritePlan
from zadapter.rewrite.shuffle import Clustered, clustered
from zadapter.rewrite.verify import live_rows
from zadapter.spark.footers import metadata
from zadapter.table.encoding import Encoding, dictionary_given_up, dictionary_pays
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot, Written


def write(
    prepared: RewritePlan, work: PlannedJob, spark: SparkSession, *, checksum: bool
) -> tuple[Written, Clustered]:
    """Read, key, move, sort and write the rows of *work*, for no reader to see yet.

    Args:
        prepared: What is rewritten.
        work: The job.
        spark: A session.
        checksum: Whether to add up what is read.
    """
    snapshot, backend = prepared.snapshot, prepared.backend
    how = encoding(backend, snapshot, work.job, work.layout.request, spark, work)
    how = replace(how, whole=work.job.files.num_rows == prepared.files.num_rows)
    rows = backend.read(snapshot, work.job.files)
    moved = clustered(rows, work.layout, snapshot, checksum=checksum)
    return backend.write(snapshot, moved.rows, work.layout, how), moved


def encoding(
    backend: Backend,
    snapshot: Snapshot,
    job: Job,
    request: Request,
    spark: SparkSession,
    work: PlannedJob | None = None,
) -> Encoding:
    """Decide by the largest file how to encode; what cannot be told is left to the format.

    Args:
        backend: Of the table that is read.
        snapshot: Its version.
        job: What is read of it.
        request: The layout that is written.
        spark: A session.
        work: The job with a sample of its keys; None: there is none.
    """
    files = job.files
    rows = live_rows(files)
    plain: frozenset[Parts] = frozenset()
    largest = max(files.select(["size", "path"]).to_pylist(), key=lambda file: file["size"])
    # a file that cannot be read is the reader's to complain of
    with suppress(Exception):
        (uri,) = backend.uris(snapshot, [largest["path"]])
        size, footer = metadata(spark, uri)
        plain = _plain(snapshot, footer)
        if rows is None:
            rows = footer.num_rows * total(files, "size") // size
    parts = sum(group.cut_into for group in job.groups) * request.row_groups
    row_group = None if rows is None else max(1, -(-rows // parts))
    # keys, far apart before, will lie side by side: what they were written as says little
    plain -= set(request.columns)
    if work is not None and row_group is not None:
        plain |= _plain_keys(work, row_group)
    return Encoding(row_group=row_group, plain=plain)


def _plain(snapshot: Snapshot, footer: pq.FileMetaData) -> frozenset[Parts]:
    """Return the columns without a dictionary in a file."""
    given_up = dictionary_given_up(footer)
    columns = [parts for parts, _ in leaves(snapshot.schema)]
    return frozenset(p for p in columns if ".".join(snapshot.physical.get(p, p)) in given_up)


def _plain_keys(work: PlannedJob, rows: int) -> frozenset[Parts]:
    """Return the keys that a dictionary would not make smaller, in row groups of so many rows."""
    group = assign.row_groups(work.layout, work.leaf_of, work.file_of)
    keys = zip(work.layout.request.columns, work.keys, strict=True)
    return frozenset(key for key, values in keys if not dictionary_pays(values, group, rows))
