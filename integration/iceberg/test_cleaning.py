"""A clean-up of an Iceberg table after its rewrite."""

import os
import time
from datetime import timedelta
from pathlib import Path

from zadapter.lake.cleaning import clean
from zadapter.lake.settings import Keep

DAY = timedelta(days=1)


def strangers(lake, name):
    """Files that no snapshot has: one of three days ago, and one of now."""
    found = [Path(lake.folder(name), "data", f"{age}.parquet") for age in ("old", "new")]
    for path in found:
        path.write_bytes(b"left by a writer that has died")
    then = time.time() - 3 * 86_400
    os.utime(found[0], (then, then))
    return found


def test_a_clean_up_leaves_the_rows_and_takes_what_no_snapshot_needs(lake, spark):
    name = lake.make(
        spark.range(400).selectExpr("id * 7 % 400 a", "id b"),
        **{"write.delete.mode": "merge-on-read"},
    )
    lake.sql(f"DELETE FROM {name} WHERE b = 7")
    first = [Path(file.file_path.removeprefix("file:")) for file in lake.files(name)]
    lake.optimize(name)
    before, (old, new) = lake.read(name), strangers(lake, name)
    snapshots = len(lake.history(name))
    keep = Keep(versions=timedelta(0), orphans=2 * DAY)

    listed = clean(spark, name, "iceberg", keep, dry_run=True)
    assert len(lake.history(name)) == snapshots
    assert all(path.exists() for path in (*first, old, new))
    done = clean(spark, name, "iceberg", keep, dry_run=False)

    assert [each.error for each in (*listed, *done)] == [None] * 8
    assert [each.step for each in listed] == [each.step for each in done]
    assert listed[1].counts == {"expired_snapshots": snapshots - 1}
    assert done[1].counts["deleted_data_files_count"] == len(first)
    assert listed[3].counts == done[3].counts == {"orphan_files": 1}
    assert before == lake.read(name)
    assert len(before) == 399
    assert [path for path in (*first, old, new) if path.exists()] == [new]


def test_a_table_whose_files_others_may_need_is_not_cleaned_up(lake, spark):
    """Iceberg would refuse to, and only after a step that commits; nothing has failed, either."""
    name = lake.make(spark.range(9).selectExpr("id a"), **{"gc.enabled": "false"})
    lake.append(name, spark.range(9).selectExpr("id a"))
    old, _ = strangers(lake, name)

    (done,) = clean(
        spark, name, "iceberg", Keep(versions=timedelta(0), orphans=2 * DAY), dry_run=False
    )

    assert (done.step, done.counts, done.error) == ("left out", {}, None)
    assert "gc.enabled = false" in done.note
    assert old.exists()
    assert len(lake.history(name)) == 2


def test_a_table_that_is_not_there_is_a_reason(spark, lake):
    (done,) = clean(spark, "ice.db.none", "iceberg", Keep(versions=DAY), dry_run=False)

    assert done.step == "open"
    assert "not found" in done.error
