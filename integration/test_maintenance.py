"""Nights of a table: appends, deletes, and a call of ``optimize`` after each."""

from collections import Counter
from datetime import datetime, timedelta, timezone
from threading import Barrier
from typing import ClassVar

import pytest
from pyspark.sql import functions as F

import zadapter
from integration.migration.tables import Lakes
from zadapter.backend import plugins
from zadapter.errors import EngineError

ROWS, NEW, NIGHTS = 12_000, 1_500, 4
LATER = 4
"""Appends to a table that is larger than a job: enough for merges in several of its boxes."""


def sha(name):
    """A text for each number."""
    return F.sha1(F.col(name).cast("string"))


class Nights:
    """What all formats have in common."""

    format: str
    properties: ClassVar = {}
    row_id = "id"
    """Identity of a row to engines."""

    def row_ids(self, lakes, table):
        rows = lakes.load(self.format, table).selectExpr("id", f"{self.row_id} AS row_id")
        return {row.id: row.row_id for row in rows.collect()}

    @pytest.fixture
    def lakes(self, spark, catalog, tmp_path):
        return Lakes(spark, catalog, tmp_path)

    def rows(self, lakes, first, count):
        """Rows whose keys are spread over the whole range."""
        ids = lakes.spark.range(first, first + count)
        return ids.selectExpr("id", "id * 7919 % 10007 AS a", "id * 104729 % 9973 AS b")

    @pytest.mark.slow
    def test_a_table_stays_clustered_night_by_night(self, lakes):
        """New files become runs, runs are merged now and then, and each row is there once."""
        table = lakes.make(self.format, self.rows(lakes, 0, ROWS), files=4, **self.properties)
        asked = {"backend": self.format, "spark": lakes.spark}
        first = zadapter.optimize(table, by=["a", "b"], target_file_size="8KB", **asked)
        reasons, shares, written, count = Counter(), [], 0, ROWS
        for _ in range(NIGHTS):
            lakes.append(self.format, table, self.rows(lakes, count, NEW).repartition(2))
            count += NEW
            report = zadapter.optimize(table, **asked)
            reasons.update(report.plan.reasons)
            shares.append(report.share_after)
            written += report.rows_added

        again = zadapter.plan(table, **asked)
        assert (again.nothing_to_do, again.rows_waiting) == (True, 0)
        assert report.plan.columns == ("a", "b")
        assert "new files" in reasons
        assert max(shares) < 2 * first.share_after
        assert NEW * NIGHTS <= written <= 6 * NEW * NIGHTS
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == list(
            range(count)
        )

    def test_a_table_that_is_overwritten_every_night_keeps_its_keys(self, lakes):
        """No file of the new rows names a layout, but the table does."""
        table = lakes.make(self.format, self.rows(lakes, 0, ROWS), files=2, **self.properties)
        asked = {"backend": self.format, "spark": lakes.spark}
        first = zadapter.optimize(table, by=["a", "b"], target_file_size="32KB", **asked)
        lakes.overwrite(self.format, table, self.rows(lakes, ROWS, ROWS))

        report = zadapter.optimize(table, **asked)

        assert (report.plan.columns, report.rows_added) == (("a", "b"), ROWS)
        assert report.files_added == first.files_added
        assert report.share_after < report.share_before
        left = sorted(row.id for row in lakes.load(self.format, table).collect())
        assert left == list(range(ROWS, 2 * ROWS))

    def test_files_that_are_too_young_are_left_alone(self, lakes):
        """Whoever has written them may still change them."""
        table = lakes.make(self.format, self.rows(lakes, 0, ROWS), files=2, **self.properties)
        lakes.append(self.format, table, self.rows(lakes, ROWS, NEW))
        backend = plugins.load(self.format)(lakes.spark)
        old, between = backend.files(backend.snapshot(table)), datetime.now(timezone.utc)
        lakes.append(self.format, table, self.rows(lakes, ROWS + NEW, NEW))
        asked = {"by": ["a"], "backend": self.format, "spark": lakes.spark}
        snapshot = backend.snapshot(table)
        every = backend.files(snapshot).num_rows

        planned = [
            zadapter.plan(table, min_age=age, **asked).files_rewritten
            for age in (None, "1 hour", timedelta(microseconds=1))
        ]
        assert set(backend.older(snapshot, between).to_pylist()) == set(old["path"].to_pylist())
        assert planned == [every, 0, every]

    def test_old_files_become_larger_and_new_ones_are_left_alone(self, lakes):
        """Each day is a partition: today's is left, and that of last year is fitted once."""
        ages = F.expr("element_at(array(0, 10, 300), int(id % 3) + 1)")
        rows = self.rows(lakes, 0, ROWS).withColumn("text", sha("id"))
        rows = rows.withColumn("day", F.date_sub(F.current_date(), ages))
        table = lakes.make(self.format, rows, "day", files=2, **self.properties)
        asked = {"backend": self.format, "spark": lakes.spark}
        zadapter.optimize(table, by=["a", "b"], target_file_size="16KB", row_groups=2, **asked)
        asked |= {"tiers": {"day": {"hot": "2 days", "warm": timedelta(days=30)}}}
        row_ids = self.row_ids(lakes, table)
        before = zadapter.plan(table, **asked)
        report = zadapter.optimize(table, **asked)
        again = zadapter.plan(table, **asked)
        forgotten = zadapter.plan(table, **asked | {"tiers": None})

        count = before.files_before // 3
        assert set(before.files["tier"].to_pylist()) == {"hot", "warm", "cold"}
        assert before.reasons == {"cold files": before.tiers["cold"]}
        assert count - 2 <= before.tiers["cold"] <= count + 2
        assert 0 < 2 * report.files_added < report.files_removed == before.tiers["cold"]
        assert again.nothing_to_do
        assert again.target_file_size == before.target_file_size
        assert "cold files" not in str(again)
        assert forgotten.nothing_to_do
        assert self.row_ids(lakes, table) == row_ids
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == list(
            range(ROWS)
        )

    @pytest.mark.slow
    def test_a_table_that_was_never_clustered_is_compacted(self, lakes):
        """Small files are joined in the order of their times, and again only if there are many."""
        rows = self.rows(lakes, 0, ROWS).withColumn("p", F.expr("int(a % 2)"))
        table = lakes.make(self.format, rows.where("id < 1"), "p", files=1, **self.properties)
        for first in range(1, ROWS, ROWS // 8):
            part = rows.where(f"id BETWEEN {first} AND {first + ROWS // 8 - 1}")
            lakes.append(self.format, table, part.coalesce(1))
        asked = {"backend": self.format, "spark": lakes.spark, "target_file_size": "24KB"}
        row_ids = self.row_ids(lakes, table)
        before = zadapter.plan(table, **asked)
        report = zadapter.optimize(table, **asked)
        again = zadapter.plan(table, **asked)

        assert report.plan == before
        assert before.columns == ()
        assert set(before.reasons) == {"small files"}
        assert 2 <= report.files_added < report.files_removed <= 18
        assert again.nothing_to_do
        assert "pass by=" in str(report)
        assert self.row_ids(lakes, table) == row_ids
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == list(
            range(ROWS)
        )

    def test_jobs_run_side_by_side(self, lakes):
        """Two write at once, each is committed by itself, and one that fails stops no other."""
        rows = self.rows(lakes, 0, ROWS).withColumn("p", F.expr("int(id % 4)"))
        table = lakes.make(self.format, rows, "p", files=2, **self.properties)
        meeting, calls = Barrier(2, timeout=300), iter(range(9))

        class Meeting(plugins.load(self.format)):
            def write(self, *arguments):
                meeting.wait()
                if next(calls) == 1:
                    raise OSError("the disk is full")
                return super().write(*arguments)

        asked = {"by": ["a"], "target_file_size": "8KB", "max_job_bytes": "40KB"}
        asked |= {"backend": Meeting, "spark": lakes.spark, "max_concurrent_jobs": 2}
        planned = zadapter.plan(table, **asked)
        with pytest.raises(EngineError, match=r"the disk is full.* by this call: \[\d+\]"):
            zadapter.optimize(table, **asked)
        report = zadapter.optimize(table, **asked | {"backend": self.format})

        assert planned.groups == 4
        assert len(report.versions) == report.plan.groups == 3
        assert zadapter.plan(table, **asked).nothing_to_do
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == list(
            range(ROWS)
        )

    @pytest.mark.slow
    def test_a_table_larger_than_a_job_is_kept_in_boxes(self, lakes):
        """Its jobs are small, each commits by itself, and filters read little more for it."""
        first, *later = (
            self.rows(lakes, start, count).withColumn("text", sha("id"))
            for start, count in [(0, 5_000), *((5_000 + n * NEW, NEW) for n in range(LATER))]
        )
        table = lakes.make(self.format, first, files=8, **self.properties)
        asked = {"backend": self.format, "spark": lakes.spark}
        box = {"max_job_bytes": "200KB"}
        keys = {"by": ["a", "b"], "target_file_size": "32KB", "row_groups": 2}
        reports = [zadapter.optimize(table, **keys, **box, **asked)]
        for rows in later:
            lakes.append(self.format, table, rows.repartition(2))
            reports.append(zadapter.optimize(table, **box, **asked))
        reports += [zadapter.optimize(table, **box, **asked) for _ in range(3)]

        fresh = zadapter.plan(table, **keys, **asked, force=True)
        assert reports[-1].nothing_to_do
        assert len(reports[0].versions) > 1
        assert max(len(report.versions) for report in reports[1:]) > 1
        assert "runs merged" in {why for report in reports for why in report.plan.reasons}
        assert fresh.share_before < 1.3 * fresh.share_after
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == list(
            range(5_000 + LATER * NEW)
        )


class Deleting(Nights):
    """Formats with row-level deletes."""

    @pytest.mark.slow
    def test_files_with_many_deleted_rows_are_rewritten(self, lakes):
        """Once; a file with few deleted rows is left alone."""
        table = lakes.make(self.format, self.rows(lakes, 0, ROWS), files=4, **self.properties)
        asked = {"backend": self.format, "spark": lakes.spark}
        zadapter.optimize(table, by=["a"], target_file_size="8KB", **asked)
        named = f"delta.`{table}`" if self.format == "delta" else table
        lakes.sql(f"DELETE FROM {named} WHERE a < 4000 AND id % 5 < 2 OR id % 100 = 7")

        report = zadapter.optimize(table, **asked)

        left = [
            n for n in range(ROWS) if not (n * 7919 % 10007 < 4000 and n % 5 < 2) and n % 100 != 7
        ]
        assert set(report.plan.reasons) == {"deleted rows"}
        assert 0 < report.files_removed < report.plan.files_before / 2
        assert zadapter.optimize(table, **asked).nothing_to_do
        assert sorted(row.id for row in lakes.load(self.format, table).collect()) == left


class TestDelta(Deleting):
    """Delta, with deletion vectors."""

    format = "delta"
    properties: ClassVar = {"enableDeletionVectors": "true", "enableRowTracking": "true"}
    row_id = "_metadata.row_id"


class TestIceberg(Deleting):
    """Iceberg, merge-on-read with deletion vectors."""

    format = "iceberg"
    row_id = "_row_id"
    properties: ClassVar = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.parquet.compression-codec": "snappy",  # files as large as those of other formats
    }


class TestParquet(Nights):
    """Plain Parquet, whose deletes rewrite files themselves."""

    format = "parquet"
