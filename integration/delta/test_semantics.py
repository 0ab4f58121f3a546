"""What a rewrite must not change (reliability: D13-D19, D22, D35, D37, D39, D40, C09-C15)."""

import shutil
from itertools import pairwise
from pathlib import Path

import deltalake
import duckdb
import pytest

import zadapter
from tests.kit.variants import slow
from zadapter import errors


def adds(lake, table):
    return [action["add"] for action in lake.log(table)[-1] if "add" in action]


@pytest.mark.slow
@pytest.mark.parametrize("few", [0, 200])
def test_only_the_files_asked_for_are_rewritten(lake, spark, monkeypatch, few):
    """Whether the log's entries are fetched at once, as of small tables, or by their names."""
    monkeypatch.setattr("zadapter_delta.table.live_files.FEW", few)
    rows = spark.range(1_000).selectExpr("id a", "id % 3 p")
    table = lake.make(rows, partition_by=["p"])
    before, files = lake.rows(table), set(deltalake.DeltaTable(table).file_uris())

    report = lake.optimize(table, where="p = 1")

    last = lake.log(table)[-1]
    gone = {action["remove"]["path"] for action in last if "remove" in action}
    assert report.rows_added == 333
    assert gone == {file.split("/events/")[1] for file in files if "p=1" in file}
    assert lake.rows(table) == before


def test_vectors_are_applied_and_nothing_is_new(lake, spark):
    """Deleted rows stay deleted for every reader, and streams and change feeds see nothing new."""
    rows = spark.range(1_000).selectExpr("id a", "concat('s', id) s")
    table = lake.make(rows, enableDeletionVectors="true", enableChangeDataFeed="true")
    lake.sql(f"DELETE FROM delta.`{table}` WHERE a % 10 = 3")
    before = lake.rows(table)

    report = lake.optimize(table)

    last = lake.log(table)[-1]
    changes = [a for action in last for a in (action.get("add"), action.get("remove")) if a]
    assert not any(change["dataChange"] for change in changes)
    assert all("deletionVector" in a["remove"] for a in last if "remove" in a)
    assert before == lake.rows(table)
    live = deltalake.DeltaTable(table).file_uris()
    assert duckdb.execute("SELECT count(*) FROM read_parquet($1)", [live]).fetchall()[0] == (900,)
    assert report.rows_added == 900
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    assert feed.option("startingVersion", report.versions[0]).load(table).count() == 0
    history = lake.sql(f"DESCRIBE HISTORY delta.`{table}`").first()
    assert history.operation == "OPTIMIZE"
    assert history.operationParameters["zOrderBy"] == '["a"]'
    assert history.operationMetrics["numDeletionVectorsRemoved"] == "4"
    assert history.operationMetrics["numRemovedFiles"] == "4"
    assert report.plan.columns == ("a",)


def test_duckdb_sees_the_same_rows_and_smaller_boxes(lake, spark):
    """A reader not written here finds the same rows, and each file holds its own range."""
    table = lake.make(spark.range(5_000).selectExpr("(id * 7919) % 5000 a", "id b"))
    query = "SELECT count(*), sum(a), sum(hash(a, b)) FROM read_parquet($1)"
    live = lambda: deltalake.DeltaTable(table).file_uris()  # noqa: E731
    before = duckdb.execute(query, [live()]).fetchall()[0]

    report = lake.optimize(table)

    assert before == duckdb.execute(query, [live()]).fetchall()[0]
    ranges = sorted(
        duckdb.execute("SELECT min(a), max(a) FROM read_parquet($1)", [uri]).fetchall()[0]
        for uri in live()
    )
    assert len(ranges) == report.files_added > 4
    assert all(low > high for (_, high), (low, _) in pairwise(ranges))
    assert report.share_after < 0.5 * report.share_before


def test_row_ids_are_kept(lake, spark):
    """Row tracking keeps every row's id and commit version."""
    table = lake.make(spark.range(500).selectExpr("id a"), enableRowTracking="true")
    ids = "a", "_metadata.row_id", "_metadata.row_commit_version"
    before = sorted(lake.load(table).select(*ids).collect())

    lake.optimize(table)

    assert before == sorted(lake.load(table).select(*ids).collect())
    assert lake.log(table)[-1][0]["commitInfo"]["tags"]["delta.rowTracking.preserved"] == "true"


@pytest.mark.slow
def test_renamed_columns(lake, spark):
    """Under column mapping a renamed key is found, and its stats stand under its physical name."""
    rows = spark.range(500).selectExpr("id x", "named_struct('y', id % 50) s", "1 gone")
    table = lake.make(rows, **{"columnMapping.mode": "name"})
    lake.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN x TO a")
    lake.sql(f"ALTER TABLE delta.`{table}` DROP COLUMN gone")
    before = lake.rows(table)

    report = lake.optimize(table, by=["a", "s.y"])

    assert before == lake.rows(table)
    assert report.share_after < report.share_before


def test_constraints_and_generated_columns(lake, spark):
    """Generated columns, checks and NOT NULL survive, and so do rows in them."""
    path = str(lake.folder / "g")
    lake.sql(
        f"CREATE TABLE delta.`{path}` (a bigint NOT NULL, t timestamp, "
        "d date GENERATED ALWAYS AS (cast(t AS date))) USING delta PARTITIONED BY (d)"
    )
    lake.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (a < 1000)")
    lake.sql(
        f"INSERT INTO delta.`{path}` (a, t) SELECT id, timestamp_seconds(id * 900) FROM range(200)"
    )
    before, definition = lake.rows(path), lake.log(path)[-2]

    lake.optimize(path, by=["a", "t"])

    assert before == lake.rows(path)
    assert not any("metaData" in action for action in lake.log(path)[-1])
    assert definition == lake.log(path)[-3]


def test_odd_partition_values(lake, spark):
    """Each file stays in its own partition, whatever the value looks like."""
    odd = ["", " ", "%", "a/b", "x:y", "#?+", "😀", "2020-01-01", "dot."]
    values = [(i, odd[i % len(odd)] if i % 10 else None) for i in range(400)]
    rows = spark.createDataFrame(values, "a bigint, p string")
    table = lake.make(rows, name="sp ace %41", partition_by=["p"], files=3)
    before = lake.rows(table)

    report = lake.optimize(table)

    assert before == lake.rows(table)
    assert report.plan.groups == len({v["partitionValues"]["p"] or None for v in adds(lake, table)})
    assert lake.optimize(table).plan.nothing_to_do


@pytest.mark.slow
def test_a_partition_is_not_touched_because_another_changed(lake, spark):
    """After an append to one partition only that one is rewritten."""
    rows = spark.range(900).selectExpr("id a", "date_add(date'2024-01-01', int(id % 3)) p")
    table = lake.make(rows, partition_by=["p"], files=3)
    lake.optimize(table)
    before = lake.rows(table)
    rows.where("p = '2024-01-02'").write.format("delta").mode("append").save(table)

    report = lake.optimize(table)

    touched = {add["partitionValues"]["p"] for add in adds(lake, table)}
    assert touched == {"2024-01-02"}
    assert report.plan.groups == 1
    assert len(lake.rows(table)) == len(before) + 300


def test_the_second_run_commits_nothing(lake, spark):
    """Running again changes nothing; a small append costs little; force fits anew."""
    table = lake.make(spark.range(4_000).selectExpr("hash(id) a", "id b"))
    first = lake.optimize(table, by=["a", "b"])
    shutil.rmtree(Path(table) / "_delta_log" / "_sidecars", ignore_errors=True)

    again = lake.optimize(table, by=["a", "b"])
    spark.range(50).selectExpr("hash(id) a", "id b").write.format("delta").mode("append").save(
        table
    )
    small = lake.optimize(table, by=["a", "b"])
    forced = lake.optimize(table, by=["a", "b"], force=True)

    assert again.versions == ()
    assert "nothing to do" in str(again)
    assert small.files_removed < first.files_added / 2
    assert forced.files_removed == first.files_added + small.files_added - small.files_removed + 2
    assert lake.load(table).count() == 4_050


@pytest.mark.slow
def test_a_shallow_clone_keeps_its_source(lake, spark):
    """Files outside the clone are read, and left where they are."""
    source = lake.make(spark.range(300).selectExpr("id a"))
    clone = str(lake.folder / "clone")
    lake.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    files = set(Path(source).rglob("*.parquet"))

    lake.optimize(clone)

    assert lake.load(clone).count() == 300 == lake.load(source).count()
    assert files == set(Path(source).rglob("*.parquet"))


@pytest.mark.slow
def test_old_versions_stay(lake, spark):
    """Time travel and RESTORE work across the rewrite; VACUUM leaves the kept layout alone."""
    table = lake.make(spark.range(300).selectExpr("id a"))
    before = lake.rows(table)

    lake.optimize(table)

    old = spark.read.format("delta").option("versionAsOf", 0).load(table)
    assert before == sorted(map(str, old.collect()))
    lake.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
    assert before == lake.rows(table)
    lake.optimize(table)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    lake.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    assert before == lake.rows(table)
    assert lake.optimize(table).plan.nothing_to_do
    assert list((Path(table) / "_zadapter" / "layouts").glob("*.json"))


@pytest.mark.slow
def test_where_chooses_partitions_and_files(lake, spark):
    """Partition columns cut partitions; other columns choose files by their stats."""
    rows = spark.range(0, 800, 1, 4).selectExpr("id a", "id % 2 p")
    path = str(lake.folder / "w")
    rows.write.format("delta").partitionBy("p").save(path)

    half = lake.optimize(path, where="p = 1")
    quarter = zadapter.plan(path, by="a", where="p = 0 AND a < 200", spark=spark)

    assert half.files_removed == 4
    assert quarter.files_rewritten == 1


def test_widening_the_stats(lake, spark):
    """A key without stats is named, and widening them is one explicit argument."""
    columns = [f"id + {i} c{i}" for i in range(5)]
    rows = spark.range(300).selectExpr(*columns, "id % 7 a", "id % 2 = 0 flag")
    table = lake.make(rows, dataSkippingNumIndexedCols="3")

    with pytest.raises(errors.MissingStatsError, match="no stats are collected for a"):
        lake.optimize(table)
    plan = zadapter.plan(table, by="a", collect_stats=True, spark=spark)
    assert len(lake.log(table)) == 1
    report = lake.optimize(table, collect_stats=True)

    assert report.share_after < report.share_before == plan.share_before == 1.0
    assert '"a"' in adds(lake, table)[0]["stats"]
    assert '"c0"' in adds(lake, table)[0]["stats"]


@pytest.mark.slow
def test_a_log_may_ask_for_columns_whose_stats_will_be_collected(lake, spark):
    """As by may name them; without leave to collect, the log has no filter on a possible key."""
    rows = spark.range(3_000).selectExpr("id c", "id * 31 % 2999 a")
    table = lake.make(rows, dataSkippingNumIndexedCols="1")
    lake.optimize(table, by=["c"], target_file_size="2KB")
    asked = {"by": "auto", "queries": [f"a = {n * 37}" for n in range(40)], "force": True}

    with pytest.raises(errors.UsageError, match="no query of the log filters"):
        lake.optimize(table, **asked)
    report = lake.optimize(table, **asked, collect_stats=True)

    assert report.plan.columns == ("a",)
    assert report.share_after < 0.5 < report.share_before
    assert all('"a"' in each["stats"] for each in adds(lake, table))


def test_a_plan_collects_the_stats_that_it_assumes(lake, spark):
    """When it is run, and only if the table's definition is still the one that was planned for."""
    rows = spark.range(300).selectExpr("id c", "id % 7 a")
    table = lake.make(rows, dataSkippingNumIndexedCols="1")
    asked = {"target_file_size": "2KB", "collect_stats": True}
    plan = lake.plan(table, **asked)
    lake.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '20')")

    with pytest.raises(errors.StaleRewriteError, match="the table's definition"):
        plan.run()
    assert len(lake.log(table)) == 2
    assert lake.plan(table, **asked).run().share_after < plan.share_before == 1.0
    assert '"a"' in adds(lake, table)[0]["stats"]


@pytest.mark.slow
@pytest.mark.parametrize("curve", ["hilbert", *slow("zorder", "linear")])
def test_every_curve(lake, spark, curve):
    """All curves keep the rows and narrow the boxes."""
    table = lake.make(spark.range(3_000).selectExpr("hash(id) a", "hash(-id) b"))
    before = lake.rows(table)

    report = lake.optimize(table, by=["a", "b"], curve=curve)

    assert before == lake.rows(table)
    assert report.share_after < report.share_before
