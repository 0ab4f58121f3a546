"""Equality deletes that arrive while a rewrite is under way stay effective."""

import time
from pathlib import Path

import pytest

from zadapter.backend.commit import Backoff

AT_ONCE = Backoff(attempts=3, initial=0.0)
LATER = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"


def numbers(spark, start=0, rows=2_000):
    """Rows whose column a has each value once."""
    return spark.range(start, start + rows).selectExpr("id AS a", "id % 2 AS b", "id AS c")


def keys(lake, name):
    """The values of column a by Spark, since pyiceberg reads no equality deletes."""
    lake.sql(f"REFRESH TABLE {name}")
    return sorted(row.a for row in lake.load(name).select("a").collect())


@pytest.fixture(params=[2, 3])
def table(lake, spark, request):
    return lake.make(numbers(spark), format_version=request.param)


def test_an_append_after_an_equality_delete_brings_nothing_back(lake, spark, table, between):
    """Flink deletes a key and somebody appends, both before the rewrite is committed."""

    def rivals():
        lake.delete_equal(table, 12)
        lake.append(table, numbers(spark, 5_000, 3))

    lake.optimize(table, backend=between(rivals), backoff=AT_ONCE)

    assert keys(lake, table) == [*range(12), *range(13, 2_000), 5_000, 5_001, 5_002]


def test_expired_snapshots_take_no_equality_delete_with_them(lake, spark, table, between):
    """The snapshot that was read is gone, so the rewrite goes on from a later one."""

    def rivals():
        lake.delete_equal(table, 12)
        lake.append(table, numbers(spark, 5_000, 3))
        lake.sql(f"CALL ice.system.expire_snapshots(table => '{table}', {LATER})")

    lake.optimize(table, backend=between(rivals), backoff=AT_ONCE)

    assert keys(lake, table) == [*range(12), *range(13, 2_000), 5_000, 5_001, 5_002]


@pytest.mark.parametrize("rewrites", [1, 2])
def test_a_commit_of_our_own_brings_nothing_back(lake, spark, between, rewrites):
    """A run of two commits: the delete arrives before the first, or between the two."""
    name = lake.make(numbers(spark), "b")
    part = {"spec": 0, "partition": "b=0"}
    actions = [lambda: None] * (rewrites - 1) + [lambda: lake.delete_equal(name, 12, **part)]

    report = lake.optimize(name, backend=between(*actions), backoff=AT_ONCE, max_group_bytes="1KB")

    assert len(report.versions) >= 2
    assert keys(lake, name) == [*range(12), *range(13, 2_000)]


def test_other_branches_take_no_equality_delete_with_them(lake, spark, table, between):
    """A commit to another branch raises the table's sequence number as well."""
    lake.sql(f"ALTER TABLE {table} CREATE BRANCH audit")

    def rivals():
        lake.delete_equal(table, 12)
        numbers(spark, 5_000, 3).writeTo(f"{table}.branch_audit").append()

    lake.optimize(table, backend=between(rivals), backoff=AT_ONCE)

    assert keys(lake, table) == [*range(12), *range(13, 2_000)]


def test_an_expiry_by_icebergs_own_classes_deletes_nothing_that_is_live(
    lake, spark, table, between
):
    """It deletes what an expired commit has dropped (``IncrementalFileCleanup``), live or not."""

    def rivals():
        lake.delete_equal(table, 12)
        lake.append(table, numbers(spark, 5_000, 3))

    lake.optimize(table, backend=between(rivals), backoff=AT_ONCE)
    lake.append(table, numbers(spark, 6_000, 1))
    load = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable  # noqa: SLF001
    time.sleep(0.05)
    expiry = load(spark._jsparkSession, table).expireSnapshots()  # noqa: SLF001
    expiry.expireOlderThan(int(time.time() * 1_000)).retainLast(1).commit()

    lake.sql(f"REFRESH TABLE {table}")
    deletes = lake.load(f"{table}.delete_files").select("file_path").collect()
    assert all(Path(row.file_path.removeprefix("file:")).exists() for row in deletes)
    assert keys(lake, table) == [*range(12), *range(13, 2_000), 5_000, 5_001, 5_002, 6_000]
