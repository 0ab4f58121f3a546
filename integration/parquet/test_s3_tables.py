"""Folders of Parquet files on S3: all verbs, many files, and what may go wrong."""

from datetime import timedelta
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.lakes import settings
from integration.s3 import KEY, SECRET
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


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_all_verbs(spark, s3, scheme):
    """Optimized, appended to, deleted from, overwritten, read at any version, cleaned up."""
    table = made(spark, scheme=scheme)
    plan = zadapter.plan(table, by=["a", "b"], target_file_size="2KB", backend="parquet")
    report = optimize(table, spark)
    assert report.share_after < 0.7
    assert report.share_after == pytest.approx(plan.share_after, abs=0.05)

    assert zadapter.append(table, spark.sql("SELECT 5000L a, 1L b, 1 p")) == 2
    assert zadapter.delete(table, "a = 5000", spark=spark) == 1
    assert zadapter.overwrite(table, spark.sql("SELECT 6000L a, 1L b, 1 p")) == 4
    few = zadapter.files(table, where="a < 30", row_groups=True, spark=spark)
    every = zadapter.files(table, spark=spark)
    assert 0 < few.num_rows < every.num_rows / 2
    assert rows_of(s3, every).num_rows == 1_001
    assert [zadapter.read(table, version=v, spark=spark).count() for v in range(5)] == [
        2_000, 2_000, 2_001, 2_000, 1_001,
    ]  # fmt: skip
    assert zadapter.restore(table, 1) == 5
    assert zadapter.read(table, where="a < 30", spark=spark).count() == 30
    assert [c.operation for c in zadapter.history(table)] == [
        "restore", "overwrite", "delete", "append", "optimize", "register",
    ]  # fmt: skip
    before = len(s3.keys(table.rpartition("/")[2]))
    gone = zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=spark)
    # its own entry in the log came
    assert len(s3.keys(table.rpartition("/")[2])) == before - len(gone) + 1 < before
    assert zadapter.read(table, spark=spark).count() == 2_000


def test_a_session_that_knows_s3a_alone(spark, s3):
    """Hadoop has no class for ``s3://`` out of the box."""
    table = made(spark)
    with settings(spark, {"fs.s3.impl": "none.at.All"}):
        optimize(table.replace("s3a:", "s3:"), spark)
        rows = zadapter.read(table.replace("s3a:", "s3:"), spark=spark)

    assert rows.count() == 2_000
    assert rows_of(s3, zadapter.files(table, spark=spark)).num_rows == 2_000


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


def test_a_thousand_files(spark, s3):
    """Footers are read many at a time; nothing is listed or asked for file by file in turn."""
    root = f"gated/{uuid4().hex}"
    for number in range(1_000):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"a": [number], "b": [number % 7]}), sink)
        key = f"{root.partition('/')[2]}/{number:04}.parquet"
        s3.client.put_object(Bucket="gated", Key=key, Body=sink.getvalue().to_pybytes())
    s3.gate.most = 0

    plan = zadapter.plan(f"s3://{root}", by="a", backend="parquet", spark=spark)

    assert plan.files_before == 1_000
    assert s3.gate.most > 8


def test_temporary_credentials(spark):
    """A key that is of use with its token only, by settings of the bucket."""
    optimize(made(spark, "temporary"), spark)


def test_a_key_that_nobody_knows(spark, s3):
    table = made(spark)
    with pytest.raises(errors.StoreError, match=r"s3a://strangers.*InvalidAccessKeyId.*the key"):
        optimize(table.replace("lake", "strangers"), spark)


def test_a_bucket_that_is_not_there(spark):
    with pytest.raises(errors.UnknownTableError, match=r"s3://nowhere/t.*no such bucket"):
        optimize("s3://nowhere/t", spark)


def copied(s3, table, bucket):
    """Copy a table into another bucket, by the server itself."""
    for key in s3.keys(table.removeprefix("s3a://lake/")):
        s3.client.copy_object(Bucket=bucket, Key=key, CopySource=f"lake/{key}")
    return table.replace("lake", bucket)


def test_a_key_that_may_read_only(spark, s3):
    """It can plan, read and list; nothing is left of what it tried to write."""
    table = copied(s3, made(spark), "readers")
    before = s3.keys("", "readers")
    assert zadapter.plan(table, by="a", backend="parquet", spark=spark).files_before == 8

    with pytest.raises(errors.StoreError, match=r"s3a://readers.*AccessDenied.*its rights"):
        optimize(table, spark)

    assert s3.keys("", "readers") == before


@pytest.mark.parametrize("writes", [0, 1, 3, 9, 20, 40, 60])
def test_a_connection_that_is_lost_in_the_middle(spark, s3, writes):
    """After so many writes nothing answers any more; the table is one version or the other."""
    table = copied(s3, made(spark), "gated")
    s3.gate.writes_left = writes
    try:
        with pytest.raises((errors.StoreError, errors.UnknownOutcomeError)):
            optimize(table, spark)
    finally:
        s3.gate.writes_left = None

    assert rows_of(s3, zadapter.files(table, backend="parquet", spark=spark)).num_rows == 2_000
    optimize(table, spark)
    assert zadapter.read(table, spark=spark).count() == 2_000
