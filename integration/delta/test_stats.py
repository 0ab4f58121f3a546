"""The stats that are committed hold, for every type, in every reader's eyes."""

import json
import math
import re

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import zadapter
from integration.delta.conftest import Tables
from tests.kit import extremes
from zadapter.base.ranks import rank
from zadapter.table import file_stats
from zadapter_delta import DeltaBackend

LONG = ["a" * 40 + c for c in ("", "\x7f", "\ud7ff", "\ue000", "\U0010ffff", "😀", "z")]
UTC = pa.timestamp("us", "UTC")
NONE = type(None)
NAN = {"float", "double"}
"""Columns that hold NaN and infinities, for which the log has texts."""
MOST = ["\U0010ffff" * 33, "a" * 32 + "\U0010ffff" * 3, "é" * 31 + "😀😀😀"]


@pytest.fixture(scope="module")
def arrow():
    """Nasty values, with strings longer than the log keeps, in two columns more."""
    table = extremes.table()
    texts = [(LONG + MOST)[i % 10] for i in range(table.num_rows)]
    seconds = pa.array(range(table.num_rows)).cast(pa.timestamp("s")).cast(UTC)
    more = {"long": pa.array(texts), "none": pa.nulls(len(texts), pa.int32()), "now": seconds}
    return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **more})


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    return Tables(spark, tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def table(lake, spark, arrow):
    """A Delta table of them, clustered into several files."""
    rows = spark.createDataFrame(arrow, extremes.ddl(arrow.schema))
    path = lake.make(rows, enableDeletionVectors="true")
    lake.optimize(path, by=["row"], target_file_size="20KB")
    return path


@pytest.mark.slow
def test_a_key_with_nan_keeps_its_lower_bounds(lake, spark):
    """And has an upper one in files without it; a file of NaN alone says so by both."""
    rows = spark.range(10_000).selectExpr("if(id % 10 < 3, double('NaN'), id) a", "id b")
    path = lake.make(rows, name="nan")

    lake.optimize(path, by=["a"], target_file_size="8KB")

    stats = [json.loads(a["add"]["stats"]) for a in lake.log(path)[-1] if "add" in a]
    bounds = {(type(s["minValues"]["a"]), type(s["maxValues"].get("a"))) for s in stats}
    assert {(float, float), (str, str)} <= bounds <= {(float, float), (str, str), (float, NONE)}
    (here,) = [s for s in stats if s["minValues"]["a"] == 3.0]
    assert here["maxValues"]["a"] < 9_999
    found = zadapter.files(path, where="a >= 0 AND a < 1e9", spark=spark)
    assert found.num_rows < len(stats)
    assert lake.load(path).where("isnan(a)").count() == 3_000
    assert lake.load(path).where("a > 1e9").count() == 3_000
    assert lake.load(path).where("a < 100").count() == 70
    assert lake.load(path).where("a = double('NaN')").count() == 3_000


@pytest.mark.slow
@pytest.mark.parametrize("type_", ["double", "float"])
def test_bounds_hold_zeros_of_either_sign(lake, spark, type_):
    """Readers that take -0.0 for less than 0.0 find as many rows as those that do not."""
    zero = f"if(id % 2 = 0, -1, 1) * cast(0 AS {type_})"
    rows = spark.range(8_000).selectExpr(f"if(id < 2000, id % 100, {zero}) a", "id % 77 b")
    path = lake.make(rows, name=f"zeros_{type_}")

    lake.optimize(path, by=["a", "b"], target_file_size="8KB")

    stats = [json.loads(a["add"]["stats"]) for a in lake.log(path)[-1] if "add" in a]
    lows, highs = ([s[at]["a"] for s in stats] for at in ("minValues", "maxValues"))
    assert {str(low) for low in lows if low == 0} == {"-0.0"}
    assert {str(high) for high in highs if high == 0} == {"0.0"}
    native = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    for zero in ("0.0", "-0.0"):
        query = f"SELECT count(*) FROM t WHERE a = CAST({zero} AS {type_})"
        assert pa.table(native.execute(query).read_all()).column(0)[0].as_py() == 6_020


def test_no_value_changes(lake, spark, table, arrow):
    """Row by row, all bits are those that were put in, but that of -0.0 and those of NaN."""
    found = lake.load(table).selectExpr("xxhash64(*) hash").groupBy("hash").count().collect()
    put_in = spark.createDataFrame(arrow, extremes.ddl(arrow.schema))
    expected = put_in.selectExpr("xxhash64(*) hash").groupBy("hash").count().collect()

    assert sorted(found) == sorted(expected)


def assert_holds(stats, values, rows):
    """Bounds contain the values, and what is counted is counted right."""
    low, high, nulls = stats.flatten()[:3]
    assert nulls[0].as_py() in {None, values.null_count}
    ranks = rank(pa.concat_arrays([low, high, values.combine_chunks()])).ranks
    held = [r for r, v in zip(ranks[2:], values.to_pylist(), strict=True) if is_finite(v)]
    assert ranks[0] == 0 or ranks[0] <= min(held)
    assert ranks[1] == 0 or ranks[1] >= max(held)
    assert rows == len(values)


def is_finite(value):
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def test_bounds_hold_for_every_type(spark, table):
    """Cut strings, milliseconds, dates before 1582, 38 digits, NaN: nothing lies outside."""
    backend = DeltaBackend(spark)
    snapshot = backend.snapshot(table)
    names = snapshot.schema.names
    files = backend.files(snapshot, [(name,) for name in names])

    assert files.num_rows > 3
    known = set()
    for number in range(files.num_rows):
        one = files.slice(number, 1)
        held = backend.read(snapshot, one).select(*names).toArrow()
        for name in names:
            stats = file_stats.column(one, (name,))
            if stats is not None:
                known |= {name} if stats[0]["min"].is_valid else set()
                values = held[name].cast(snapshot.schema.field(name).type)
                assert_holds(stats, values, one["rows"][0].as_py())
    assert known >= {name for name in names if name not in {"flag", "binary", "none"}}


def test_the_log_says_what_delta_itself_would_have_said(lake, spark, table):
    """The same columns with the same null counts, and bounds written as Delta writes them."""
    ours = [json.loads(a["add"]["stats"]) for a in lake.log(table)[-1] if "add" in a]
    copy = f"{table}-copy"
    lake.load(table).coalesce(1).write.format("delta").save(copy)
    (delta,) = [json.loads(a["add"]["stats"]) for a in lake.log(copy)[0] if "add" in a]

    assert sum(stats["numRecords"] for stats in ours) == delta["numRecords"]
    for name, nulls in delta["nullCount"].items():
        assert sum(stats["nullCount"][name] for stats in ours) == nulls
    for bound in ("minValues", "maxValues"):
        for name in delta[bound].keys() - NAN:
            assert {type(stats[bound][name]) for stats in ours} == {type(delta[bound][name])}
            assert not re.search(r"\d{5}-", str(ours[0][bound][name]))
        assert ours[0][bound].keys() - {"long"} <= delta[bound].keys()


@pytest.mark.slow
def test_the_end_of_time_has_an_upper_bound(lake, spark):
    """To deltalake's datasets nothing is below one that is not there."""
    end = "timestamp_ntz'9999-12-31 23:59:59.999999'"
    start = "timestamp_ntz'2024-01-01'"
    rows = spark.range(1_000).selectExpr(
        f"if(id = 7, {end}, {start} + make_dt_interval(0, 0, 0, id)) a", "id"
    )
    path = lake.make(rows, name="end")
    late = pc.field("a") >= pa.scalar(1_704_067_800_000_000, pa.timestamp("us"))

    lake.optimize(path, target_file_size="4KB")

    assert deltalake.DeltaTable(path).to_pyarrow_dataset().count_rows(filter=late) == 401
    assert zadapter.read(path, where=f"a = {end}", spark=spark).count() == 1


def test_deltalake_reads_the_stats(table):
    """A reader not written here takes every bound as its column's type."""
    actions = pa.table(deltalake.DeltaTable(table).get_add_actions(flatten=True))

    assert sum(actions["num_records"].to_pylist()) == len(extremes.table())
    assert actions["min.decimal_38_10"].null_count == 0
    assert actions["max.now"].null_count == 0


@pytest.mark.parametrize(
    "predicate",
    [
        "timestamp > '2024-01-01T00:00:00.0000005Z'",
        "timestamp < '1582-10-10T12:00:00.000002Z'",
        "ntz = timestamp_ntz'1969-12-31T23:59:59.999999'",
        "day < date'1582-10-04'",
        "long > repeat('a', 40)",
        "long = concat(repeat('a', 32), repeat('\U0010ffff', 3))",
        "double > 1e300 OR double = double('NaN')",
        "float <= float('-Infinity')",
        "decimal_38_0 > 90000000000000000000000000000000000000",
        "big = -9223372036854775808",
        "none IS NULL AND tiny = -128",
        "flag AND text = ''",
    ],
)
def test_skipping_files_drops_no_row(lake, spark, table, predicate):
    """Delta's own reader finds by our stats what it finds without any."""
    found = lake.load(table).where(predicate).count()

    spark.conf.set("spark.databricks.delta.stats.skipping", "false")
    everything = lake.load(table).where(predicate).count()
    spark.conf.unset("spark.databricks.delta.stats.skipping")

    assert found == everything > 0
