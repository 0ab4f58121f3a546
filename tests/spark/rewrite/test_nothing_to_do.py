"""What is said of tables and files with which there is nothing to do."""

import pytest

import zadapter
from zadapter.errors import UnknownColumnError

KEYS = {"by": ["id"], "backend": "parquet"}


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """Write a few files of rows in order."""
    path = str(tmp_path_factory.mktemp("lake") / "events")
    spark.range(0, 1_000, 1, 6).selectExpr("id", "id % 3 AS device").write.parquet(path)
    return path


def test_files_that_are_too_young_are_named(spark, tmp_path):
    """They are left to their writers; no condition has excluded them."""
    path = str(tmp_path / "delta")
    spark.range(0, 1_000, 1, 6).write.format("delta").save(path)

    for keys in ({"by": "id"}, {}):
        plan = zadapter.plan(path, **keys, min_age="1 day", spark=spark)

        assert plan.facts()["nothing to do"] == "all files are too young"
        assert plan.files_young == 6


def test_a_condition_without_matches_is_named(table, spark):
    """The table has files, which the condition excludes."""
    asked = {**KEYS, "where": "id < 0", "spark": spark}

    assert zadapter.analyze(table, **asked).verdict.startswith("no file may hold rows")
    assert zadapter.plan(table, **asked).facts()["nothing to do"].startswith("no file matches")


def test_a_table_without_rows_has_nothing_to_gain_or_lose(spark, tmp_path):
    """Spark writes one file without rows."""
    path = str(tmp_path / "empty")
    spark.range(0).write.parquet(path)

    assert zadapter.plan(path, **KEYS, spark=spark).facts()["nothing to do"].startswith("the table")
    report = zadapter.optimize(path, **KEYS, spark=spark)
    assert report.facts()["nothing to do"] in {"the table has no files", "the table has no rows"}


def test_columns_in_one_text_are_no_list(table, spark):
    """The error shows the list."""
    with pytest.raises(UnknownColumnError, match=r"a list: \['device', 'id'\]"):
        zadapter.plan(table, by="device,id", backend="parquet", spark=spark)
