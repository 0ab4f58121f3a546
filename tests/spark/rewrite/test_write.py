"""What is written is what was read, in the order of the curve, whatever the columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tests.kit import variants
from tests.kit.builders import snapshot
from tests.spark.test_layout_expression import layout_of, request
from zadapter.backend import builds
from zadapter.base.names import quote
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.planning.file_groups import roots_of
from zadapter.rewrite.write import cluster_rows
from zadapter.spark.checksum import compute_totals
from zadapter.spark.compat.spark_api import from_arrow, to_arrow

AS_THEY_ARE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""Old moments are written as they are: Spark 3.5 refuses them unless it is told how."""


def written(rows, path):
    """The files that Spark makes of *rows*, each with its rows in their order."""
    rows.write.parquet(str(path))
    return [pq.read_table(file, partitioning=None) for file in sorted(Path(path).glob("*.parquet"))]


def same(one, other):
    """Whether two columns are the same, NaN like NaN."""
    if pa.types.is_floating(one.type):
        return str(one.to_pylist()) == str(other.to_pylist())
    return one.equals(other)


def assert_in_order(files, layout, columns):
    """Rows of one file have one file's leaves, in the order of the curve."""
    seen = []
    for file in files:
        found = [file[name].combine_chunks() for name in columns]
        leaf = assign.leaves(layout, found, np.zeros(file.num_rows, np.int64))
        place = assign.leaf_positions(layout, leaf)
        assert (np.diff(place) >= 0).all()
        seen.append(set(layout.first_file[leaf].tolist()))
    assert sum(map(len, seen)) == len(set().union(*seen))


@pytest.mark.parametrize("curve", ["adaptive", *variants.slow("hilbert")])
def test_every_type_comes_through(tmp_path, rows, table, conf, curve):
    """A row is narrowed where it lies in memory: none of its values may move or change."""
    conf(AS_THEY_ARE)
    keys = ["big", "text"]
    layout = layout_of(table, keys, curve=curve)
    plain, path = written(rows.coalesce(1), tmp_path / "plain"), tmp_path / "clustered"

    files = written(cluster_rows(rows, layout, snapshot(table.schema)).rows, path)

    before, after = (pa.concat_tables(each).sort_by("row") for each in (plain, files))
    assert len(files) > 2
    assert before.column_names == after.column_names == rows.columns
    for name in rows.columns:
        assert same(before[name], after[name]), name
    assert_in_order(files, layout, keys)


@pytest.fixture
def little_room(spark):
    """Have sorts put aside what they hold after every few rows."""
    conf = spark._jvm.org.apache.spark.SparkEnv.get().conf()  # noqa: SLF001
    key = "spark.shuffle.spill.numElementsForceSpillThreshold"
    conf.set(key, "20")
    yield
    conf.remove(key)


@pytest.mark.usefixtures("little_room")
def test_what_does_not_fit_into_memory_comes_through(tmp_path, spark):
    """Rows that were put aside on disk are read back by their length, keys and all."""
    table = pa.table({"a": pa.array(range(1_000), pa.int64())})
    layout = layout_of(table, ["a"], files=3)
    rows = from_arrow(spark, table).selectExpr("a", "concat('text ', a) AS text").repartition(3)
    schema = table.append_column("text", pa.nulls(1_000, pa.string())).schema

    files = written(cluster_rows(rows, layout, snapshot(schema)).rows, tmp_path / "clustered")

    found = pa.concat_tables(files).sort_by("a")
    assert found.to_pylist() == [{"a": n, "text": f"text {n}"} for n in range(1_000)]
    assert_in_order(files, layout, ["a"])


@pytest.mark.parametrize(
    "width", [1, 63, 128, *variants.slow(2, 61, 62, 64, 65, 66, 126, 127, 129)]
)
def test_tables_of_every_width_come_through(tmp_path, spark, width):
    """Null bits fill a word for each 64 columns; some tables are at the edge of one."""
    table = pa.table({"c0": pa.array(range(300), pa.int64())})
    layout = layout_of(table, ["c0"])
    more = [
        F.when(F.col("c0") % 7 != number % 7, F.col("c0") + number).alias(f"c{number}")
        for number in range(1, width)
    ]
    rows = from_arrow(spark, table).select("c0", *more).repartition(3)

    moved = cluster_rows(rows, layout, snapshot(to_arrow(rows.limit(0)).schema)).rows
    files = written(moved, tmp_path / "clustered")

    assert moved.columns == [f"c{number}" for number in range(width)]
    found = pa.concat_tables(files).sort_by("c0")
    for number in range(1, width):
        expected = [n + number if n % 7 != number % 7 else None for n in range(300)]
        assert found[f"c{number}"].to_pylist() == expected
    assert found["c0"].to_pylist() == [*range(300)]
    assert_in_order(files, layout, ["c0"])


def test_columns_that_only_the_partitioning_has_are_left_out(tmp_path, rows, table, conf):
    """They are what files are sorted by first, and no file has them."""
    conf(AS_THEY_ARE)
    values = [table["flag"].combine_chunks()]
    roots, root_of = roots_of(values, table.num_rows)
    sample = [table["big"].combine_chunks()]
    layout = fit(request(["big"]), sample, roots, root_of, [2] * len(roots))
    named = rows.withColumn("flag of", F.col(quote(("flag",))))
    types = {"flag of": table.schema.field("flag").type}

    moved = cluster_rows(named, layout, snapshot(table.schema, types)).rows
    files = written(moved, tmp_path / "files")

    assert all(file.column_names == rows.columns for file in files)
    assert all(len(set(file["flag"].to_pylist())) == 1 for file in files)
    assert sorted(pa.concat_tables(files)["row"].to_pylist()) == table["row"].to_pylist()


def test_what_is_planned_on_top_finds_the_columns(tmp_path, spark):
    """The optimizer gives a column that is only renamed its old id back."""
    table = pa.table({"a": pa.array(range(100), pa.int64())})
    rows = from_arrow(spark, table).withColumn("p", F.concat(F.lit("p "), F.col("a") % 3))
    renamed = rows.select(*(F.col(name).cast(type_).alias(name) for name, type_ in rows.dtypes))
    schema = to_arrow(rows.limit(0)).schema

    moved = cluster_rows(renamed, layout_of(table, ["a"], files=3), snapshot(schema)).rows
    found = moved.withColumn("p", F.upper("p")).where("a >= 10").select("p", "a")

    assert sorted(found.collect()) == sorted((f"P {n % 3}", n) for n in range(10, 100))
    found.write.partitionBy("p").parquet(str(tmp_path / "written"))
    assert spark.read.parquet(str(tmp_path / "written")).count() == 90


def test_plain_operations_place_rows_in_the_same_files(tmp_path, rows, table, conf, monkeypatch):
    """What an untested Spark does for itself is what the tested ones are made to do."""
    conf(AS_THEY_ARE)
    layout = layout_of(table, ["big", "text"])
    made = {}
    for name in ("known", "plain"):
        if name == "plain":
            monkeypatch.setattr(builds, "SPARK", ("9.9.9",))
        moved = cluster_rows(rows, layout, snapshot(table.schema), checksum=True)
        made[name] = moved, written(moved.rows, tmp_path / name)

    (known, fast), (plain, slow) = made.values()
    assert known.untested is None
    assert known.read_totals() == compute_totals(rows.select(*table.schema.names))
    assert plain.untested == f"Spark {rows.sparkSession.version}"
    assert plain.read_totals() is None
    assert len(fast) == len(slow) > 2
    for one, other in zip(fast, slow, strict=True):
        assert sorted(one["row"].to_pylist()) == sorted(other["row"].to_pylist())
    assert_in_order(slow, layout, ["big", "text"])


def test_no_row_is_copied_to_lose_the_keys(rows, table):
    """The plan that is executed ends with the sort."""
    moved = cluster_rows(rows, layout_of(table, ["big"]), snapshot(table.schema)).rows

    plan = moved._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001

    assert "Sort" in plan
    assert "Project" not in plan.partition("Sort")[0]
