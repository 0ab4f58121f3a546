"""Rows that other writers delete while a rewrite moves them."""

from collections import Counter
from pathlib import Path

import deltalake
import pytest

from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter import Backoff
from zadapter.errors import StaleRewriteError, VerificationError

NOW = Backoff(initial=0.0, attempts=4)
VECTORS = {"enableDeletionVectors": "true"}
COPIES = {"spark.databricks.delta.delete.deletionVectors.persistent": "false"}
"""Setting that makes a DELETE rewrite whole files."""
EVERY_TYPE = (
    "id % 7 a",
    "id % 3 p",
    "if(id % 5 = 0, null, id % 4) n",
    "case when id % 6 = 0 then double('NaN') when id % 6 = 1 then -0.0D else id % 2 end f",
    "cast(id % 11 as decimal(38, 10)) / 3 d",
    "named_struct('x', id % 2, 'y', array(id % 3, null)) s",
    "map('k', id % 2) m",
    "date_add(date'2024-01-01', cast(id % 9 as int)) day",
)


@pytest.fixture
def table(lake, spark):
    rows = spark.range(3_000).selectExpr("id a", "id % 3 p", "id * 7919 % 3001 s")
    return lake.make(rows, files=6, **VECTORS)


def ids_of(lake, table):
    """The id of each row, by its column s."""
    rows = lake.load(table).selectExpr("s", "_metadata.row_id id")
    return {row.s: row.id for row in rows.collect()}


def live_files(lake, table):
    """The AddFile action of each live file."""
    found = {}
    for version in lake.log(table):
        for action in version:
            if "remove" in action:
                found.pop(action["remove"]["path"], None)
        for action in version:
            if "add" in action:
                found[action["add"]["path"]] = action["add"]
    return found


def test_a_delete_meanwhile_costs_only_its_rows(lake, spark, table, between):
    """All files are rewritten, and the deleted rows stay deleted, for Spark and for delta-rs."""
    rival = between(lambda: lake.sql(f"DELETE FROM delta.`{table}` WHERE s < 31"))

    report = lake.optimize(table, backend=rival, backoff=NOW)

    assert report.stale == ()
    assert report.rebased.rows == 31
    assert report.rows_added == 3_000 - 31
    assert report.files_removed == 6
    assert {r.s for r in lake.load(table).collect()}.isdisjoint(range(31))
    adds = live_files(lake, table)
    assert all("zadapter.layout" in (add.get("tags") or {}) for add in adds.values())
    assert all(not add["dataChange"] for add in adds.values())
    by_delta_rs = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    found = by_delta_rs.execute("SELECT s FROM t").read_all()["s"].to_pylist()
    assert sorted(found) == sorted(row.s for row in lake.load(table).collect())


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} WHERE a = 3 AND p = 1",
        *slow(
            "UPDATE {} SET n = 99 WHERE a = 3 AND p = 1",
            "MERGE INTO {} t USING (SELECT 3 a, 1 p) s ON t.a = s.a AND t.p = s.p "
            "WHEN MATCHED AND n IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET n = 99",
        ),
    ],
)
@pytest.mark.parametrize(
    "properties",
    [
        {**VECTORS, "enableRowTracking": "true"},
        *slow(VECTORS, {**VECTORS, "columnMapping.mode": "name"}),
    ],
)
def test_equal_rows_of_every_type_leave_as_often_as_they_were_deleted(
    lake, spark, between, statement, properties
):
    """Duplicates by the thousand, NaN and -0.0, decimals, structs, arrays and maps."""
    rows = spark.range(6_000).selectExpr(*EVERY_TYPE)
    table = lake.make(rows, files=5, partition_by=["p"], **properties)
    lake.sql(f"DELETE FROM delta.`{table}` WHERE a = 4 AND n = 2")  # vectors before the plan
    after = []

    def rival():
        lake.sql(statement.format(f"delta.`{table}`"))
        after.extend(map(str, lake.load(table).collect()))

    report = lake.optimize(table, backend=between(rival), backoff=NOW)

    assert report.stale == ()
    assert report.rebased.rows > 0
    assert Counter(map(str, lake.load(table).collect())) == Counter(after)


def test_row_ids_stay_with_their_rows(lake, spark, between):
    """A row that stays keeps its id, through the rewrite and the rebase."""
    rows = spark.range(2_000).selectExpr("id % 2 a", "id s")
    table = lake.make(rows, files=4, enableRowTracking="true", **VECTORS)
    before = ids_of(lake, table)

    rival = between(lambda: lake.sql(f"DELETE FROM delta.`{table}` WHERE s % 50 = 7"))
    report = lake.optimize(table, backend=rival, backoff=NOW)

    assert report.rebased.rows == 40
    assert ids_of(lake, table) == {s: id_ for s, id_ in before.items() if s % 50 != 7}


def test_a_rewritten_file_leaves_the_exchange(lake, spark, table, between):
    """Rows of a file that a copy-on-write rival has replaced leave the new files."""
    first = spark.read.format("delta").load(table).selectExpr("_metadata.file_path f", "s").first()

    def rival():
        with settings(spark, COPIES):
            lake.sql(f"DELETE FROM delta.`{table}` WHERE s = {first.s}")

    report = lake.optimize(table, backend=between(rival), backoff=NOW, max_rebase=0.3)

    assert report.stale == ()
    assert report.files_removed == 5
    assert report.rebased.rows > 100
    assert lake.load(table).count() == 2_999
    assert lake.load(table).distinct().count() == 2_999


@pytest.mark.slow
def test_several_rivals_in_turn_are_followed(lake, table, between):
    """A second conflict during the rebase is followed from the plan again."""
    deletes = [
        lambda n=n: lake.sql(f"DELETE FROM delta.`{table}` WHERE s % 100 = {n}") for n in range(3)
    ]

    report = lake.optimize(table, backend=between(*deletes), backoff=NOW)

    assert (
        report.rebased.rows == lake.spark.range(3_000).where("id * 7919 % 3001 % 100 < 3").count()
    )
    assert {r.s % 100 for r in lake.load(table).collect()} == set(range(3, 100))
    vectors = [*Path(table).glob("*.bin")]
    used = {
        a["deletionVector"]["pathOrInlineDv"]
        for a in live_files(lake, table).values()
        if a.get("deletionVector")
    }
    assert vectors
    assert used


@pytest.mark.parametrize(
    ("rival", "max_rebase"),
    [
        ("DELETE FROM {} WHERE s < 31", 0),
        ("DELETE FROM {} WHERE s < 1500", 0.2),
        ("ALTER TABLE {} SET TBLPROPERTIES (delta.enableDeletionVectors = false)", 0.2),
    ],
)
def test_what_cannot_be_followed_stops_the_rewrite(lake, table, between, rival, max_rebase):
    """Too many rows, a changed definition, or no rebase at all: the present version stays."""
    meanwhile = between(lambda: lake.sql(rival.format(f"delta.`{table}`")))

    with pytest.raises(StaleRewriteError):
        lake.optimize(table, backend=meanwhile, backoff=NOW, max_rebase=max_rebase)

    assert not any(
        "zadapter.layout" in (a.get("tags") or {}) for a in live_files(lake, table).values()
    )
    assert not [*Path(table).glob("*zadapter*.parquet")]


@pytest.mark.slow
def test_a_restore_meanwhile_stops_the_rewrite(lake, spark, table, between):
    """Rows that were deleted when the rewrite was planned are live again, and stay so."""
    lake.sql(f"DELETE FROM delta.`{table}` WHERE s % 50 = 7")
    rival = between(lambda: lake.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0"))

    with pytest.raises(StaleRewriteError):
        lake.optimize(table, backend=rival, backoff=NOW)

    assert lake.load(table).count() == 3_000


def test_a_table_without_vectors_gets_files_without_the_rows(lake, spark, between):
    """Delta-rs replaces a file; the new files that hold its rows are written again."""
    rows = spark.range(3_000).selectExpr("id a", "id * 7919 % 3001 s")
    table = lake.make(rows, files=6)
    rival = between(lambda: deltalake.DeltaTable(table).delete("s = 77"))

    report = lake.optimize(table, backend=rival, backoff=NOW)

    assert report.stale == ()
    assert report.files_removed == 5
    assert report.rebased.rows == 500
    assert report.rows_added == 2_500
    found = deltalake.DeltaTable(table).to_pyarrow_table()["s"].to_pylist()
    assert sorted(found) == sorted(r.s for r in rows.where("s <> 77").collect())
    on_disk = {path.name for path in Path(table).glob("*.parquet")}
    named = {Path(a["add"]["path"]).name for v in lake.log(table) for a in v if "add" in a}
    assert on_disk == named  # what was written first is gone again


NAMES = ("word", "bits", "hash", "number", "count", "_metadata", "_file", "a.b`c")


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_columns_of_any_name_keep_their_values(lake, spark, between, vectors):
    """Columns that a rebase adds for a while do not replace those of the table."""
    quoted = [f"`{name.replace('`', '``')}`" for n in NAMES for name in (n, f"_{n}")]
    columns = [f"id + {number} AS {name}" for number, name in enumerate(quoted)]
    rows = spark.range(1_200).selectExpr("id a", *columns)
    properties = {"columnMapping.mode": "name", "enableDeletionVectors": vectors}
    table = lake.make(rows, files=4, **properties)
    after = []

    def rival():
        with settings(spark, COPIES):
            lake.sql(f"DELETE FROM delta.`{table}` WHERE a = 77")
        after.extend(map(str, lake.load(table).collect()))

    report = lake.optimize(
        table, backend=between(rival), backoff=NOW, max_rebase=0.5, verify="checksum"
    )

    assert report.rebased.rows > 100
    assert Counter(map(str, lake.load(table).collect())) == Counter(after)


@pytest.mark.parametrize("verify", ["counts", *slow("checksum")])
def test_a_second_write_that_loses_rows_is_found_out(lake, spark, between, verify):
    """Files that are written again are verified as those before, or a changed value is found."""
    table = lake.make(spark.range(1_200).selectExpr("id a", "id s"), files=4)
    rival = between(lambda: lake.sql(f"DELETE FROM delta.`{table}` WHERE s = 77"))
    writes = []

    class Faulty(rival):
        def write(self, snapshot, rows, layout, encoding):
            writes.append(rows)
            if len(writes) == 2:
                lost = rows.where("a % 10 <> 3")
                rows = lost if verify == "counts" else rows.selectExpr("a", "s + 1 AS s")
            return super().write(snapshot, rows, layout, encoding)

    with pytest.raises(VerificationError, match="nothing was committed"):
        lake.optimize(table, backend=Faulty, backoff=NOW, max_rebase=0.5, verify=verify)

    assert lake.load(table).count() == 1_199
    assert not any(
        "zadapter.layout" in (a.get("tags") or {}) for a in live_files(lake, table).values()
    )


def test_a_job_that_lost_its_files_is_not_written(lake, spark, between):
    """While the first job is committed, another writer empties the partition of the second."""
    rows = spark.range(4_000).selectExpr("id a", "id % 2 p")
    table = lake.make(rows, partition_by=["p"], files=2, **VECTORS)
    told = []
    rival = between(lambda: lake.sql(f"DELETE FROM delta.`{table}` WHERE p = 1"))

    class Watched(rival):
        def write(self, snapshot, rows, layout, encoding):
            told.append(rows)
            return super().write(snapshot, rows, layout, encoding)

    report = lake.optimize(table, backend=Watched, backoff=NOW, max_job_bytes="1KB")

    assert len(told) <= len(report.versions) + 1
    assert len(report.stale) > 1
    assert lake.load(table).count() == 2_000
