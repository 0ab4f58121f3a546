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


@pytest.mark.slow
def test_a_part_that_is_rewritten_by_other_keys_does_not_decide_for_the_table(table, spark):
    """A call that was meant for the whole table does, though it has rewritten few files so far."""
    asked = {"target_file_size": "8KB", "spark": spark}
    zadapter.optimize(table, by="id", backend="parquet", **asked)
    part = zadapter.optimize(table, by="b", where="id < 300", **asked)
    log = [f"id = {n * 7}" for n in range(40)]

    assert 0 < part.files_removed < part.plan.files_before / 2
    assert zadapter.plan(table, spark=spark).columns == ("id",)
    kept = zadapter.plan(table, by="auto", queries=log, row_groups=4, spark=spark)
    assert (kept.columns, kept.relearning.is_due) == (("id",), False)

    begun = zadapter.optimize(table, by="a", max_files=2, **asked)
    assert begun.plan.groups_left
    assert zadapter.plan(table, spark=spark).columns == ("a",)
    judged = zadapter.plan(table, by="auto", queries=log, spark=spark)
    assert (judged.columns, judged.relearning.is_due) == (("id",), True)
