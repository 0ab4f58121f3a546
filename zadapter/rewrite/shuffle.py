"""Shuffle and sort of rows into the files of a layout."""

from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from zadapter.backend import builds
from zadapter.backend.builds import Standing
from zadapter.base.names import quote
from zadapter.layout.layout import Layout
from zadapter.spark.checksum import Totals, observed, watched
from zadapter.spark.compat.spark_api import repartition_by_id
from zadapter.spark.layout_expression import keyed
from zadapter.spark.narrowing.components import untested_session
from zadapter.spark.narrowing.self_test import failure
from zadapter.spark.narrowing.sort import narrowed, narrows
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """Rows partitioned by file and sorted along the curve."""

    rows: DataFrame
    """The table's columns."""
    untested: str | None
    """The untested component that makes this fall back to DataFrame operations; None: none."""
    watch: tuple[DataFrame, str] | None = field(default=None, repr=False)
    """The executed rows, and the name of their observation."""

    def observed(self) -> Totals | None:
        """Return the totals of the rows read, once they are written; None: unknown.

        The totals may count rows twice (see :func:`~zadapter.spark.checksum.watched`).
        """
        return None if self.watch is None else observed(*self.watch)


def clustered(
    rows: DataFrame, layout: Layout, snapshot: Snapshot, *, checksum: bool = False
) -> Clustered:
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
    untested = _untested(rows.sparkSession)
    name = None
    if checksum and untested is None:
        rows, name = watched(rows, snapshot.schema.names)
    keyed_rows = keyed(rows, layout, snapshot.partition)
    shuffled = repartition_by_id(keyed_rows.rows, layout.files, keyed_rows.file)
    order = (*snapshot.partition, keyed_rows.position)
    computed = {column for column in snapshot.partition if column not in snapshot.schema.names}
    added = {*computed, *keyed_rows.added}
    if untested is None and narrows(shuffled, added):
        sorted_rows = narrowed(shuffled, order, added)
        if isinstance(sorted_rows, DataFrame):
            watch = None if name is None else (shuffled, name)
            return Clustered(rows=sorted_rows, untested=None, watch=watch)
        untested = sorted_rows
    plain = shuffled.sortWithinPartitions(*(quote((column,)) for column in order))
    return Clustered(rows=plain.drop(*added), untested=untested)


def _untested(spark: SparkSession) -> str | None:
    """Return the component of a session that was not tested, or has failed a test, or None."""
    if untested := untested_session(spark):
        return untested
    listed = builds.standing(spark.version) is Standing.LISTED
    wrong = None if listed else failure(spark)
    return None if wrong is None else f"Spark {spark.version} (its self-test failed: {wrong})"
