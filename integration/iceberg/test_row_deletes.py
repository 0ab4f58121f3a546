"""Row-level deletes make a rewrite due; those that arrive meanwhile stay effective."""

import time
from pathlib import Path

import pytest

from tests.kit.variants import slow
from zadapter.base.commit_attempts import Backoff

AT_ONCE = Backoff(attempts=3, initial=0.0)
ROWS, SIZE = 4_000, "12KB"
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


@pytest.mark.parametrize("rewrites", [2, *slow(1)])
def test_a_commit_of_our_own_brings_nothing_back(lake, spark, between, rewrites):
    """A run of two commits: the delete arrives before the first, or between the two."""
    name = lake.make(numbers(spark), "b")
    part = {"spec": 0, "partition": "b=0"}
    actions = [lambda: None] * (rewrites - 1) + [lambda: lake.delete_equal(name, 12, **part)]

    report = lake.optimize(name, backend=between(*actions), backoff=AT_ONCE, max_job_bytes="1KB")

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


@pytest.fixture
def clustered(lake, spark):
    """A clustered table of several files, in the format version 2."""
    rows = spark.range(ROWS).selectExpr("id * 7919 % 10007 AS a", "id", "md5(string(id)) AS c")
    name = lake.make(rows, **{"write.delete.mode": "merge-on-read"})
    lake.optimize(name, by=["a"], target_file_size=SIZE)
    assert len(lake.files(name)) > 6
    return name


def paths(lake, name):
    lake.sql(f"REFRESH TABLE {name}")  # pyiceberg plans no equality deletes
    return {row.file_path for row in lake.load(f"{name}.files").where("content = 0").collect()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("granularity", "where", "least", "most"),
    [("file", "a < 4000", 0.1, 0.5), ("partition", "a >= 0", 1, 1)],
)
def test_files_of_which_many_rows_are_deleted_by_position_are_rewritten(
    lake, clustered, granularity, where, least, most
):
    """Those of more than 0.3; a delete file of a partition counts for each of its files."""
    lake.sql(
        f"ALTER TABLE {clustered} SET TBLPROPERTIES ('write.delete.granularity'='{granularity}')"
    )
    lake.sql(f"DELETE FROM {clustered} WHERE {where} AND id % 5 < 2")
    lake.sql(f"DELETE FROM {clustered} WHERE id % 20 = 7")
    left, before = lake.read(clustered), paths(lake, clustered)

    report = lake.optimize(clustered, target_file_size=SIZE)

    assert set(report.plan.reasons) == {"deleted rows"}
    assert least <= len(before - paths(lake, clustered)) / len(before) <= most
    assert lake.read(clustered) == left
    assert lake.optimize(clustered, target_file_size=SIZE).nothing_to_do


@pytest.mark.parametrize(
    ("files", "rows", "rewritten"),
    [
        (10, 50, True),
        pytest.param(9, 50, False, marks=pytest.mark.slow),
        pytest.param(10, 1, False, marks=pytest.mark.slow),
    ],
)
def test_files_with_many_delete_files_are_rewritten(lake, clustered, files, rows, rewritten):
    """A reader opens all of them with each file: these have no bounds, so they may apply to any."""
    gone = [row.a for row in lake.load(clustered).select("a").sort("a").take(files * rows)]
    for number in range(files):
        lake.delete_equal(clustered, *gone[number::files])
    before = paths(lake, clustered)

    report = lake.optimize(clustered, target_file_size=SIZE)

    assert report.nothing_to_do is not rewritten
    assert before.isdisjoint(paths(lake, clustered)) is rewritten
    assert lake.load(clustered).count() == ROWS - files * rows
