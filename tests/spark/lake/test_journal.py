"""Journals of real tables: appended by zadapter, read by readers not written here."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import functions as F

import zadapter
from tests.kit.variants import slow
from zadapter.errors import UnsupportedError, UsageError
from zadapter.lake import journal
from zadapter.lake.journal import NUMBER, SCHEMA, Line

TIME = datetime(2025, 10, 26, 0, 30, 0, 7, tzinfo=timezone.utc)
LINE = Line(
    run="a", time=TIME, table="sales.`o'dd` \n", format="delta", version=2**60, verdict="rewritten",
    files=3, bytes_rewritten=2**40, share_before=0.5, share_predicted=0.1, share_after=0.125,
    seconds=1.5, core_seconds=None, money=0.25, waited=0, error=None,
)  # fmt: skip


def place(spark, table_format, folder, name):
    """Return a name that no table has yet."""
    if table_format != "iceberg":
        return str(folder / name)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.journals")
    spark.sql(f"DROP TABLE IF EXISTS iceberg.journals.{name} PURGE")
    return f"iceberg.journals.{name}"


def witness(spark, table_format, where):
    """Return the stored rows, as a reader not written here reads them."""
    if table_format == "delta":
        return DeltaTable(where).to_pyarrow_table()
    if table_format == "parquet":
        return pq.read_table(zadapter.files(where, spark=spark)["path"].to_pylist())
    prefix = "spark.sql.catalog.iceberg"
    uri = spark.conf.get(f"{prefix}.uri").removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    warehouse = spark.conf.get(f"{prefix}.warehouse")
    catalog = SqlCatalog("iceberg", uri=uri, warehouse=warehouse)
    return catalog.load_table(where.removeprefix("iceberg.")).scan().to_arrow()


@pytest.mark.parametrize("table_format", slow("delta", "iceberg", "parquet"))
def test_runs_at_once_create_a_journal_and_append_side_by_side(spark, conf, tmp_path, table_format):
    conf({"spark.sql.session.timeZone": "Europe/Berlin"})  # where the hour of the runs comes twice
    where = place(spark, table_format, tmp_path, "nights")
    # of two lines of a run and table, which have the same time, the one that was passed last counts
    one = [replace(LINE, verdict="waits"), LINE]
    other = [replace(LINE, run="b", time=TIME + timedelta(days=1), format=None, error="é\n'")]

    with ThreadPoolExecutor(2) as threads:
        append = partial(journal.append, spark, where, table_format)
        list(threads.map(append, (one, other)))

    expected = journal.to_table([*one, *other])
    assert journal.read(spark, where, table_format).sort_by("time").equals(expected)
    stored = witness(spark, table_format, where).sort_by(
        [("time", "ascending"), (NUMBER, "ascending")]
    )
    assert stored.select(SCHEMA.names).to_pylist() == expected.to_pylist()


def old_rows(spark):
    """Rows of a release whose journal had fewer columns."""
    return spark.range(1).select(
        F.lit("z").alias("run"),
        F.timestamp_micros(F.lit(0)).alias("time"),
        F.lit("t").alias("table"),
        F.lit("waits").alias("verdict"),
    )


@pytest.mark.parametrize("table_format", slow("delta", "iceberg"))
def test_a_journal_of_an_older_release_gets_the_columns_that_it_lacks(
    spark, tmp_path, table_format
):
    where = place(spark, table_format, tmp_path, "old")
    rows = old_rows(spark).withColumn("of_a_newer_release", F.lit(1))
    if table_format == "iceberg":
        rows.writeTo(where).using("iceberg").create()
    else:
        rows.write.format(table_format).save(where)

    journal.append(spark, where, table_format, [LINE])

    old, new = journal.to_lines(journal.read(spark, where, table_format))
    assert (old.run, old.verdict, old.bytes_rewritten, old.error) == ("z", "waits", None, None)
    assert new == LINE


def test_a_parquet_journal_of_an_older_release_is_read_but_not_appended_to(spark, tmp_path):
    where = str(tmp_path / "old")
    old_rows(spark).write.parquet(where)

    assert journal.read(spark, where, "parquet")["table"].to_pylist() == ["t"]
    with pytest.raises(UnsupportedError, match=r"lacks format, version.*new path"):
        journal.append(spark, where, "parquet", [LINE])
    assert journal.read(spark, where, "parquet").num_rows == 1


def test_a_parquet_journal_without_remarks_is_appended_to(spark, tmp_path):
    """These are for people: no run is refused for want of a column that it does not read."""
    where = str(tmp_path / "old")
    rows = journal.to_table([LINE]).append_column(NUMBER, pa.array([0], pa.int64()))
    (tmp_path / "old").mkdir()
    pq.write_table(rows.drop_columns("remark"), tmp_path / "old" / "a.parquet")

    journal.append(spark, where, "parquet", [replace(LINE, run="later", remark="no key columns")])

    assert journal.to_lines(journal.read(spark, where, "parquet")) == [
        LINE, replace(LINE, run="later")
    ]  # fmt: skip


def test_lines_of_a_run_that_was_taken_up_again_follow_the_earlier_ones(spark, tmp_path):
    """They have the same time, and files have no order."""
    where = str(tmp_path / "resumed")
    journal.append(spark, where, "parquet", [])
    assert journal.read(spark, where, "parquet").equals(SCHEMA.empty_table())
    assert list(tmp_path.iterdir()) == []

    verdicts = ["waits", "failed", "rewritten"]
    journal.append(spark, where, "parquet", [replace(LINE, verdict=v) for v in verdicts[:2]])
    journal.append(spark, where, "parquet", [replace(LINE, verdict=verdicts[2])])

    assert journal.read(spark, where, "parquet")["verdict"].to_pylist() == verdicts
    stored = witness(spark, "parquet", where)
    assert stored.sort_by(NUMBER)[NUMBER].to_pylist() == [0, 1, 2]
    assert stored.sort_by(NUMBER)["verdict"].to_pylist() == verdicts


def test_a_clock_that_was_ahead_does_not_make_a_run_the_last_one(spark, tmp_path):
    """Its lines would hide those of all other runs until that time has come."""
    where = str(tmp_path / "clocks")
    ahead = replace(LINE, run="b", time=TIME + timedelta(days=400), verdict="nothing to do")
    after = [replace(LINE, run=f"c{n}", time=TIME, verdict="waits") for n in range(2)]
    for line in (LINE, ahead, *after):
        journal.append(spark, where, "parquet", [line])

    found = journal.read(spark, where, "parquet")

    assert journal.to_lines(found) == [LINE, ahead, *after]
    assert journal.latest(found)[LINE.table].run == "c1"
    assert journal.waited(found) == {LINE.table: 2}


def test_other_tables_are_no_journals(spark, tmp_path):
    other, plain, busy = (str(tmp_path / name) for name in ("other", "plain", "busy"))
    old_rows(spark).withColumn("time", F.lit(1)).write.format("delta").save(other)
    spark.range(1).write.parquet(plain)

    with pytest.raises(UsageError, match="column time is int32 instead of timestamp"):
        journal.append(spark, other, "delta", [LINE])
    with pytest.raises(UsageError, match="is not a journal: it lacks run, time, table, verdict"):
        journal.read(spark, plain, "parquet")
    with pytest.raises(UsageError, match="not a journal in delta: there is another table"):
        journal.append(spark, plain, "delta", [LINE])
    (tmp_path / "busy").mkdir()
    (tmp_path / "busy" / "notes.txt").write_text("kept")
    with pytest.raises(UsageError, match=r"busy is not a journal in delta: .*notes\.txt"):
        journal.append(spark, busy, "delta", [LINE])
    with pytest.raises(UsageError, match="not a journal in iceberg: it is a table of delta"):
        journal.read(spark, other, "iceberg")
    assert sorted(DeltaTable(other).to_pyarrow_table().column_names) == sorted(
        old_rows(spark).columns
    )
