"""Writing of one job's rows in the order of its layout."""

from dataclasses import dataclass, replace

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from zadapter.backend.contract import Backend
from zadapter.base.interrupts import ignoring_errors
from zadapter.base.names import Parts, leaves
from zadapter.layout import assign
from zadapter.layout.layout import Request
from zadapter.planning.file_groups import Job
from zadapter.rewrite.fitting import PlannedJob
from zadapter.rewrite.shuffle import Clustered, clustered
from zadapter.spark.footers import metadata
from zadapter.table.bloom_filters import writable
from zadapter.table.encoding import Encoding, dictionary_given_up, dictionary_pays
from zadapter.table.file_stats import live_rows, total
from zadapter.table.snapshot import Snapshot, Written


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
) -> tuple[Written, Clustered]:
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
    shuffled = clustered(rows, planned.layout, snapshot, checksum=aim.checksum)
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
        planned: The job with a sample of its keys; None: there is no sample.
    """
    files = job.files
    rows = live_rows(files)
    plain: frozenset[Parts] = frozenset()
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


def _plain(snapshot: Snapshot, footer: pq.FileMetaData) -> frozenset[Parts]:
    """Return the columns for which the writer of a file gave up its dictionary."""
    given_up = dictionary_given_up(footer)
    columns = [parts for parts, _ in leaves(snapshot.schema)]
    return frozenset(p for p in columns if ".".join(snapshot.physical.get(p, p)) in given_up)


def _plain_keys(planned: PlannedJob, rows: int) -> frozenset[Parts]:
    """Return the keys that a dictionary would not shrink in row groups of *rows* rows."""
    group = assign.row_groups(planned.layout, planned.leaf_of, planned.file_of, planned.row_groups)
    keys = zip(planned.layout.request.columns, planned.keys, strict=True)
    return frozenset(key for key, values in keys if not dictionary_pays(values, group, rows))
