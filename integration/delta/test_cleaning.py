"""A clean-up of a Delta table after its rewrite."""

import os
import time
from datetime import datetime, timedelta
from pathlib import Path

import deltalake
import pytest

from integration.kit.lakes import settings
from zadapter.lake import cleaning
from zadapter.lake.cleaning import clean
from zadapter.lake.settings import Keep

NONE = timedelta(0)
UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@pytest.fixture
def rewritten(lake, spark):
    """Make a rewritten table, with a file that the log does not name: path, old files, stranger."""

    def make(**properties):
        rows = spark.range(400).selectExpr("id * 7 % 400 a", "id b")
        path = lake.make(rows, name="odd `name", **properties)
        old = [*Path(path).glob("*.parquet")]
        lake.optimize(path)
        stranger = Path(path, "part-stranger.parquet")
        stranger.write_bytes(b"left by a writer that has died")
        ago = time.time() - 3_600
        for file in (*old, stranger):
            os.utime(file, (ago, ago))
        return path, old, stranger

    return make


def rows(path):
    return sorted(map(str, deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()))


def test_vacuum_takes_what_neither_delta_nor_keep_keeps(rewritten, lake, spark):
    """Delta's check is on where the session has it off, and RETAIN holds where Delta ignores it.

    A call that finds nothing to delete commits nothing.
    """
    path, old, stranger = rewritten()
    before = rows(path)
    day, now = Keep(versions=timedelta(days=1), orphans=NONE), Keep(versions=NONE, orphans=NONE)

    def retain(interval):
        lake.sql(
            f"ALTER TABLE delta.`{path.replace('`', '``')}` "
            f"SET TBLPROPERTIES (delta.deletedFileRetentionDuration = 'interval {interval}')"
        )

    with settings(spark, UNCHECKED):
        (refused,) = clean(spark, path, "delta", day, dry_run=False)
        retain("172800000 milliseconds")  # a unit that Delta alone reads
        (refused_by_delta,) = clean(spark, path, "delta", day, dry_run=False)
    retain("0 hours")
    (kept,) = clean(spark, path, "delta", day, dry_run=False)
    assert all(file.exists() for file in (*old, stranger))
    (done,) = clean(spark, path, "delta", now, dry_run=False)
    versions = len(lake.log(path))
    (again,) = clean(spark, path, "delta", now, dry_run=False)

    assert (refused.step, refused_by_delta.step) == ("open", "VACUUM")
    for each in (refused, refused_by_delta):
        assert "deletedFileRetentionDuration" in each.error
    assert [each.error for each in (kept, done, again)] == [None] * 3
    assert [each.counts["paths"] for each in (kept, done, again)] == [0, 5, 0]
    assert versions == len(lake.log(path))
    assert not any(file.exists() for file in (*old, stranger))
    assert before == rows(path)
    assert len(before) == 400


@pytest.mark.slow
def test_a_file_that_the_log_does_not_name_stays_without_a_time_for_orphans(rewritten, spark):
    path, old, stranger = rewritten(deletedFileRetentionDuration="interval 0 hours")
    before = rows(path)

    (done,) = clean(spark, path, "delta", Keep(versions=NONE), dry_run=False)

    assert (done.error, done.counts) == (None, {"paths": 4})
    assert [file for file in (*old, stranger) if file.exists()] == [stranger]
    assert before == rows(path)


def test_a_clock_that_is_ahead_of_the_store_s_deletes_nothing(rewritten, spark, monkeypatch):
    """Files have the times of the store's clock, and a dry run deletes nothing in any case."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + timedelta(hours=1)

    path, old, stranger = rewritten(deletedFileRetentionDuration="interval 0 hours")
    monkeypatch.setattr(cleaning, "datetime", Ahead)
    keep = Keep(versions=NONE, orphans=NONE)
    before = sorted(Path(path).rglob("*.*"))

    (listed,) = clean(spark, path, "delta", keep, dry_run=True)
    (refused,) = clean(spark, path, "delta", keep, dry_run=False)

    assert listed.counts == {"paths": len(old) + 1}
    assert "ahead of the store's" in refused.error
    assert sorted(Path(path).rglob("*.*")) == before
    assert stranger in before
