"""Partition values of every type, wherever the session's clock is."""

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from integration.kit.hostile import VALUES
from integration.kit.lakes import settings
from integration.migration.tables import texts
from zadapter.table.spec import Status

TYPES = {
    "truth": "id % 2 = 0",
    "number": "int(id - 5)",
    "money": "CAST(id / 4 - 1 AS decimal(9,2))",
    "moment": "timestamp_micros(1795291493080758 + id * 1000001)",
    "wall": "CAST(timestamp_micros(1795291493080758 + id) AS timestamp_ntz)",
    "ratio": "double(CASE id % 4 WHEN 0 THEN '-0.0' WHEN 1 THEN '0.0' ELSE string(id / 3) END)",
    "raw": "encode(string(id), 'UTF-8')",
}
HERE = {"spark.sql.session.timeZone": "America/Los_Angeles"}
WAYS = [
    ("delta", "iceberg", "copy"),
    ("delta", "iceberg", "in_place"),
    ("iceberg", "delta", "copy"),
    ("iceberg", "delta", "in_place"),
    ("iceberg", "parquet", "copy"),
]
IN_PLACE_OR_SLOW = [
    way if way[2] == "in_place" else pytest.param(*way, marks=pytest.mark.slow) for way in WAYS
]


@pytest.mark.parametrize(("format_", "to", "mode"), WAYS)
def test_values_of_every_type_arrive(lakes, spark, format_, to, mode):
    """Nulls, too: as many as before, whoever counts them."""
    types = {k: f"IF(id = 7, NULL, {v})" for k, v in TYPES.items()}
    if format_ == "delta":
        del types["raw"]  # Delta has texts in its log only
    rows = spark.range(8).selectExpr("id", *(f"{v} AS {k}" for k, v in types.items()))
    wanted = texts(rows.toArrow())

    with settings(spark, HERE):
        table = lakes.make(format_, rows, *types, files=1)
        report = lakes.migrate(format_, table, to, mode=mode)

    assert report.proof.rows == 8
    found = lakes.load(to, report.target)
    assert texts(found.toArrow()) == wanted
    for name, value in types.items():
        assert found.where(f"{name} IS NULL").count() == 1
        assert [row.id for row in found.where(f"{name} = {value}").collect()] != []


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to", "mode"), IN_PLACE_OR_SLOW)
def test_texts_of_partitions_and_properties_arrive(lakes, spark, format_, to, mode):
    """Whatever characters they have: paths of shared files are escaped in one log alone."""
    rows = pa.table({"id": range(2 * len(VALUES)), "p": [*VALUES] * 2})
    table = lakes.make(format_, spark.createDataFrame(rows), "p", files=1)
    properties = {"owner.team": "x", "commit.sha": "\u00fc", "a b": "$ {x}", "Schema.Registry": "q"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    name = f"delta.`{table}`" if format_ == "delta" else table
    lakes.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({listed})")

    report = lakes.migrate(format_, table, to, mode=mode)

    assert lakes.read(to, report.target) == texts(rows)
    assert {f"property {key}" for key in properties} <= {
        item.what for item in report.items if item.status is Status.CARRIED
    }
    if to == "iceberg":
        assert properties.items() <= lakes.iceberg(report.target).properties.items()


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_values_that_are_no_numbers_are_copied(lakes, spark, format_, to):
    """Logs write them each in a way of its own, so in place is refused."""
    rows = spark.range(4).selectExpr(
        "id", "double(CASE id WHEN 1 THEN 'NaN' WHEN 2 THEN 'Infinity' ELSE '1' END) AS d"
    )
    table = lakes.make(format_, rows, "d", files=1)

    report = lakes.migrate(format_, table, to, mode="auto")

    assert report.mode.value == "copy"
    assert texts(lakes.load(to, report.target).toArrow()) == texts(rows.toArrow())


def test_a_table_that_is_cut_otherwise_since(lakes, spark):
    """Older files are of another partition spec; rows are cut anew by a copy."""
    columns = ("id", "id % 2 AS p", "id % 3 AS q")
    table = lakes.make("iceberg", spark.range(20).selectExpr(*columns), "p")
    lakes.sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD p WITH q")
    lakes.append("iceberg", table, spark.range(20, 40).selectExpr(*columns))
    before = lakes.read("iceberg", table)

    copied = lakes.migrate("iceberg", table, "delta")
    auto = lakes.migrate("iceberg", table, "delta", mode="auto")

    assert lakes.read("delta", copied.target) == lakes.read("delta", auto.target) == before
    assert auto.mode.value == "copy"
    assert "several partitions" in auto.why


def test_moments_are_partition_values_as_the_protocol_has_them(lakes):
    """With a blank before the time; deltalake reads no other way."""
    table = lakes.name("iceberg")
    lakes.sql(f"CREATE TABLE {table} (id bigint, t timestamp_ntz) USING iceberg PARTITIONED BY (t)")
    lakes.sql(f"INSERT INTO {table} VALUES (1, timestamp_ntz'2024-01-01 12:30:00')")

    for mode in ("copy", "in_place"):
        target = lakes.migrate("iceberg", table, "delta", mode=mode).target
        rows = QueryBuilder().register("t", DeltaTable(target)).execute("SELECT t FROM t")
        assert str(pa.table(rows.read_all())["t"][0]) == "2024-01-01 12:30:00"


@pytest.mark.slow
def test_an_hour_that_occurs_twice_is_two_partitions(lakes, spark):
    """Summer time ends in the session's zone; Delta's own writer would join the two hours."""
    moment = "timestamp_seconds(1730594400 + 1800 * (id % 16))"
    table = lakes.make("iceberg", spark.range(64).selectExpr("id", f"{moment} AS t"), "t")
    wanted = lakes.load("iceberg", table).selectExpr("id", "unix_micros(t) AS t").collect()

    with settings(spark, {"spark.sql.session.timeZone": "America/New_York"}):
        target = lakes.migrate("iceberg", table, "delta").target

    rows = DeltaTable(target).to_pyarrow_table()
    moments = rows["t"].cast(pa.int64()).to_pylist()
    assert sorted(zip(rows["id"].to_pylist(), moments, strict=True)) == sorted(map(tuple, wanted))
