"""Partitions by a timestamp in sessions of any time zone: no row moves to another partition."""

from datetime import datetime, timezone

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter.errors import UnsupportedError

ZONE = "spark.sql.session.timeZone"
NEW_YORK, UTC = {ZONE: "America/New_York"}, {ZONE: "UTC"}
MOMENTS = [
    *("2024-11-03 05:30:00", "2024-11-03 06:30:00", "2024-03-10 07:00:00"),
    *("1883-11-18 16:00:00", "1883-11-18 17:03:58", "1850-01-01 00:00:00.123456"),
    *("1582-10-10 00:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
]
"""An hour that occurs twice in New York, one that is skipped, the end of its local mean time."""


def microseconds(spark, table):
    rows = spark.read.format("delta").load(table).selectExpr("a", "unix_micros(ts) AS m")
    return sorted((row.a, row.m) for row in rows.collect())


def by_deltalake(table):
    rows = deltalake.DeltaTable(table).to_pyarrow_table()
    return sorted(zip(rows["a"].to_pylist(), pc.cast(rows["ts"], "int64").to_pylist(), strict=True))


def by_sql(table):
    known = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    rows = pa.table(known.execute("SELECT a, ts FROM t").read_all())
    return sorted(zip(rows["a"].to_pylist(), pc.cast(rows["ts"], "int64").to_pylist(), strict=True))


@pytest.fixture
def table(lake, spark):
    """A table with a partition for each moment, which was written in UTC."""
    listed = ", ".join(f"timestamp'{moment}'" for moment in MOMENTS)
    with settings(spark, UTC):
        rows = spark.sql(f"SELECT id a, array({listed})[id % {len(MOMENTS)}] ts FROM range(90)")
        return lake.make(rows, partition_by=["ts"], files=2)


@pytest.mark.parametrize("zone", ["America/New_York", *slow("Asia/Kolkata")])
def test_every_moment_keeps_its_rows(lake, spark, table, zone):
    """In Spark and in both readers of deltalake; the session's zone is as it was."""
    before = microseconds(spark, table)

    with settings(spark, {ZONE: zone}):
        report = lake.optimize(table, force=True)
        assert spark.conf.get(ZONE) == zone

    assert report.rows_added == 90
    assert microseconds(spark, table) == before == by_deltalake(table)
    assert by_sql(table) == before
    values = [a["add"]["partitionValues"]["ts"] for a in lake.log(table)[-1] if "add" in a]
    assert len(set(values)) == len(values) == len(MOMENTS)
    assert all(value.endswith("Z") for value in values)


def without_zone(folder):
    """A table of deltalake, whose texts have no zone."""
    hours = [5, 6, None]
    moments = [hour and datetime(2024, 11, 3, hour, 30, tzinfo=timezone.utc) for hour in hours]
    for first in (0, 30):
        rows = {
            "a": range(first, first + 30),
            "ts": pa.array([moments[n % 3] for n in range(30)], pa.timestamp("us", "UTC")),
        }
        deltalake.write_deltalake(folder, pa.table(rows), partition_by=["ts"], mode="append")


def test_texts_without_a_zone_stay_as_they_are(lake, spark):
    """Spark takes them for local times, deltalake for UTC: neither sees another value."""
    table = str(lake.folder / "rs")
    without_zone(table)
    texts = {a["add"]["partitionValues"]["ts"] for a in lake.log(table)[0] if "add" in a}
    assert not any(text.endswith("Z") for text in texts if text)
    seen = by_deltalake(table)

    with settings(spark, NEW_YORK):
        before = microseconds(spark, table)
        lake.optimize(table, force=True)
        assert microseconds(spark, table) == before

    assert by_deltalake(table) == seen
    assert {a["add"]["partitionValues"]["ts"] for a in lake.log(table)[-1] if "add" in a} == texts


def test_texts_that_are_one_moment_for_spark_only_are_refused(lake, spark):
    """05:30 without a zone is 09:30Z in this zone, which is a partition of its own."""
    table = str(lake.folder / "both")
    without_zone(table)
    with settings(spark, UTC):
        spark.sql("SELECT 1000L a, timestamp'2024-11-03 00:00:00' ts").write.format("delta").mode(
            "append"
        ).save(table)

    with (
        settings(spark, {ZONE: "+05:30"}),
        pytest.raises(UnsupportedError, match=r"partition column ts .*timeZone"),
    ):
        lake.plan(table)
    with settings(spark, UTC):
        assert lake.plan(table).rows == 61


def test_expressions_of_the_table_are_of_their_zone(lake, spark):
    """Generated columns and constraints held when the rows were written; none is asked again."""
    table = str(lake.folder / "generated")
    seconds = "timestamp_seconds(1730611800 - 18000 * (id % 2))"
    with settings(spark, NEW_YORK):
        spark.sql(
            f"CREATE TABLE delta.`{table}` (a bigint, ts timestamp, d date GENERATED ALWAYS AS "
            "(CAST(ts AS DATE))) USING delta PARTITIONED BY (ts, d)"
        )
        spark.sql(f"ALTER TABLE delta.`{table}` ADD CONSTRAINT early CHECK (hour(ts) < 23)")
        spark.sql(f"INSERT INTO delta.`{table}` (a, ts) SELECT id, {seconds} FROM range(40)")
        before, kept = lake.rows(table), lake.log(table)

        lake.optimize(table, force=True)

        assert lake.rows(table) == before
        assert not any("metaData" in action for action in lake.log(table)[len(kept)])
        with pytest.raises(Exception, match="early"):
            spark.sql(
                f"INSERT INTO delta.`{table}` (a, ts) SELECT 1, timestamp'2024-01-01 23:30:00'"
            )
