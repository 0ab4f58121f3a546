"""Engines that read the folder itself, as they did before it was a table.

Each sees version 0, the newest version or an error: never a row twice, never the stats.
"""

import warnings
from datetime import timedelta
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from zadapter_parquet.store.guard_files import WRITING
from zadapter_parquet.store.local import LocalFiles

ROWS = 3_000
PATTERNS = ("", "/*", "/**", "/*.parquet", "/**/*.parquet", "/**/p=*/*", "/**/p=*/*.parquet")


def by_duckdb(table, pattern, *, union=False):
    found = duckdb.sql(f"FROM read_parquet('{table}{pattern}', union_by_name={union}) SELECT c")
    return [c for (c,) in found.fetchall()]


def by_fastparquet(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas will drop it
        return of_frame(pd.read_parquet(table, engine="fastparquet"))


def of_table(found):
    """An engine that finds no file returns no row, and no column either."""
    return found["c"] if found.num_columns else []


def of_frame(found):
    return found["c"].tolist() if len(found.columns) else []


ENGINES = {
    "spark": lambda spark, table: [row.c for row in spark.read.parquet(table).collect()],
    "pyarrow.dataset": lambda _, table: of_table(ds.dataset(table, format="parquet").to_table()),
    "pyarrow.parquet": lambda _, table: of_table(pq.read_table(table)),
    "pandas": lambda _, table: of_frame(pd.read_parquet(table)),
    "fastparquet": lambda _, table: by_fastparquet(table),
}
for pattern in PATTERNS:
    ENGINES[f"duckdb {pattern}"] = lambda _, table, p=pattern: by_duckdb(table, p)
    ENGINES[f"duckdb {pattern} by name"] = lambda _, t, p=pattern: by_duckdb(t, p, union=True)
    ENGINES[f"polars {pattern}"] = lambda _, t, p=pattern: pl.scan_parquet(t + p).collect()["c"]


def values_or_none(read, spark, table):
    """What an engine sees, in order; None where it refuses to read."""
    try:
        found = read(spark, table)
    except Exception:  # noqa: BLE001 - each engine has its own
        return None
    return sorted(found.to_pylist() if hasattr(found, "to_pylist") else found)


def check(spark, table, *versions):
    """What engines see is one of *versions*; return it."""
    found = {name: values_or_none(read, spark, table) for name, read in ENGINES.items()}
    wrong = {name: len(r) for name, r in found.items() if r is not None and r not in versions}
    assert wrong == {}
    return found


def check_readable(first, now):
    """Engines that could read the folder still can; these two may say what is no Parquet there."""
    refusing = {name for name, rows in now.items() if rows is None and first[name] is not None}
    assert {n for n in refusing if "/** " not in n and n not in {"polars ", "polars /**"}} == set()


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_no_engine_sees_rows_twice(lake, spark, partition_by):
    """Before and after each verb; those that could read the folder still can."""
    rows = spark.range(ROWS).select((F.col("id") * 7919 % 4001).alias("a"), F.col("id").alias("c"))
    table = lake.make(rows.withColumn("p", F.expr("int(c % 3)")), *partition_by)
    everything = sorted(range(ROWS))
    first = check(spark, table, everything)

    lake.optimize(table, by=["a"], target_file_size="8KB")
    after = check(spark, table, everything)
    check_readable(first, after)

    zadapter.append(table, rows.limit(5).withColumn("p", F.expr("int(c % 3)")), spark=spark)
    zadapter.delete(table, "c % 2 = 0", spark=spark)
    check(spark, table, everything)

    zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=spark)
    gone = check(spark, table)
    assert not any(gone.values())
    assert not list(Path(table, "_zadapter").rglob("*.parquet"))

    zadapter.publish(table, spark=spark)
    newest = sorted([c for c in everything if c % 2] + [c for c in range(5) if c % 2])
    check_readable(first, check(spark, table, newest))


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_a_migrated_table_is_not_taken_for_an_empty_one(lake, spark, partition_by):
    """All its files are hidden until it is published."""
    rows = spark.range(ROWS).selectExpr("id AS c", "int(id % 3) AS p")
    source, table = f"{lake.folder}/delta", f"{lake.folder}/migrated"
    rows.write.format("delta").partitionBy(*partition_by).save(source)
    zadapter.migrate(source, to="parquet", target=table, spark=spark)

    check(spark, table)
    assert zadapter.read(table, spark=spark).count() == ROWS

    zadapter.publish(table, spark=spark)
    seen = check(spark, table, sorted(range(ROWS)))
    assert all(
        seen[name] for name in ("spark", "pyarrow.dataset", "pandas", "duckdb /**/*.parquet")
    )


@pytest.mark.slow
def test_engines_that_are_given_paths_know_the_partition(lake, spark):
    """The paths that zadapter names say it, as the folder's own did."""
    rows = spark.range(ROWS).selectExpr("id AS c", "concat('=%é', id % 3) AS `p é`")
    table = lake.make(rows, "p é")
    lake.optimize(table, by=["c"])
    paths = zadapter.files(table, spark=spark)["path"].to_pylist()

    counted = duckdb.sql(f"""SELECT "p é", count(*) FROM read_parquet({paths}) GROUP BY ALL""")
    assert sorted(counted.fetchall()) == [(f"=%é{p}", ROWS // 3) for p in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("partition_by", [(), ("p",)])
def test_engines_stop_while_zadapter_writes(lake, spark, partition_by, monkeypatch):
    """Spark's files have its ending until it is done, and after a kill until vacuum."""
    rows = spark.range(ROWS).selectExpr("id * 7919 % 4001 AS a", "id AS c", "int(id % 3) AS p")
    table = lake.make(rows, *partition_by)
    found, move = [], LocalFiles.move

    def looked(self, names):
        found.append(check(spark, table, sorted(range(ROWS))))
        with pytest.raises(duckdb.Error, match=WRITING):
            by_duckdb(table, "/**/*.parquet")
        move(self, names)

    monkeypatch.setattr(LocalFiles, "move", looked)
    lake.optimize(table, by=["a"])

    assert found


@pytest.mark.slow
def test_a_write_that_fails_leaves_nothing(lake, spark):
    """No guard stays in the way of engines that walk."""
    table = lake.make(spark.range(ROWS).selectExpr("id AS c"))
    lake.optimize(table, by=["c"])
    before = {path for path in Path(table).rglob("*") if path.is_file()}

    broken = spark.range(3).selectExpr("if(id = 1, raise_error('broken'), id) AS c")
    with pytest.raises(Exception, match="broken"):
        zadapter.append(table, broken, spark=spark)

    assert {path for path in Path(table).rglob("*") if path.is_file()} == before
