"""Tests of the commits of every backend."""

import pytest
from pyspark.sql import SparkSession

from tests.contract.tables import Tables, more_rows, rewrite_of
from zadapter.backend.commit import commit_change
from zadapter.backend.contract import Backend
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.errors import NOT_COMMITTED, ConflictError, VerificationError
from zadapter.layout.layout import Layout
from zadapter.layout.store import Layouts
from zadapter.spark.files import discard
from zadapter.table.snapshot import Change


class CommitContract(Tables):
    """Tests of :meth:`~zadapter.backend.contract.Backend.commit`."""

    def test_missing_files_are_not_committed(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """A clean-up of another program may have deleted them."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        discard(spark, *rewrite.staged)

        with pytest.raises((VerificationError, ConflictError)):
            backend.commit(rewrite)

        assert before == self.rows_behind(spark, table)

    def test_a_commit_can_be_found_again(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Later snapshots contain the commit's id and its layout."""
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        backend.commit(rewrite)

        head = backend.snapshot(table, since=snapshot)

        assert frozenset({rewrite.id}) == head.applied
        assert backend.snapshot(table, since=head).applied == frozenset()
        kept = head.layouts.get(rewrite.layouts[0].id)
        assert kept is not None
        assert kept.to_json() == rewrite.layouts[0].to_json()
        assert backend.files(head)["layout"].to_pylist() == [rewrite.layouts[0].id]

    def test_an_exception_after_the_commit_deletes_nothing(
        self, spark: SparkSession, backend: Backend, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An exception that states no outcome does not hide a commit that landed."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        commit = backend.commit

        def broken(change: Change) -> int:
            raise ConnectionResetError(f"no answer to version {commit(change)}")

        monkeypatch.setattr(backend, "commit", broken)
        landed = commit_change(backend, rewrite, Attempts(Backoff(initial=0.0)))

        assert (landed.version, landed.attempts, landed.doubtful) == (None, 1, True)
        assert before == self.rows_behind(spark, table)
        assert backend.files(backend.snapshot(table)).num_rows == 1

    def test_a_commit_that_is_not_sent_says_so(
        self, spark: SparkSession, backend: Backend, table: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failure to store the layout comes before the commit, so the files can be deleted."""
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))

        def broken(layouts: Layouts, layout: Layout) -> None:
            raise ConnectionResetError(f"{layouts} cannot store {layout.id}")

        monkeypatch.setattr(Layouts, "keep", broken)
        with pytest.raises(NOT_COMMITTED) as raised:
            commit_change(backend, rewrite, Attempts(Backoff(initial=0.0)))

        assert raised.value.committed is False
        assert backend.snapshot(table).version == snapshot.version

    def test_the_second_writer_loses(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Exactly one of two rewrites of the same files is committed."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        first = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        second = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        backend.commit(first)

        with pytest.raises(ConflictError) as raised:
            backend.commit(second)

        assert (raised.value.committed, raised.value.retryable) == (False, True)
        assert before == self.rows_behind(spark, table)

    def test_an_append_in_between_is_kept(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Rows appended after the snapshot are kept, and the rewrite lands without a new write."""
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        self.append(spark, table, more_rows(spark))
        before = self.rows_behind(spark, table)

        landed = commit_change(backend, rewrite, Attempts(Backoff(initial=0.0)))

        assert landed.stale == ()
        assert before == self.rows_behind(spark, table)
