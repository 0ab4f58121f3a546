"""Folders of Parquet files on S3, by all verbs."""

from datetime import timedelta
from uuid import uuid4

import pyarrow.dataset as ds
import pyarrow.fs
import pytest

import zadapter
from integration.s3 import KEY, SECRET


@pytest.fixture(params=["s3", "s3a"])
def table(request, spark, s3):
    """A folder of 2 000 rows in four files, partitioned."""
    path = f"{request.param}://lake/{uuid4().hex}"
    rows = spark.range(2_000).selectExpr("id * 7919 % 2003 AS a", "id AS b", "id % 2 AS p")
    rows.repartition(4).write.partitionBy("p").parquet(path)
    return path


def rows_of(s3, files):
    """Rows of files, by pyarrow."""
    store = pyarrow.fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=s3.uri, region="us-east-1"
    )
    paths = [path.removeprefix("s3://") for path in files["path"].to_pylist()]
    return ds.dataset(paths, filesystem=store, format="parquet").to_table()


def test_all_verbs(table, spark, s3):
    """Optimized, appended to, deleted from, overwritten, read at any version, cleaned up."""
    plan = zadapter.plan(table, by=["a", "b"], target_file_size="2KB", backend="parquet")
    report = zadapter.optimize(table, by=["a", "b"], target_file_size="2KB", backend="parquet")
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
    gone = zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=spark)
    assert gone
    assert zadapter.read(table, spark=spark).count() == 2_000
