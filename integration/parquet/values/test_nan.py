"""NaN in files by writers that leave it out of min and max; for Spark it is the largest value."""

from math import nan

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.parquet.lake import live

CONDITIONS = [
    *(f"f {op} {v}" for op in ("=", "<>", ">", ">=", "<", "<=") for v in ("5", "double('NaN')")),
    *(f"g {op} {v}" for op in ("=", "!=", ">") for v in ("1", "cast('NaN' as float)")),
    *(f"s.f {op} {v}" for op in ("<=>", "<>", ">") for v in ("1", "double('NaN')")),
    *(f"{v} {op} f" for op in ("<", "<=") for v in ("5.0D", "float('nan')")),
    "f IN (1.0D, double('NaN'))",
    "f NOT IN (1.0D, 2.0D)",
    "s.f IN (7D, double('NaN'))",
    "f BETWEEN 5 AND double('NaN')",
    "f NOT BETWEEN -1 AND 5",
    "NOT f <= 5",
    "NOT (f < 5 OR g < 5)",
    "isnan(f)",
    "NOT isnan(s.f)",
    "f > 5 AND id < 22",
    "f > pow(2, 3)",
    "coalesce(f, 0) > 5",
    "f > g OR f = g",
    "f = 0.0D",
    "g IN (0.0, -1.0)",
    "id < 4",
]
DELETED = ["f = double('NaN')", "s.f > 5", "g <> 1", "NOT f <= 5 AND id < 22"]


def table(first, values):
    """Rows whose numbers are *values*, of each type and as a field."""
    f = pa.array(values, pa.float64())
    return pa.table(
        {
            "id": pa.array(range(first, first + len(values)), pa.int64()),
            "f": f,
            "g": f.cast(pa.float32()),
            "s": pa.StructArray.from_arrays([f], ["f"], mask=f.is_null()),
        }
    )


def by_pyarrow(rows, path):
    pq.write_table(rows, path, row_group_size=3, write_page_index=True)


def by_duckdb(rows, path):
    duckdb.sql(f"COPY (FROM rows) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def by_polars(rows, path):
    pl.from_arrow(rows).write_parquet(path, row_group_size=3, statistics="full")


@pytest.fixture
def folder(tmp_path):
    """Files of three writers, each with NaN among small numbers, alone, and not at all."""
    made = tmp_path / "numbers"
    made.mkdir()
    groups = [[1.0, nan, 2.0], [nan, nan, nan], [1.0, 2.0, None], [6.0, 7.0, -0.0], [1.0, 1.0, nan]]
    number = 0
    for write in (by_pyarrow, by_duckdb, by_polars):
        for group in groups:
            write(table(3 * number, group), f"{made}/{number}.parquet")
            number += 1
    return str(made)


def matches(spark, folder, conditions):
    """The ids that each condition is true for, by Spark without files."""
    tests = [F.expr(where).alias(str(number)) for number, where in enumerate(conditions)]
    rows = spark.createDataFrame(live(folder)).localCheckpoint().select("id", *tests).collect()
    return {
        where: sorted(row.id for row in rows if row[str(number)])
        for number, where in enumerate(conditions)
    }


def read(spark, folder, where):
    rows = zadapter.read(folder, where=where, backend="parquet", spark=spark)
    return sorted(row.id for row in rows.select("id").collect())


@pytest.mark.slow
def test_rows_with_nan_are_read(spark, folder):
    """Whatever their writer says of them, and however the condition is written."""
    wanted = matches(spark, folder, CONDITIONS)

    assert {where: read(spark, folder, where) for where in CONDITIONS} == wanted


@pytest.mark.parametrize("where", DELETED)
def test_rows_with_nan_are_deleted(spark, folder, where):
    """All that the condition is true for, and no other."""
    gone = set(matches(spark, folder, [where])[where])
    before = set(live(folder)["id"].to_pylist())
    assert gone

    assert zadapter.delete(folder, where, backend="parquet", spark=spark).rows_deleted == len(gone)
    assert set(live(folder)["id"].to_pylist()) == before - gone


def test_row_groups_are_excluded_where_no_nan_can_be(lake, spark, folder):
    """By those whose writer is known to count NaN, among files of others."""
    lake.optimize(folder, by="f", where="id < 15")
    wanted = matches(spark, folder, DELETED)
    assert {where: read(spark, folder, where) for where in DELETED} == wanted

    many = spark.range(40_000).selectExpr("id", "double(id) AS f")
    table = lake.make(many.coalesce(1), files=1, name="many")
    lake.optimize(table, by="f", target_file_size="1GB")
    rows = zadapter.read(table, where="f < 100", spark=spark)

    assert rows.count() == 100
    assert scanned(rows) < 40_000 / 4


def scanned(rows):
    """How many rows Spark takes from the files."""
    rows.collect()
    leaves = rows._jdf.queryExecution().executedPlan().collectLeaves()  # noqa: SLF001
    assert leaves.size() == 1
    return leaves.head().metrics().apply("numOutputRows").value()
