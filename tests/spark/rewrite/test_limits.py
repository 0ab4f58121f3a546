"""A call stops at its limits, and later calls go on until all is done."""

import pytest

import zadapter
from tests.kit.variants import slow

KEYS = {"by": "a", "backend": "parquet", "target_file_size": "8KB"}


@pytest.fixture
def table(spark, tmp_path):
    """Write a folder of 12 files in three partitions."""
    path = str(tmp_path / "events")
    rows = spark.range(6_000).selectExpr(
        "id * 31 % 997 AS a", "id % 3 AS p", "sha(string(id)) AS s"
    )
    rows.repartition(4).write.partitionBy("p").parquet(path)
    return path


@pytest.mark.parametrize("limit", slow({"max_bytes": "150KB"}, {"max_files": 4}))
def test_calls_with_a_limit_complete_the_table(table, spark, limit):
    """Each takes what fits, and says what is left."""
    reports = [zadapter.optimize(table, **KEYS, **limit, spark=spark) for _ in range(4)]

    assert [report.files_removed for report in reports] == [4, 4, 4, 0]
    assert [report.plan.groups_left for report in reports] == [2, 1, 0, 0]
    assert "left for later  2 file groups of " in str(reports[0])
    assert zadapter.read(table, spark=spark).distinct().count() == 6_000


def test_a_call_out_of_time_starts_no_further_job(table, spark):
    """At least one runs, so that short nights lead somewhere, too."""
    options = {**KEYS, "target_file_size": "32KB", "max_job_bytes": "100KB", "spark": spark}
    jobs = []
    while not (report := zadapter.optimize(table, **options, max_seconds=0.001)).nothing_to_do:
        jobs.append((len(report.versions), report.jobs_left))

    assert jobs == [(1, left) for left in reversed(range(len(jobs)))]
    assert len(jobs) >= 3
    assert zadapter.read(table, spark=spark).distinct().count() == 6_000


@pytest.mark.parametrize("limit", [{"max_bytes": "1GB"}, {"max_files": 9}, {"max_seconds": 60}])
def test_force_has_no_limit(table, spark, limit):
    """Each call would rewrite the same files."""
    with pytest.raises(zadapter.errors.UsageError, match="force= rewrites every file; omit"):
        zadapter.plan(table, **KEYS, **limit, force=True, spark=spark)
