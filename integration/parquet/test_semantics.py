"""What users do with a folder of Parquet files."""

from collections import Counter
from datetime import datetime, timedelta, timezone

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.parquet.lake import stats
from tests.kit.variants import slow
from zadapter import errors

ROWS = 4_000
BETWEEN = pa.array(range(1_000, 2_001))


def numbers(spark, rows=ROWS):
    return spark.range(rows).selectExpr(
        "id * 7919 % 4001 AS a", "concat('v', id % 97) AS b", "id AS c", "cast(id % 3 AS int) AS p"
    )


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [("p", "t"), *slow((), ("p",), ("t",))])
def test_a_folder_is_clustered_once(lake, spark, partition_by):
    """Same rows, fewer of them to be read; readers of the folder see what they saw before."""
    rows = numbers(spark).withColumn("t", F.expr("nullif(concat('ä ', c % 2), 'ä 1')"))
    table = lake.make(rows, *partition_by)
    before, seen = lake.read(table), lake.rows_of_folder(table)

    report = lake.optimize(table, by=["a", "c"])
    again = lake.optimize(table, by=["a", "c"])

    assert before == lake.read(table)
    assert seen == lake.rows_of_folder(table)
    assert report.share_after < 0.7
    assert again.nothing_to_do
    assert len(lake.files(table)) == report.files_added


def test_a_plan_writes_nothing(lake, spark):
    table = lake.make(numbers(spark))
    lake.plan(table)

    assert not any("_zadapter" in str(path) for path in lake.folder.rglob("*"))


def test_without_a_word_no_folder_becomes_a_table(lake, spark):
    """A backend is found for tables only; a folder must be said to be one."""
    table = lake.make(numbers(spark))

    with pytest.raises(errors.UnknownTableError, match="pass backend='parquet'"):
        lake.optimize(table, backend=None)
    lake.optimize(table)
    assert lake.optimize(table, backend=None).nothing_to_do


@pytest.mark.slow
def test_rows_are_read_from_the_files_that_may_hold_them(lake, spark):
    """By Spark through zadapter, and by DuckDB and pyarrow over the files it names."""
    table = lake.make(numbers(spark), "p")
    wanted = numbers(spark).where("a < 40 AND p = 1").count()
    lake.optimize(table)

    rows = zadapter.read(table, where="a < 40 AND p = 1", spark=spark)
    files = zadapter.files(table, where="a < 40 AND p = 1", spark=spark)["path"].to_pylist()

    assert rows.count() == wanted
    assert rows.schema.simpleString() == "struct<a:bigint,b:string,c:bigint,p:int>"
    assert 0 < len(files) < len(lake.files(table)) / 3
    query = f"SELECT count(*) FROM read_parquet({files}) WHERE a < 40"
    assert duckdb.sql(query).fetchall() == [(wanted,)]
    found = [pq.read_table(file, filters=[("a", "<", 40)], partitioning=None) for file in files]
    assert sum(table.num_rows for table in found) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(("partition_by", "more"), [((), ""), (("p",), " AND p < 2")])
def test_row_groups_that_may_hold_rows_are_named(lake, spark, partition_by, more):
    """Of each file those, by its footer; without a condition all of them."""
    table = lake.make(numbers(spark), *partition_by)
    lake.optimize(table, by=["a", "c"], row_groups=4)
    where = "a < 400 AND c BETWEEN 1000 AND 2000" + more

    found = zadapter.files(table, where=where, row_groups=True, spark=spark)
    every = zadapter.files(table, row_groups=True, spark=spark)

    read = [
        pq.ParquetFile(path).read_row_groups(groups, columns=["a", "c"])
        for path, groups in zip(
            *found.select(["path", "row_groups"]).to_pydict().values(), strict=False
        )
    ]
    rows = pa.concat_tables(read)
    wanted = rows.filter((pc.field("a") < 400) & pc.is_in(pc.field("c"), BETWEEN))
    assert wanted.num_rows == numbers(spark).where(where).count() > 0
    assert rows.num_rows < pc.sum(found["rows"]).as_py() < ROWS
    counts = [pq.read_metadata(path).num_row_groups for path in every["path"].to_pylist()]
    assert [list(range(count)) for count in counts] == every["row_groups"].to_pylist()


def test_rows_are_appended_deleted_and_overwritten(lake, spark):
    """Each is a version of its own, and every version can be read."""
    table = lake.make(numbers(spark), "p")
    zadapter.append(table, numbers(spark, 10), backend="parquet")
    condition = "a = 0 OR b = 'v5'"
    gone = sum(numbers(spark, n).where(condition).count() for n in (ROWS, 10))
    assert zadapter.delete(table, condition).rows_deleted == gone
    zadapter.overwrite(table, numbers(spark, 5).where("p = 1"))

    counts = [zadapter.read(table, version=v, spark=spark).count() for v in range(4)]
    history = zadapter.history(table)

    rest = f"p <> 1 AND NOT ({condition})"
    others = sum(numbers(spark, n).where(rest).count() for n in (ROWS, 10))
    assert counts == [ROWS, ROWS + 10, ROWS + 10 - gone, others + 2]
    assert [len(lake.read(table, version)) for version in range(4)] == counts
    assert [each.operation for each in history] == ["overwrite", "delete", "append", "register"]
    changes = [each.rows_added - each.rows_removed for each in reversed(history)]
    assert [sum(changes[: n + 1]) for n in range(4)] == counts


def test_a_condition_that_is_null_deletes_nothing(lake, spark):
    table = lake.make(spark.sql("SELECT * FROM VALUES (1), (2), (NULL) AS t(a)"))

    assert zadapter.delete(table, "a > 1", backend="parquet").rows_deleted == 1
    assert zadapter.delete(table, "a > 1", backend="parquet").rows_deleted == 0
    assert lake.read(table) == ["{'a': 1}", "{'a': None}"]


def test_time_travel(lake, spark):
    """By number and by time; what is not there yet or any more is said so."""
    table = lake.make(numbers(spark, 100))
    zadapter.append(table, numbers(spark, 10), backend="parquet")
    first = zadapter.history(table)[-1].timestamp

    def count(version):
        return zadapter.read(table, version=version, spark=spark).count()

    assert count(first) == count(0) == 100
    assert count(datetime.now(timezone.utc)) == 110
    with pytest.raises(errors.UnknownTableError, match="version 2 not found"):
        count(2)
    with pytest.raises(errors.UnknownTableError, match="the first one is newer"):
        count(first - timedelta(days=1))


def test_vacuum_takes_what_no_kept_version_needs(lake, spark):
    """By default nothing goes; then the files of replaced versions do, and those alone."""
    table = lake.make(numbers(spark))
    before = lake.read(table)
    lake.optimize(table)
    none = timedelta(0)
    stranger = lake.folder / "events" / ".hidden"
    stranger.write_text("mine")

    assert zadapter.vacuum(table).paths == ()
    wanted = zadapter.vacuum(table, older_than=none).paths
    assert len([path for path in wanted if path.startswith("part-")]) == 4
    assert before == lake.read(table, version=0)
    assert zadapter.vacuum(table, older_than=none, dry_run=False).paths == wanted

    assert before == lake.read(table)
    assert zadapter.read(table, spark=spark).count() == ROWS
    assert stranger.exists()
    with pytest.raises(errors.VersionExpiredError, match="oldest readable version is 1"):
        zadapter.read(table, version=0, spark=spark)
    assert zadapter.vacuum(table, older_than=none).paths == ()
    assert lake.optimize(table).nothing_to_do


@pytest.mark.slow
def test_what_was_never_committed_goes_after_its_commit_is_ruled_out(lake, spark, between):
    """A writer that comes back after the clean-up cannot commit files that are gone."""
    table = lake.make(numbers(spark))
    before = lake.read(table)
    clean = between(
        lambda: zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, backend="parquet")
    )
    zadapter.append(table, numbers(spark, 0), backend="parquet")

    with pytest.raises(errors.ConflictError):
        lake.optimize(table, backend=clean)

    assert before == lake.read(table)
    assert "abort" in [each.operation for each in zadapter.history(table)]


def test_an_older_version_is_restored(lake, spark):
    table = lake.make(numbers(spark))
    before = lake.read(table)
    zadapter.delete(table, "a < 2000", backend="parquet")

    assert zadapter.restore(table, 0).version == 2

    assert before == lake.read(table)
    assert zadapter.history(table)[0].operation == "restore"


@pytest.mark.slow
def test_files_may_differ_by_added_columns(lake, spark):
    """What a file lacks is null."""
    table = lake.make(numbers(spark, 100).select("a", "b"))
    numbers(spark, 50).write.mode("append").parquet(table)

    lake.optimize(table)

    rows = zadapter.read(table, spark=spark)
    assert rows.count() == 150
    assert rows.where("c IS NULL").count() == 100
    assert rows.agg({"c": "sum"}).first()[0] == sum(range(50))


@pytest.mark.slow
def test_partition_values_of_every_kind(lake, spark):
    """Their folders' names are escaped by Spark, and are no patterns."""
    values = ["a b", "a/b", "100%", "ü=ö", "[x]*?", "#", "a:b", "'\"`", None]
    pairs = [(n, value) for n in range(50) for value in values]
    rows = spark.createDataFrame(pairs, "a long, k string")
    table = lake.make(rows, "k", name="odd [1] %20 name")

    lake.optimize(table, target_file_size="1KB")
    zadapter.append(table, rows)

    found = zadapter.read(table, spark=spark)
    assert Counter(row.k for row in found.collect()) == dict.fromkeys(values, 100)


def within(files, others):
    """Whether the box of each file lies in the box of another one."""
    names = [f"{key}_{end}" for key in ("a", "b") for end in ("minValue", "maxValue")]
    boxes, around = (
        [[*row.values()] for row in t.select(names).to_pylist()] for t in (files, others)
    )
    return all(
        any(b[0] <= a[0] and a[1] <= b[1] and b[2] <= a[2] and a[3] <= b[3] for b in around)
        for a in boxes
    )


def test_a_delete_leaves_a_clustered_table_clustered(lake, spark):
    """Only files with deleted rows are written anew, each in its own box and layout."""
    rows = spark.range(20_000).selectExpr("id % 141 a", "id div 141 b", "string(id) c")
    table = lake.make(rows, files=8)
    lake.optimize(table, by=["a", "b"], target_file_size="16KB")
    before = stats(table)
    everywhere, somewhere = "c LIKE '%77'", "c = '4711'"

    deleted = zadapter.delete(table, everywhere).rows_deleted
    after = stats(table)
    again = zadapter.plan(table, backend="parquet")
    kept = set(lake.files(table))
    zadapter.delete(table, somewhere)

    assert deleted == rows.where(everywhere).count() > before.num_rows
    assert after["layout"].value_counts() == before["layout"].value_counts()
    assert within(after, before)
    assert again.groups == 0
    assert len(kept - set(lake.files(table))) == 1
    assert lake.read(table) == sorted(
        str(dict(sorted(row.asDict().items())))
        for row in rows.where(f"NOT ({everywhere} OR {somewhere})").collect()
    )
