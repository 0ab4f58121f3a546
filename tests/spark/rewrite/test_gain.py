"""A table is not made worse: sizes follow the table, and a rewrite has to bring something."""

import pytest

import zadapter

KEYS = {"by": ["at", "user"], "backend": "parquet"}


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory):
    """Write 12 files of 5 MB in all, in each of which every key occurs, as in the README."""
    path = str(tmp_path_factory.mktemp("lake") / "events")
    rows = spark.range(100_000).selectExpr(
        "timestamp_seconds(1750000000 + id * 7919 % 100003) AS at",
        "id * 31337 % 9973 AS user",
        "sha(string(id)) AS page",
        "1 AS one",
    )
    rows.repartition(12).write.parquet(path)
    return path


@pytest.fixture(scope="module")
def clustered(table, spark):
    """Cluster the table into files of a size that the caller states once."""
    return zadapter.optimize(table, **KEYS, target_file_size="256KB", spark=spark)


def test_a_small_table_becomes_a_few_files_whose_row_groups_can_be_skipped(table, spark):
    """By file, something is gained; of these files, engines read a fraction."""
    plan = zadapter.plan(table, **KEYS, spark=spark)

    assert (plan.files_written, plan.target_file_size) == (5, 1 << 20)
    assert plan.share_after < 0.75
    assert plan.row_group_share_after < 0.5 * plan.row_group_share_before


def test_a_second_call_keeps_the_size(table, clustered, spark):
    """21 files at 18 % do not become one at 100 % because the caller leaves out the size."""
    again = zadapter.optimize(table, **KEYS, spark=spark)

    assert clustered.files_added > 15
    assert again.plan.target_file_size == 256 << 10
    assert again.nothing_to_do
    assert not again.plan.nothing_to_gain


def test_a_worse_layout_is_declined_unless_forced(table, clustered, spark):
    """The plan says what it would have brought; the table stays as it is."""
    worse = {**KEYS, "target_file_size": "128MB"}

    declined = zadapter.optimize(table, **worse, spark=spark)

    assert declined.plan.nothing_to_gain
    assert declined.nothing_to_do
    assert declined.versions == ()
    assert declined.share_after == declined.share_before
    assert declined.share_after == pytest.approx(clustered.share_after, abs=0.03)
    assert declined.plan.share_after == 1.0
    assert zadapter.plan(table, **worse, force=True, spark=spark).files_written == 1


@pytest.mark.parametrize(
    "weighted", [{"by": {"at": 2, "user": 1}}, {"by": ["user", "at"], "curve": "linear"}]
)
def test_weights_do_not_let_a_worse_layout_through(table, clustered, spark, weighted):
    """It is judged by filters on its columns, as often as the weights say."""
    asked = {**KEYS, **weighted, "target_file_size": "128MB", "row_groups": 1}

    worse = zadapter.plan(table, **asked, spark=spark)

    assert worse.nothing_to_gain
    assert worse.share_after > worse.share_before
    assert zadapter.plan(table, **asked, force=True, spark=spark).files_written == 1


def test_weights_that_suit_other_filters_are_followed(table, clustered, spark):
    """Filters on one column read less, and those count most, as the weights say."""
    asked = {**KEYS, "by": {"user": 9, "at": 1}, "target_file_size": "256KB"}

    plan = zadapter.plan(table, **asked, spark=spark)

    assert not plan.nothing_to_do
    assert plan.row_group_share_after < plan.row_group_share_before


def test_a_column_of_one_value_is_nothing_to_cluster_by(table, clustered, spark):
    """Fewer files would be no reason to give up the layout that the table has."""
    plan = zadapter.plan(table, by="one", backend="parquet", spark=spark)

    assert plan.nothing_to_gain
    assert "nothing to gain" in str(plan)


def test_the_share_by_row_group_is_what_footers_say_afterwards(table, clustered, spark):
    """Predicted from a sample before the rewrite, and read from the new files after it."""
    predicted = clustered.plan.row_group_share_after
    found = zadapter.plan(table, **KEYS, force=True, spark=spark).row_group_share_before

    assert found == pytest.approx(predicted, abs=0.03)
    assert found < clustered.share_after


def test_bounds_that_only_the_log_has_are_not_forgotten(spark, tmp_path, conf):
    """Spark writes timestamps as INT96, without bounds in the footers: the log's files have them.

    Files that are in order already are not rewritten for a gain that is none, although the footers
    of 16 of them alone are read.
    """
    conf({"spark.sql.parquet.outputTimestampType": "INT96"})
    path = str(tmp_path / "events")
    rows = spark.range(0, 30_000, 1, 30).selectExpr(
        "timestamp_seconds(1750000000 + id) AS ts", "id"
    )
    rows.write.format("delta").save(path)
    asked = {"by": ["ts"], "backend": "delta", "spark": spark}

    plan = zadapter.plan(path, row_groups=1, **asked)
    found = zadapter.analyze(path, row_groups=True, **asked)

    assert plan.share_before < 0.2
    assert plan.row_group_share_before <= plan.share_before
    assert plan.nothing_to_gain
    assert found.row_groups.share <= found.row_groups.share_by_file < 0.2
