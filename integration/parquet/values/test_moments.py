"""Moments of folders that Spark has written, as INT96, stay what they are for every engine.

DuckDB takes INT96 for a time without a zone, and INT64 for a moment. Where files differ, it shifts
one of them by the offset of its own zone; Polars refuses them.
"""

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
import zadapter_parquet
from integration.parquet.values.test_stats import timestamps_as
from zadapter.errors import StaleRewriteError

ROWS = 1_000
SUM = 'SELECT count(*), sum(epoch_us("at")) FROM read_parquet({})'


def moments(spark, first=0, count=ROWS):
    """An hour between one and the next."""
    rows = spark.range(first, first + count)
    return rows.select("id", F.expr("timestamp_seconds(1700000000 + id * 3600)").alias("at"))


@pytest.fixture
def folder(lake, spark):
    path = f"{lake.folder}/moments"
    with timestamps_as(spark, "INT96"):
        moments(spark).repartition(4).write.parquet(path)
    return path


def kinds(paths):
    """How files store the column."""
    return {pq.ParquetFile(path).schema.column(1).physical_type for path in paths}


def check(spark, folder, expected):
    """All files store moments alike; DuckDB and Polars see them, in whichever order files come."""
    paths = zadapter.files(folder, spark=spark)["path"].to_pylist()
    micros = [int(1e6) * (1_700_000_000 + n * 3_600) for n in expected]
    assert len(kinds(paths)) == 1
    for order in (paths, paths[::-1]):
        assert duckdb.sql(SUM.format(order)).fetchall() == [(len(micros), sum(micros))]
    assert pl.scan_parquet(paths).collect().height == len(micros)


def test_rows_appended_to_a_folder_of_spark(spark, folder):
    """They are stored as the others are; a rewrite of all files has bounds in its footers."""
    zadapter.append(folder, moments(spark, ROWS, 50), backend="parquet", spark=spark)
    check(spark, folder, range(ROWS + 50))

    zadapter.optimize(folder, by=["at"], target_file_size="8KB", spark=spark)
    check(spark, folder, range(ROWS + 50))
    assert kinds(zadapter.files(folder, spark=spark)["path"].to_pylist()) == {"INT64"}

    zadapter.append(folder, moments(spark, 2 * ROWS, 50), spark=spark)
    check(spark, folder, [*range(ROWS + 50), *range(2 * ROWS, 2 * ROWS + 50)])

    zadapter.restore(folder, 0, spark=spark)
    zadapter.append(folder, moments(spark, ROWS, 50), spark=spark)
    check(spark, folder, range(ROWS + 50))


def test_files_that_stay_beside_those_of_a_rewrite(lake, spark):
    """The rewrite stores moments as they do, and knows their bounds all the same."""
    path, many = f"{lake.folder}/years", 20_000
    with timestamps_as(spark, "INT96"):
        rows = moments(spark, count=many).withColumn("p", F.expr("int(id >= 10000)"))
        rows.write.partitionBy("p").parquet(path)
    zadapter.optimize(path, by=["at"], where="p = 0", target_file_size="16KB", backend="parquet")
    check(spark, path, range(many))

    first = "at < TIMESTAMP'2023-11-15T08:13:20Z'"
    assert zadapter.files(path, where="p = 0", spark=spark).num_rows > 2
    assert zadapter.files(path, where=first, spark=spark).num_rows == 1
    assert zadapter.read(path, where=first, spark=spark).count() == 10

    zadapter.delete(path, "id % 100 = 7", spark=spark)
    check(spark, path, [n for n in range(many) if n % 100 != 7])


def test_a_rewrite_beside_an_append(spark, folder, monkeypatch):
    """Rows that come as INT96 while all files are written as INT64 are not mixed with them."""
    zadapter.append(folder, moments(spark, ROWS, 50), backend="parquet", spark=spark)
    commit = zadapter_parquet.ParquetBackend.commit
    late = [moments(spark, 2 * ROWS, 50)]

    def beaten(backend, rewrite):
        if late:
            zadapter.append(folder, late.pop(), spark=spark)
        return commit(backend, rewrite)

    monkeypatch.setattr(zadapter_parquet.ParquetBackend, "commit", beaten)
    with pytest.raises(StaleRewriteError, match="timestamp encoding"):
        zadapter.optimize(folder, by=["at"], target_file_size="8KB", spark=spark)
    zadapter.optimize(folder, by=["at"], target_file_size="8KB", spark=spark)

    check(spark, folder, [*range(ROWS + 50), *range(2 * ROWS, 2 * ROWS + 50)])
