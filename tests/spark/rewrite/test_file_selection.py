"""A call without key columns follows the layout that the table has."""

import pytest

import zadapter
from zadapter.errors import UsageError


@pytest.fixture
def table(spark, tmp_path):
    """Write a folder of unclustered files."""
    path = str(tmp_path / "events")
    rows = spark.range(4_000).selectExpr("id * 31 % 997 AS a", "id * 17 % 991 AS b", "id")
    rows.repartition(4).write.parquet(path)
    return path


@pytest.mark.slow
def test_nightly_calls_need_no_keys(table, spark):
    """Keys, weights, curve, file size and row groups are those of the first call."""
    first = {"by": {"a": 2, "b": 1}, "curve": "zorder", "row_groups": 4, "target_file_size": "8KB"}
    zadapter.optimize(table, **first, backend="parquet", spark=spark)
    zadapter.append(table, spark.read.parquet(table).limit(900), spark=spark)

    planned = zadapter.plan(table, spark=spark)
    report = zadapter.optimize(table, spark=spark)
    again = zadapter.plan(table, **first, spark=spark)

    assert (planned.columns, planned.curve) == (("a", "b"), "zorder")
    assert planned.target_file_size == 8 << 10
    assert report.rows_added >= 900
    assert again.nothing_to_do
    assert not again.nothing_to_gain


def test_new_cuts_need_keys_or_a_layout(table, spark):
    """There is no default for what filters use."""
    with pytest.raises(UsageError, match=r"force= fits new cuts, but no file .* pass by="):
        zadapter.optimize(table, backend="parquet", force=True, spark=spark)
