"""Tests that every backend must pass whose format declares ``own_versions``."""

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

import zadapter
from tests.contract.tables import ROWS, Tables, more_rows, sort_rows
from zadapter.backend.contract import VersionedBackend
from zadapter.errors import UnknownTableError, VersionExpiredError


class VersionsContract(Tables):
    """Tests of :class:`~zadapter.backend.contract.VersionedBackend`."""

    def test_every_write_is_a_version(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """The history lists them with what they did, and each can be read by its number."""
        options: dict[str, Any] = {"backend": backend.format.name, "spark": spark}
        before = self.rows_behind(spark, table)
        zadapter.optimize(table, by="a", **options)
        zadapter.append(table, more_rows(spark), **options)
        zadapter.delete(table, f"a < {ROWS}", **options)

        commits = backend.history(table)

        operations = [commit.operation for commit in commits]
        assert operations[:3] == ["delete", "append", "optimize"]
        for commit, rows in zip(commits, (5, ROWS + 5, ROWS), strict=False):
            snapshot = backend.at(table, commit.version)
            assert backend.read(snapshot, backend.files(snapshot)).count() == rows
            assert backend.version_at(table, commit.timestamp) == commit.version
        old = zadapter.read(table, version=commits[2].version, **options)
        assert before == sort_rows(old.select("a", "b").collect())

    def test_an_older_version_can_be_restored(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """As a new version with the rows of the old one."""
        options: dict[str, Any] = {"backend": backend.format.name, "spark": spark}
        zadapter.optimize(table, by="a", **options)
        version, before = backend.snapshot(table).version, self.rows_behind(spark, table)
        assert version is not None
        zadapter.overwrite(table, more_rows(spark), **options)

        restored = backend.restore(table, version)

        assert restored.version == backend.snapshot(table).version
        assert before == self.rows_behind(spark, table)

    def test_results_are_what_the_history_records(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """Whatever a call writes, its result counts the files and rows of its commit."""
        options: dict[str, Any] = {"backend": backend.format.name, "spark": spark}
        first = zadapter.append(table, more_rows(spark), **options)
        assert first.version is not None
        done = [
            first,
            zadapter.delete(table, "a % 2 = 0", **options),
            zadapter.optimize(table, by="a", force=True, **options),
            zadapter.overwrite(table, more_rows(spark), **options),
            zadapter.restore(table, first.version, **options),
        ]

        commits = {commit.version: commit for commit in backend.history(table)}
        names = ("files_added", "files_removed", "rows_added", "rows_removed")
        for result in done:
            assert result.version is not None
            commit = commits[result.version]
            assert [getattr(result, n) for n in names] == [getattr(commit, n) for n in names]
            assert result.seconds["total"] > 0

    def test_vacuum_deletes_only_what_older_versions_need(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """The newest version stays readable; older ones expire; a dry run deletes nothing."""
        options: dict[str, Any] = {"backend": backend.format.name, "spark": spark}
        zadapter.optimize(table, by="a", **options)
        old = backend.snapshot(table).version
        assert old is not None
        zadapter.optimize(table, by="b", **options)
        before = self.rows_behind(spark, table)

        ahead = backend.vacuum(table, timedelta(0), dry_run=True)
        done = backend.vacuum(table, timedelta(0), dry_run=False)

        assert ahead.paths
        assert not ahead.versions
        assert sorted(ahead.paths) == sorted(done.paths)
        assert done.versions
        assert before == self.rows_behind(spark, table)
        with pytest.raises(VersionExpiredError):
            backend.at(table, old)
        with pytest.raises(VersionExpiredError) as raised:
            zadapter.restore(table, old, **options)
        assert (raised.value.committed, raised.value.retryable) == (False, False)

    def test_the_folder_becomes_the_newest_version(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """Engines that list the folder read the rows of the newest version."""
        options: dict[str, Any] = {"backend": backend.format.name, "spark": spark}
        zadapter.append(table, more_rows(spark), **options)
        zadapter.delete(table, "a % 2 = 0", **options)
        before = self.rows_behind(spark, table)

        backend.publish_folder(table, dry_run=False)

        assert before == sort_rows(spark.read.parquet(table).select("a", "b").collect())
        assert before == self.rows_behind(spark, table)

    def test_there_is_no_version_before_the_first(
        self, spark: SparkSession, backend: VersionedBackend, table: str
    ) -> None:
        """Nor one of a later number."""
        zadapter.append(table, more_rows(spark), backend=backend.format.name, spark=spark)
        first = backend.history(table)[-1].timestamp

        with pytest.raises(UnknownTableError):
            backend.version_at(table, first - timedelta(days=1))
        with pytest.raises(UnknownTableError):
            backend.at(table, 99)
