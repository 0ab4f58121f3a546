"""Tests that every backend must pass whose format declares ``migrates``."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zadapter
from tests.contract.tables import Tables, more_rows, new_name, sort_rows
from zadapter.backend.contract import MigrationBackend
from zadapter.errors import ConflictError, UnknownTableError, UsageError
from zadapter.migration.context import build_load
from zadapter.report.migration_report import Migration
from zadapter.rewrite.verify import stage_and_check
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Snapshot, Source

SOURCE = Source(format="contract", id="0", version=3, columns="0")


class MigrationContract(Tables):
    """Tests of :class:`~zadapter.backend.contract.MigrationBackend`."""

    def target(self, name: str) -> str:
        """Return the path or identifier of a table that does not exist yet."""
        raise NotImplementedError

    def test_a_pending_table_is_invisible_until_its_commit(
        self, spark: SparkSession, backend: MigrationBackend, table: str
    ) -> None:
        """One commit creates the table with its rows, schema and source."""
        name = self.target(new_name())
        pending = self._pending(backend, table, name)
        change = self._load(spark, backend, backend.snapshot(table), pending)

        assert pending.version is None
        with pytest.raises(UnknownTableError):
            backend.snapshot(name)
        version = backend.commit(change)

        head = backend.snapshot(name)
        assert (head.version, head.source(), head.id) == (version, SOURCE, pending.id)
        assert head.schema.names == ["a", "b"]
        assert self.rows_behind(spark, table) == self.rows_behind(spark, name)

    def test_one_of_two_creations_lands(
        self, spark: SparkSession, backend: MigrationBackend, table: str
    ) -> None:
        """The second one conflicts or raises an error, and the rows are those of the first."""
        name, old = self.target(new_name()), backend.snapshot(table)
        first, second = (
            self._load(spark, backend, old, self._pending(backend, table, name)) for _ in range(2)
        )
        backend.commit(first)

        with pytest.raises(ConflictError):
            backend.commit(second)

        with pytest.raises(UsageError):
            self._pending(backend, table, name)
        assert self.rows_behind(spark, table) == self.rows_behind(spark, name)

    def test_a_created_table_can_be_dropped(
        self, spark: SparkSession, backend: MigrationBackend, table: str
    ) -> None:
        """Unless it has more versions."""
        name, old = self.target(new_name()), backend.snapshot(table)
        backend.commit(self._load(spark, backend, old, self._pending(backend, table, name)))

        backend.drop(backend.snapshot(name))

        with pytest.raises(UnknownTableError):
            backend.snapshot(name)
        self.append(spark, table, more_rows(spark))
        with pytest.raises(ConflictError):
            backend.drop(backend.snapshot(table))

    def test_older_versions_can_be_read(
        self, spark: SparkSession, backend: MigrationBackend, table: str
    ) -> None:
        """An older version has the files and rows that it had."""
        self.append(spark, table, more_rows(spark))
        rows, old = self.rows_behind(spark, table), backend.snapshot(table)
        assert old.version is not None
        self.append(spark, table, more_rows(spark))

        then = backend.at(table, old.version)

        assert backend.files(then)["path"].to_pylist() == backend.files(old)["path"].to_pylist()
        assert rows == sort_rows(backend.read(then, backend.files(then)).select("a", "b").collect())

    def test_migrate_to_and_from_another_format(
        self, spark: SparkSession, backend: MigrationBackend, table: str, tmp_path: Path
    ) -> None:
        """The rows arrive, with a proof; what was appended later follows."""
        self.append(spark, table, more_rows(spark))
        format_, between, name = backend.format.name, str(tmp_path / "t"), self.target(new_name())
        other = "delta" if format_ == "parquet" else "parquet"

        forth = zadapter.migrate(table, to=other, target=between, backend=format_, spark=spark)
        back = zadapter.migrate(between, to=format_, target=name, backend=other, spark=spark)

        assert _is_proven(forth)
        assert _is_proven(back)
        assert self.rows_behind(spark, table) == self.rows_behind(spark, name)
        self.append(spark, table, more_rows(spark))
        for old, new, to in ((table, between, other), (between, name, format_)):
            zadapter.migrate(old, to=to, target=new, follow=True, spark=spark)
        assert self.rows_behind(spark, table) == self.rows_behind(spark, name)

    def test_a_finished_migration_is_proven_again(
        self, spark: SparkSession, backend: MigrationBackend, table: str, tmp_path: Path
    ) -> None:
        """The same call finds the table that it has created, and changes nothing."""
        between, name = str(tmp_path / "t"), self.target(new_name())
        other = "delta" if backend.format.name == "parquet" else "parquet"
        zadapter.migrate(table, to=other, target=between, backend=backend.format.name, spark=spark)

        first, again = (
            zadapter.migrate(between, to=backend.format.name, target=name, spark=spark)
            for _ in range(2)
        )

        assert _is_proven(again)
        assert first.target_version == again.target_version == backend.snapshot(name).version

    def _pending(self, backend: MigrationBackend, table: str, name: str) -> Snapshot:
        definition = backend.accept(backend.define(backend.snapshot(table)))
        return backend.pending(name, definition, SOURCE)

    def _load(
        self, spark: SparkSession, backend: MigrationBackend, old: Snapshot, pending: Snapshot
    ) -> Change:
        """Write all rows of *old* for a pending table, and return the change that creates it."""
        rows = backend.read(old, backend.files(old)).select("a", "b")
        written = backend.write(pending, rows, None, Encoding())
        return build_load(pending, [stage_and_check(backend, pending, written, spark)], SOURCE)


def _is_proven(migration: Migration) -> bool:
    return migration.proof is not None and migration.target_version is not None
