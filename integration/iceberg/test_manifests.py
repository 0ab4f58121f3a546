"""pyiceberg, a reader of manifests not written here, tells the same of a table's files."""

import pyarrow as pa
import pytest

from zadapter_iceberg import IcebergBackend
from zadapter_iceberg.stats.manifest_stats import file_table
from zadapter_iceberg.table.files_table import select_stats_columns

COUNTS = pa.map_(pa.int32(), pa.int64())
BOUNDS = pa.map_(pa.int32(), pa.binary())


def by_pyiceberg(table, snapshot, columns):
    """The file table, made of what pyiceberg reads in the manifests."""
    found = table.inspect.data_files()
    names = {
        "lower_bounds": BOUNDS, "upper_bounds": BOUNDS,
        "null_value_counts": COUNTS, "nan_value_counts": COUNTS,
    }  # fmt: skip
    for name, type_ in names.items():
        at = found.schema.get_field_index(name)
        found = found.set_column(at, name, found[name].cast(type_))
    wanted = select_stats_columns(snapshot, columns)
    return file_table(found, wanted, snapshot.partition, {}, table.spec().spec_id)


@pytest.mark.parametrize("partition", ["", "days(t), bucket(3, a), s"])
def test_both_readers_give_the_same_table(lake, spark, partition):
    """Paths, sizes, rows, partitions, bounds and counts, before and after a rewrite."""
    rows = spark.range(2_000).selectExpr(
        "id * 7919 % 2003 AS a",
        "nullif(concat('text ', id % 7), 'text 5') AS s",
        "timestamp_seconds(1e9 + id % 3 * 1e5) AS t",
        "cast(id AS decimal(20, 3)) AS d",
        "if(id % 7 = 0, double('NaN'), id / 3) AS f",
        "named_struct('x', cast(id AS int), 'y', date_add(date'2024-01-01', cast(id AS int))) AS n",
    )
    name = lake.make(rows, partition)
    columns = [("a",), ("s",), ("t",), ("d",), ("f",), ("n", "x"), ("n", "y")]
    for _ in range(2):
        backend = IcebergBackend(spark)
        snapshot = backend.snapshot(name)

        ours = backend.files(snapshot, columns).sort_by("path")
        theirs = by_pyiceberg(lake.table(name), snapshot, columns).sort_by("path")

        assert ours.drop_columns("stats").equals(theirs.drop_columns("stats"))
        # as text, for NaN is no number that equals itself
        assert str(ours["stats"].to_pylist()) == str(theirs["stats"].to_pylist())
        lake.optimize(name, by=["a", "d"])
