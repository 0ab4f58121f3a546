"""Writing one job's rows along its layout."""

from contextlib import suppress

from pyspark.sql import SparkSession

from zadapter.encoding import Encoding, dictionary_given_up
from zadapter.names import Parts, leaves
from zadapter.spark.footers import metadata
from zadapter.spark.rewriting import clustered
from zadapter.spark.verification import live_rows
from zadapter.table import Written
from zadapter.verbs.preparing import Prepared, Work


def write(prepared: Prepared, work: Work, spark: SparkSession) -> Written:
    """Read, key, move, sort and write the rows of *work*, for no reader to see yet."""
    snapshot, backend = prepared.snapshot, prepared.backend
    encoding = Encoding(row_group=_row_group(prepared, work), plain=_plain(prepared, work, spark))
    moved = clustered(backend.read(snapshot, work.job.files), work.layout, snapshot.partition)
    return backend.write(snapshot, moved, work.layout, encoding)


def _row_group(prepared: Prepared, work: Work) -> int | None:
    rows = live_rows(work.job.files)
    parts = sum(group.cut_into for group in work.job.groups) * prepared.request.row_groups
    return None if rows is None else max(1, -(-rows // parts))


def _plain(prepared: Prepared, work: Work, spark: SparkSession) -> frozenset[Parts]:
    """Return the columns that the largest file keeps without a dictionary, but for the keys.

    Values of a key that are far apart there will lie side by side.
    """
    snapshot, keys = prepared.snapshot, work.layout.request.columns
    largest = max(work.job.files.select(["size", "path"]).to_pylist(), key=lambda f: f["size"])
    given_up: frozenset[str] = frozenset()
    # a file that cannot be read is the reader's to complain of
    with suppress(Exception):
        uri = prepared.backend.uri(snapshot, largest["path"])
        given_up = dictionary_given_up(metadata(spark, uri)[1])
    paths = {parts: ".".join(snapshot.physical.get(parts, parts)) for parts in _columns(prepared)}
    return frozenset(parts for parts in paths if paths[parts] in given_up and parts not in keys)


def _columns(prepared: Prepared) -> list[Parts]:
    return [parts for parts, _ in leaves(prepared.snapshot.schema)]
