"""Folders of Parquet files on S3: all verbs, odd names, many files."""

from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.s3 import KEY, SECRET
from zadapter import errors


def made(spark, bucket="lake", scheme="s3a"):
    """Make a folder of 2 000 rows in four files or more, partitioned."""
    path = f"{scheme}://{bucket}/{uuid4().hex}"
    rows = spark.range(2_000).selectExpr("id * 7919 % 2003 AS a", "id AS b", "id % 2 AS p")
    rows.repartition(4).write.partitionBy("p").parquet(path)
    return path


def store(s3):
    """The server, as pyarrow sees it."""
    return pyarrow.fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=s3.uri, region="us-east-1"
    )


def rows_of(s3, files):
    """Rows of files that zadapter names, by pyarrow."""
    paths = [path.removeprefix("s3://") for path in files["path"].to_pylist()]
    return ds.dataset(paths, filesystem=store(s3), format="parquet").to_table()


def optimize(table, spark):
    return zadapter.optimize(table, by=["a", "b"], target_file_size="2KB", backend="parquet",
                             spark=spark)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_all_verbs(spark, s3, scheme):
    """Optimized, appended to, deleted from, overwritten, read at any version, cleaned up."""
    table = made(spark, scheme=scheme)
    plan = zadapter.plan(table, by=["a", "b"], target_file_size="2KB", backend="parquet")
    report = optimize(table, spark)
    assert report.share_after < 0.7
    assert report.share_after == pytest.approx(plan.share_after, abs=0.05)

    assert zadapter.append(table, spark.sql("SELECT 5000L a, 1L b, 1 p")).version == 2
    assert zadapter.delete(table, "a = 5000", spark=spark).rows_deleted == 1
    assert zadapter.overwrite(table, spark.sql("SELECT 6000L a, 1L b, 1 p")).version == 4
    few = zadapter.files(table, where="a < 30", row_groups=True, spark=spark)
    every = zadapter.files(table, spark=spark)
    assert 0 < few.num_rows < every.num_rows / 2
    assert rows_of(s3, every).num_rows == 1_001
    assert [zadapter.read(table, version=v, spark=spark).count() for v in range(5)] == [
        2_000, 2_000, 2_001, 2_000, 1_001,
    ]  # fmt: skip
    assert zadapter.restore(table, 1).version == 5
    assert zadapter.read(table, where="a < 30", spark=spark).count() == 30
    assert [c.operation for c in zadapter.history(table)] == [
        "restore", "overwrite", "delete", "append", "optimize", "register",
    ]  # fmt: skip
    before = set(s3.keys(table.rpartition("/")[2]))
    gone = zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=spark)
    assert len(gone.paths) == len(before - set(s3.keys(table.rpartition("/")[2]))) > 0
    assert zadapter.read(table, spark=spark).count() == 2_000
    zadapter.publish(table, spark=spark)
    assert listed(s3, table) == zadapter.read(table, spark=spark).count() == 2_000


def listed(s3, table):
    """Count the rows that an engine finds that lists the folder."""
    folder = table.partition("://")[2]
    return ds.dataset(folder, filesystem=store(s3), format="parquet").count_rows()


@pytest.mark.slow
def test_publishing_loses_its_connection(spark, s3):
    """An engine that lists sees a version or an error, and the next call finishes it."""
    table = made(spark, "gated")
    optimize(table, spark)
    zadapter.delete(table, "b < 1000", spark=spark)
    seen = []
    for writes in range(0, 40, 4):
        with s3.gate.cutting(writes), suppress(errors.StoreError, errors.UnknownOutcomeError):
            zadapter.publish(table, spark=spark)
        with suppress(pa.ArrowInvalid):  # of a file that is no Parquet, and says so
            seen.append(listed(s3, table))
        assert zadapter.read(table, spark=spark).count() == 1_000

    assert zadapter.publish(table, spark=spark).nothing_to_do
    assert {*seen} == {2_000, 1_000} == {*seen, listed(s3, table)}


def test_names_that_a_url_writes_otherwise(spark, s3):
    """A table lies where its name says, letter by letter, not in the folder ``100``."""
    root = uuid4().hex
    neighbour = f"s3a://lake/{root}/100"
    spark.range(5).write.parquet(neighbour)
    table = f"s3a://lake/{root}/100%20#1? a"
    spark.range(100).selectExpr("id AS a", "concat('a#%/', id % 2) AS p").write.partitionBy(
        "p"
    ).parquet(table)

    zadapter.optimize(table, by="a", backend="parquet", spark=spark)

    assert zadapter.read(table, where="p = 'a#%/1'", spark=spark).count() == 50
    assert rows_of(s3, zadapter.files(table, spark=spark)).num_rows == 100
    assert not [key for key in s3.keys(f"{root}/100/") if "_zadapter" in key]


@pytest.mark.slow
def test_hundreds_of_files(spark, s3):
    """Footers are read many at a time; nothing is listed or asked for file by file in turn."""
    root = f"gated/{uuid4().hex}"
    for number in range(300):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": [number], "b": [number % 7]}), sink)
        key = f"{root.partition('/')[2]}/{number:04}.parquet"
        s3.client.put_object(Bucket="gated", Key=key, Body=sink.getvalue().to_pybytes())
    s3.gate.most = 0

    plan = zadapter.plan(f"s3://{root}", by="a", backend="parquet", spark=spark)

    assert plan.files_before == 300
    assert s3.gate.most > 8
