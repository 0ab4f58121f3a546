"""One pass over the rows: read, key, move, sort, write."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.layout import Layout
from zadapter.names import quote
from zadapter.spark.keys import keyed
from zadapter.table import Sorted


def clustered(rows: DataFrame, layout: Layout, partition: Mapping[str, pa.DataType]) -> Sorted:
    """Put each row into its file's partition, in the order of the curve.

    ``repartitionById`` needs no sampling pass, and adaptive execution leaves the number of
    partitions alone.  Sorting by a single integer is a radix sort; under partition columns, which
    are constant within a file, they come first, since the writer would sort by them again.
    """
    placed = keyed(rows, layout, partition)
    moved = placed.rows.repartitionById(layout.files, F.col(f"`{placed.file}`"))
    order = (*partition, placed.place)
    return Sorted(moved.sortWithinPartitions(*(quote((name,)) for name in order)), placed.added)
