"""Bounds that came along exclude no file that holds a match, whoever plans by them."""

import json
from datetime import datetime, timezone
from functools import cache

import deltalake
import pyarrow.compute as pc
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import EqualTo, GreaterThan, LessThan
from pyiceberg.types import LongType

import zadapter
from integration.migration.tables import log
from tests.kit.variants import slow

BEFORE = datetime(2026, 11, 21, 20, 4, 53, 80_500, timezone.utc)
"""Above the whole millisecond that Delta's log keeps, below the row's."""
MOMENT = BEFORE.replace(microsecond=80_758)
COMMON = "https://www.example.com/a/path/that/all/of/them/share/"
CONDITIONS = [
    "t > TIMESTAMP'2026-11-21 20:04:53.0805'",
    "w > TIMESTAMP_NTZ'2026-11-21 20:04:53.0805'",
    f"s = '{COMMON}9'",
    f"s > '{COMMON}8'",
    "s >= 'é😀'",
    "st.x = 9",
    "st.x IS NULL",
    "f = float('NaN')",
    "f < -1e30",
    "d <= 0",
    "d >= 0.1",
    "d IS NULL",
    "m > 123456789012345678901234567890.12345678BD",
    "day < DATE'1582-10-15'",
    "b = X'00FF'",
]


def odd_bounds(spark):
    """Ten rows whose bounds are hard to write down, each in a file of its own."""
    return spark.range(10).selectExpr(
        "id",
        "timestamp_micros(1795291493080758 - (9 - id) * 1000000) AS t",
        "CAST(timestamp_micros(1795291493080758 - (9 - id) * 1000000) AS timestamp_ntz) AS w",
        f"IF(id = 3, 'é😀', '{COMMON}' || id) AS s",
        "named_struct('x', NULLIF(id, 4)) AS st",
        "float(CASE id WHEN 5 THEN 'NaN' WHEN 6 THEN '-Infinity' ELSE string(id) END) AS f",
        "double(CASE id WHEN 5 THEN '-0.0' WHEN 7 THEN NULL ELSE string(id / 10) END) AS d",
        "CAST(123456789012345678901234567890.12345678 + id / 100000000BD AS decimal(38,8)) AS m",
        "date_add(DATE'1500-01-01', int(id) * 40000) AS day",
        "IF(id = 2, X'00FF', encode(string(id), 'UTF-8')) AS b",
    )


def spread(rows):
    """A row a file: sorted rows in ten ranges, two of which may share one."""
    return rows.repartitionByRange(10, "id")


@pytest.fixture(scope="module")
def tables(lakes, spark):
    """A table of each format with a file a row, and how often each condition is true."""
    rows = odd_bounds(spark)
    wanted = rows.selectExpr(*(f"count_if({each})" for each in CONDITIONS)).first()
    made = {}
    for format_ in ("delta", "iceberg"):
        made[format_] = lakes.make(format_, rows.where("false"))
        lakes.append(format_, made[format_], spread(rows))
    assert wanted[0] == 1
    return made, wanted


@pytest.fixture(scope="module")
def migrated(lakes, tables):
    """Each migration, made once: the new table."""
    return cache(lambda f, to, mode: lakes.migrate(f, tables[0][f], to, mode=mode).target)


PAIRS = [("delta", "iceberg", "copy"), ("delta", "iceberg", "in_place")]
BACK = [("iceberg", "delta", "copy"), ("iceberg", "delta", "in_place")]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to", "mode"), PAIRS + BACK)
def test_filters_find_what_they_found(lakes, tables, migrated, format_, to, mode):
    """By Spark, which leaves out files by their bounds: as many rows as there are."""
    _, wanted = tables

    target = migrated(format_, to, mode)

    rows = lakes.load(to, target)
    found = [rows.where(each).select("id").collect() for each in CONDITIONS]
    assert [len(each) for each in found] == list(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy", "in_place"])
def test_the_plan_of_pyiceberg_has_the_file(lakes, migrated, mode):
    """With a filter above the millisecond, and it leaves out most others."""
    target = migrated("delta", "iceberg", mode)
    table = lakes.iceberg(target)

    filters = {
        GreaterThan("t", BEFORE.isoformat()): [9],
        LessThan("id", 1): [0],
        EqualTo("s", f"{COMMON}9"): [9],
        EqualTo("st.x", 9): [9],
    }
    for condition, ids in filters.items():
        scan = table.scan(row_filter=condition)
        assert [row["id"] for row in scan.to_arrow().to_pylist()] == ids
    if mode == "in_place":
        early = table.scan(row_filter=LessThan("id", 1))
        assert len(list(early.plan_files())) < len(list(table.scan().plan_files()))


@pytest.mark.parametrize("mode", ["copy", "in_place"])
def test_bounds_of_fields_of_structs_survive(lakes, migrated, mode):
    """The manifests have them, and they are the values."""
    target = migrated("delta", "iceberg", mode)

    table = lakes.iceberg(target)
    number = table.schema().find_field("st.x").field_id
    files = [task.file for task in table.scan().plan_files()]
    lows = [file.lower_bounds[number] for file in files if number in file.lower_bounds]
    highs = [file.upper_bounds[number] for file in files if number in file.upper_bounds]
    assert min(from_bytes(LongType(), each) for each in lows) == 0
    assert max(from_bytes(LongType(), each) for each in highs) == 9


@pytest.mark.slow
def test_deltalake_finds_the_file(lakes, migrated):
    """It leaves out files by the log's stats."""
    target = migrated("iceberg", "delta", "copy")

    rows = deltalake.DeltaTable(target).to_pyarrow_dataset()

    for field, value in [("t", BEFORE), ("w", BEFORE.replace(tzinfo=None)), ("id", 8)]:
        found = rows.to_table(filter=pc.field(field) > pc.scalar(value)).to_pylist()
        assert [row["id"] for row in found] == [9]


@pytest.mark.parametrize("mode", ["copy", "in_place"])
def test_the_log_of_delta_says_no_less(lakes, migrated, mode):
    """Its upper bound is a millisecond, which is not below the row's microsecond."""
    target = migrated("iceberg", "delta", mode)

    stats = [a["add"]["stats"] for version in log(target) for a in version if "add" in a]

    highest = max(stats, key=lambda text: '"id":9' in text)
    assert '"t":"2026-11-21T20:04:53.081Z"' in highest


NOT_A_NUMBER = ["d = double('NaN')", "d > 100", "d >= 4", "f = float('NaN')", "d IS NULL", "d < 1"]


def beside_numbers(spark):
    """NaN beside numbers in one file: bounds of some formats leave it out."""
    nan = "IF(id = 3, {0}('NaN'), {0}(id))"
    both = (f"{nan.format(type_)} AS {type_[0]}" for type_ in ("double", "float"))
    return spark.range(5).selectExpr("id", *both)


@pytest.mark.parametrize("clustered", [True, *slow(False)])  # noqa: FBT003 - values
@pytest.mark.parametrize(("format_", "to"), [("iceberg", "delta"), ("parquet", "delta")])
def test_nan_beside_numbers_is_found(lakes, spark, format_, to, clustered):
    """By filters, and as the largest value."""
    rows = beside_numbers(spark)
    wanted = rows.selectExpr(*(f"count_if({each})" for each in NOT_A_NUMBER)).first()
    table = lakes.make(format_, rows, files=1)
    if clustered:
        zadapter.optimize(table, by="d", backend=format_, spark=spark)

    target = lakes.migrate(format_, table, to, mode="in_place").target

    made = lakes.load(to, target)
    assert [made.where(each).count() for each in NOT_A_NUMBER] == list(wanted)
    assert str(made.selectExpr("max(d)").first()[0]) == "nan"
    for each, count in zip(NOT_A_NUMBER, wanted, strict=True):
        assert zadapter.read(target, where=each, backend=to, spark=spark).count() == count


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_files_of_nan_alone_are_found(lakes, spark, format_):
    """As numbers above all others, which Iceberg leaves out where it is told that there are any."""
    rows = spark.range(6_000).selectExpr("IF(id % 2 = 0, double('NaN'), id) d", "id")
    table = lakes.make(format_, rows)
    zadapter.optimize(table, by="d", backend=format_, target_file_size="8KB", spark=spark)

    target = lakes.migrate(format_, table, "iceberg", mode="in_place").target

    made = lakes.load("iceberg", target)
    for each in ("isnan(d)", "d > 1e9", "d >= 1e9", "d = double('NaN')"):
        assert made.where(each).count() == 3_000, each
    assert made.where("d < 100").count() == 50
    scan = lakes.iceberg(target).scan
    few, every = (list(s.plan_files()) for s in (scan(row_filter=LessThan("d", 100.0)), scan()))
    assert len(few) < len(every)


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["double", *slow("float")])
@pytest.mark.parametrize("numbers", ["-5, -0, 0", "0, -0", *slow("0, -0, 5", "-0, 0")])
def test_zeros_of_either_sign_are_found(lakes, spark, numbers, type_):
    """Spark takes them for equal, Iceberg does not, and either may be the bound in Delta's log."""
    values = ", ".join(f"(CAST('{each}' AS {type_}))" for each in numbers.split(", "))
    rows = spark.sql(f"SELECT d FROM VALUES {values} t(d)")
    asked = ["d = 0", f"d = CAST('-0' AS {type_})", "d IN (0, 7)", "abs(d) = 0"]
    asked += ["d >= 0 AND d < 1"] if numbers.startswith("-5") else []
    asked += [f"d <= CAST('-0' AS {type_})"] if numbers.endswith("5") else []
    table = lakes.make("delta", rows, files=1)
    zadapter.optimize(table, by="d", backend="delta", spark=spark)

    target = lakes.migrate("delta", table, "iceberg", mode="in_place").target

    made = lakes.load("iceberg", target)
    assert [made.where(each).count() for each in asked] == [2] * len(asked)


LARGEST = "min(id), max(id), min(t), max(t), min(w), max(w), min(day), max(day), min(m), max(m)"


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["delta", "parquet"])
def test_the_smallest_and_the_largest_are_values(lakes, spark, format_):
    """Spark answers them from Iceberg's bounds, and those of Delta's log are cut."""
    rows = odd_bounds(spark)
    table = lakes.make(format_, rows, files=1)

    target = lakes.migrate(format_, table, "iceberg", mode="in_place").target

    asked = f"SELECT {LARGEST}, max(d), max(f), max(s) FROM "
    lakes.sql(f"REFRESH TABLE {target}")
    found = lakes.sql(asked + target).first()
    rows.createOrReplaceTempView("odd")
    assert str(found) == str(lakes.sql(f"{asked} odd").first())


@pytest.mark.slow
def test_moments_that_delta_cannot_write_get_no_bounds(lakes, spark):
    """Iceberg keeps them as numbers; as text some would be above the moments themselves."""
    moments = [-(1 << 62), -62_135_596_800_000_001, 0, 1 << 62]
    rows = spark.createDataFrame([(each,) for each in moments], "m long")
    table = lakes.make("iceberg", rows.selectExpr("timestamp_micros(m) AS a", "m"), files=1)

    target = lakes.migrate("iceberg", table, "delta", mode="in_place").target

    (stats,) = [json.loads(a["add"]["stats"]) for v in log(target) for a in v if "add" in a]
    assert "a" not in {*stats["minValues"], *stats["maxValues"]}
    for each in moments:
        found = lakes.load("delta", target).where(f"a = timestamp_micros({each})")
        assert [row.m for row in found.select("m").collect()] == [each]
