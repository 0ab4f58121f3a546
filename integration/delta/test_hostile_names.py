"""No column of the user's is taken for a helper's, whatever its name."""

import deltalake
import pyarrow as pa
import pytest

import zadapter
from integration.kit.hostile import HELPERS, QUOTED, RESERVED, VALUES, numbers, sql
from zadapter import errors


def text(rows):
    """Rows as sorted text, by the columns' names."""
    return sorted(str(sorted(row.items())) for row in rows)


def by_spark(lake, path):
    return text(row.asDict(recursive=True) for row in lake.load(path).collect())


def by_deltalake(path):
    return text(deltalake.DeltaTable(path).to_pyarrow_table().to_pylist())


def check(lake, path, where, matches, by=("key",)):
    """Optimize, and read by zadapter what others saw before."""
    before = by_spark(lake, path)
    assert zadapter.read(path, where=where, spark=lake.spark).count() == matches
    report = lake.optimize(path, by=[*by])
    assert report.rows_added == len(before)
    assert by_spark(lake, path) == before
    assert text(zadapter.read(path, spark=lake.spark).toArrow().to_pylist()) == before
    found = zadapter.read(path, where=where, spark=lake.spark)
    assert found.count() == matches
    assert 0 < len(zadapter.files(path, where=where, spark=lake.spark)) < report.files_added


@pytest.mark.slow
@pytest.mark.parametrize("tracking", [True, False])
def test_columns_of_any_name_keep_their_rows(lake, spark, tracking):
    """Of helpers, of metadata, and such as have to be quoted, with and without row ids."""
    names = ("key", "", *HELPERS, *QUOTED, *RESERVED[1:-2])
    table = pa.table(numbers(names, 2_000))
    properties = {"columnMapping.mode": "name", "enableRowTracking": str(tracking).lower()}
    path = lake.make(spark.createDataFrame(table), **properties)
    # Spark puts a variable's value in the place of ${env}, so a condition cannot name it
    asked = (sql(name) for name in names if name != "${env}")
    where = "key < 100 AND " + " AND ".join(f"{name} >= 0" for name in asked)

    check(lake, path, where, 100, by=("key", "``"))


@pytest.mark.slow
@pytest.mark.parametrize("tracking", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_column_called_as_sparks_metadata_stays(lake, spark, tracking):
    """Where Spark itself has a column of this name, it has another one."""
    rows = spark.range(2_000).selectExpr(
        "id AS key", "named_struct('file_path', concat('/x/', id), 'row_id', id) AS _metadata"
    )
    path = lake.make(rows, enableRowTracking=str(tracking).lower())
    before = by_deltalake(path)

    check(lake, path, "key < 100 AND _metadata.row_id >= 0", 100)

    assert by_deltalake(path) == before


@pytest.mark.slow
def test_partitions_of_any_name_keep_their_rows(lake, spark):
    partition = ("zadapter path", "_metadata", "a.b")
    table = pa.table(numbers(("key", "file_path", "path"), 2_000))
    for name in partition:
        table = table.append_column(name, pa.array(["x y", "z"] * 1_000))
    rows = spark.createDataFrame(table)
    path = lake.make(rows, partition_by=partition, **{"columnMapping.mode": "name"})

    check(lake, path, "key < 100 AND `zadapter path` >= 'x' AND `a.b` < 'zz'", 100)


@pytest.mark.slow
def test_partition_values_of_any_text_keep_their_rows(lake, spark):
    """Spark escapes them for folders, and Delta once more for the log."""
    values = [*VALUES, "back\\slash", ".."]
    rows = pa.table({"key": range(20 * len(values)), "p": values * 20})
    path = lake.make(spark.createDataFrame(rows), partition_by=["p"], files=1)

    check(lake, path, "p = 'a/b' AND key >= 0", 20)

    assert by_deltalake(path) == text(rows.to_pylist())
    found = zadapter.analyze(path, by=["key"], queries=["key >= 0"], matches=True, spark=spark)
    assert found.queries[0].matches.rows == rows.num_rows
    assert zadapter.audit(path, deep=True, spark=spark).findings.num_rows == 0


@pytest.mark.slow
def test_a_partition_column_by_which_delta_finds_no_rows_is_refused(lake, spark):
    """Its filters look for the name without backticks."""
    rows = spark.range(10).selectExpr("id AS key", "id % 2 AS ```p`")
    path = lake.make(rows, partition_by=["`p"], **{"columnMapping.mode": "name"})
    assert lake.load(path).where("```p` = 1").count() == 0

    with pytest.raises(errors.UnsupportedError, match="partition column ```p` find no rows"):
        lake.plan(path, by=["key"])


def test_no_table_of_plain_parquet_moves_to_another_one_by_its_names(lake, spark, tmp_path):
    """Names travel, or the migration is refused before anything is written."""
    names = ("key", *HELPERS, *QUOTED, *RESERVED[:-2])
    rows = spark.createDataFrame(pa.table(numbers(names, 400)))
    folder, target = str(tmp_path / "folder"), str(tmp_path / "target")
    rows.write.parquet(folder)
    try:
        zadapter.migrate(folder, to="delta", target=target, backend="parquet", spark=spark)
    except errors.UnsupportedError:
        assert not (tmp_path / "target").exists()
    else:
        assert by_spark(lake, target) == text(map(dict, (r.asDict() for r in rows.collect())))


@pytest.mark.slow
def test_a_partition_value_that_is_not_ascii(lake, spark, tmp_path):
    """Paths in the log are those that delta-rs would write, so it removes what it means."""
    path = str(tmp_path / "events")
    for first in (0, 100, 200):
        rows = pa.table({"id": range(first, first + 100), "p": ["ü", "日 本"] * 50})
        deltalake.write_deltalake(path, rows, partition_by=["p"], mode="append")
        lake.optimize(path, by=["id"], force=True)
    deltalake.write_deltalake(path, rows, partition_by=["p"], mode="append")

    deltalake.DeltaTable(path).optimize.compact()
    deltalake.DeltaTable(path).delete("id < 50")

    assert by_spark(lake, path) == by_deltalake(path)
    assert sorted(row.id for row in lake.load(path).collect()) == sorted(
        [*range(50, 300), *range(200, 300)]
    )
    lake.optimize(path, by=["id"], force=True)
    assert by_spark(lake, path) == by_deltalake(path)
    assert lake.load(path).count() == 350


def test_a_table_of_the_catalog_may_lie_in_any_folder(lake, spark):
    """The catalog has its location as a URI with escapes."""
    path = lake.make(spark.range(300).selectExpr("id * 7 % 300 AS a"), name="a b%20c+ü")
    before = lake.rows(path)
    spark.sql(f"CREATE TABLE default.anywhere USING delta LOCATION '{path}'")
    try:
        report = lake.optimize("default.anywhere")
    finally:
        spark.sql("DROP TABLE default.anywhere")

    assert report.rows_added == 300
    assert lake.rows(path) == before
