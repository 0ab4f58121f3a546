"""Parquet tables of the session's catalog: named as in SQL, and read by those who know no zadapter.

Readers of the catalog see each row once: those of the version last published.
"""

import subprocess
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

import zadapter
from tests.kit.variants import slow
from zadapter.errors import UnknownTableError, UnsupportedError, UsageError

ROWS = 2_000
_numbers = count()


@pytest.fixture(scope="module")
def database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS catalogued")
    yield "catalogued"
    spark.sql("DROP DATABASE catalogued CASCADE")


def new(database):
    return f"{database}.t{next(_numbers)}"


def make(spark, name, clauses="USING parquet"):
    """Create a table of two columns whose partitions are text that looks like numbers."""
    spark.sql(f"CREATE TABLE {name} (a BIGINT, c BIGINT, p STRING) {clauses}")
    rows_of(spark, 0, ROWS).repartition(3).write.insertInto(name)


def rows_of(spark, start, end):
    rows = spark.range(start, end)
    return rows.selectExpr("id * 7919 % 4001 AS a", "id AS c", "concat('0', c % 3) AS p")


def seen(spark, name):
    """What a reader of the catalog sees."""
    return sorted((row.c, row.p) for row in spark.table(name).collect())


def expected(*numbers):
    return sorted((c, f"0{c % 3}") for c in numbers)


@pytest.mark.parametrize(
    "clauses",
    [
        *("USING parquet PARTITIONED BY (p)", "USING parquet LOCATION '{}'"),
        *slow("USING parquet"),
    ],
)
def test_readers_of_the_catalog_see_each_row_once(spark, database, tmp_path, clauses):
    """They see what was published last, whatever zadapter does meanwhile."""
    name = new(database)
    make(spark, name, clauses.format(f"{tmp_path}/a table"))
    first = expected(*range(ROWS))

    assert zadapter.plan(name, by=["a"], spark=spark).version is None
    report = zadapter.optimize(name, by=["a"], target_file_size="8KB", spark=spark)
    assert report.files_added
    assert seen(spark, name) == seen(spark.newSession(), name) == first

    more = spark.range(ROWS, ROWS + 3).selectExpr("id AS a", "id AS c", "'09' AS p")
    zadapter.append(name, more, spark=spark)
    assert zadapter.delete(name, "c < 10", spark=spark).rows_deleted == 10
    newest = sorted([*expected(*range(10, ROWS)), *((c, "09") for c in range(ROWS, ROWS + 3))])
    mine = zadapter.read(name, spark=spark).collect()
    assert sorted((row.c, row.p) for row in mine) == newest
    assert seen(spark, name) == first

    with pytest.raises(UnsupportedError, match=r"call zadapter\.publish"):
        zadapter.vacuum(name, older_than=timedelta(0), dry_run=False, spark=spark)
    assert seen(spark, name) == first

    zadapter.publish(name, spark=spark)
    assert seen(spark, name) == seen(spark.newSession(), name) == newest
    zadapter.vacuum(name, older_than=timedelta(0), dry_run=False, spark=spark)
    assert seen(spark, name) == newest
    assert zadapter.files(name, where="c = 20", spark=spark).num_rows >= 1
    assert len(zadapter.history(name, spark=spark)) > 3


def test_what_is_no_parquet_table_is_refused_in_one_sentence(spark, database):
    """Each message names the table and what it is."""
    orc, csv, view, buckets, parquet = (new(database) for _ in range(5))
    make(spark, orc, "USING orc")
    make(spark, csv, "USING csv")
    make(spark, buckets, "USING parquet CLUSTERED BY (a) INTO 2 BUCKETS")
    make(spark, parquet)
    spark.sql(f"CREATE VIEW {view} AS SELECT * FROM {parquet}")
    spark.table(parquet).createOrReplaceTempView("of_a_session")
    refused = {orc: "provider orc", csv: "provider csv", view: "a view", "of_a_session": "a view"}

    for name, reason in refused.items():
        for backend in ("parquet", None):
            with pytest.raises(UsageError, match=reason) as raised:
                zadapter.plan(name, by=["a"], backend=backend, spark=spark)
            assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(UnsupportedError, match="bucketed"):
        zadapter.plan(buckets, by=["a"], backend="parquet", spark=spark)
    with pytest.raises(UnknownTableError, match="not found"):
        zadapter.plan(f"{database}.nothing", by=["a"], backend="parquet", spark=spark)


def test_partitions_elsewhere_are_refused(spark, database, tmp_path):
    """A partition with a location of its own, and a folder that the catalog does not know."""
    name = new(database)
    make(spark, name, f"USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/here'")
    rows = rows_of(spark, 0, 10).drop("p")
    rows.write.parquet(f"{tmp_path}/here/p=08")
    with pytest.raises(UnsupportedError, match="MSCK REPAIR TABLE"):
        zadapter.optimize(name, by=["a"], spark=spark)
    spark.sql(f"MSCK REPAIR TABLE {name}")
    listed = list(Path(tmp_path, "here").rglob("*.parquet"))
    assert zadapter.plan(name, by=["a"], spark=spark).files_before == len(listed)

    rows.write.parquet(f"{tmp_path}/elsewhere")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p='07') LOCATION '{tmp_path}/elsewhere'")
    with pytest.raises(UnsupportedError, match=r"partition \[p=07\] is at .*elsewhere"):
        zadapter.optimize(name, by=["a"], spark=spark)
    assert not Path(tmp_path, "here", "_zadapter").exists()


HIVE = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import zadapter
from integration.parquet.test_catalog import expected, make, rows_of, seen, ROWS

here = Path.cwd()
spark = (
    SparkSession.builder.master("local[2]").enableHiveSupport()
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.warehouse.dir", f"{here}/warehouse").getOrCreate()
)
spark.sql("CREATE DATABASE db")
for name, clauses in {
    "db.flat": "USING parquet",
    "db.parts": "USING parquet PARTITIONED BY (p)",
    "db.hive": "STORED AS PARQUET",
}.items():
    make(spark, name, clauses)
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS")
    before, now = expected(*range(ROWS)), expected(*range(10, ROWS + 5))
    assert seen(spark, name) == before
    zadapter.optimize(name, by=["a"], target_file_size="8KB", backend="parquet")
    zadapter.append(name, rows_of(spark, ROWS, ROWS + 5), backend="parquet")
    zadapter.delete(name, "c < 10", backend="parquet")
    assert seen(spark, name) == before, name
    zadapter.publish(name, backend="parquet")
    assert seen(spark, name) == seen(spark.newSession(), name) == now, name
    stats = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Statistics'").first()
    assert str(ROWS) not in stats.data_type, stats
print("done")
"""


@pytest.mark.slow
def test_tables_of_a_hive_metastore(tmp_path):
    """Spark's embedded metastore, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", HIVE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.stdout.endswith("done\n"), ended.stderr[-3000:]


@pytest.mark.slow
def test_partition_values_that_look_like_null_and_columns_in_any_order(spark, database):
    """Text that is null or begins with it, and five columns, which a Scala map does not order."""
    name, columns = new(database), ["p", "q", "r", "s", "t"]
    types = ", ".join(f"{column} STRING" for column in columns)
    spark.sql(
        f"CREATE TABLE {name} (a BIGINT, {types}) USING parquet "
        f"PARTITIONED BY ({', '.join(columns)})"
    )
    rows = spark.range(400).selectExpr(
        "id * 7919 % 4001 AS a",
        "element_at(array('null', 'nullified', NULL, 'x'), int(id % 4) + 1) AS p",
        "'null' AS q",
        "'b' AS r",
        "'c' AS s",
        "'d' AS t",
    )
    rows.write.insertInto(name)
    before = sorted(map(str, spark.table(name).collect()))

    report = zadapter.optimize(name, by=["a"], target_file_size="1KB", force=True, spark=spark)
    zadapter.publish(name, spark=spark)

    assert report.rows_added == 400
    assert sorted(map(str, spark.table(name).collect())) == before
