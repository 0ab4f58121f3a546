"""A clean-up of a plain Parquet table after its rewrite."""

from datetime import timedelta
from pathlib import Path

from zadapter.lake.cleaning import clean
from zadapter.lake.settings import Keep

NONE = timedelta(0)


def test_vacuum_takes_the_files_of_old_versions(lake, spark):
    table = lake.make(spark.range(400).selectExpr("id * 7 % 400 a", "id b"))
    old = [*Path(table).glob("*.parquet")]
    lake.optimize(table)
    before, stranger = lake.read(table), Path(table, ".stranger")
    stranger.write_text("mine")

    (refused,) = clean(spark, table, "parquet", Keep(orphans=NONE), dry_run=False)
    longer = Keep(versions=NONE, orphans=timedelta(days=1))
    (kept,) = clean(spark, table, "parquet", longer, dry_run=False)
    (listed,) = clean(spark, table, "parquet", Keep(versions=NONE), dry_run=True)
    assert all(path.exists() for path in old)
    (done,) = clean(spark, table, "parquet", Keep(versions=NONE), dry_run=False)

    assert "set keep.versions" in refused.error
    assert (kept.error, kept.counts) == (None, {"files": 0})
    assert listed.counts == done.counts
    assert done.counts["files"] >= len(old) == 4
    assert not any(path.exists() for path in old)
    assert stranger.exists()
    assert before == lake.read(table)
