"""Tests of the backend contract, for backends of this project and of third parties.

Subclass :class:`BackendContract` in a pytest module. Define a ``backend`` fixture (the backend
under test on a running session) and the methods ``make`` (create a table), ``append`` and
``rows_behind``. The methods must not use zadapter.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.commit import Backoff, publish
from zadapter.backend.contract import Backend
from zadapter.base.names import Parts
from zadapter.errors import ConflictError, UnknownTableError
from zadapter.layout.build import fit
from zadapter.layout.layout import Layout, Request
from zadapter.rewrite.verify import staged
from zadapter.spark.files import discard
from zadapter.spark.footers import metadata, read
from zadapter.table.encoding import Encoding
from zadapter.table.file_stats import column, total
from zadapter.table.snapshot import Change, Exchange, Operation, Snapshot

ROWS = 1_000
_numbers = count()


def one_file_layout() -> Layout:
    """Return a layout with all rows in one file, in the order of column ``a``."""
    request = Request(columns=(("a",),), weights=(1.0,), target_file_size=1 << 20, row_groups=2)
    sample = pa.array(range(0, ROWS, 10), pa.int64())
    return fit(request, [sample], [()], np.zeros(len(sample), np.int64), [1])


def rewrite_of(
    spark: SparkSession, backend: Backend, snapshot: Snapshot, files: pa.Table
) -> Change:
    """Stage the rows of *files* as one file, and return the rewrite that commits it."""
    layout = one_file_layout()
    rows = backend.read(snapshot, files).coalesce(1)
    made = staged(backend, snapshot, backend.write(snapshot, rows, layout, Encoding()), spark)
    exchange = Exchange(removed=files, added=made.files)
    return Change(
        base=snapshot,
        operation=Operation.OPTIMIZE,
        exchanges=(exchange,),
        staged=(made,),
        layouts=(layout,),
    )


class BackendContract:
    """Tests that every backend must pass."""

    def make(self, spark: SparkSession, name: str, rows: DataFrame) -> str:
        """Create a table with one file per partition of *rows*; return its path or identifier."""
        raise NotImplementedError

    def append(self, spark: SparkSession, table: str, rows: DataFrame) -> None:
        """Append *rows* to *table* without zadapter."""
        raise NotImplementedError

    def rows_behind(self, spark: SparkSession, table: str) -> Sequence[Any]:
        """Return all rows of *table*, sorted, without zadapter."""
        raise NotImplementedError

    @pytest.fixture
    def table(self, spark: SparkSession) -> str:
        """Create a table of 1 000 rows in four files, with columns a (bigint) and b (string)."""
        rows = spark.range(ROWS).selectExpr("id a", "nullif(concat('v', id % 7), 'v3') b")
        return self.make(spark, f"contract{next(_numbers)}", rows.repartition(4))

    def test_files_account_for_every_row(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """The file table counts all live rows, and contains each file once."""
        files = backend.files(backend.snapshot(table))

        assert len(self.rows_behind(spark, table)) == total(files, "rows")
        assert len(set(files["path"].to_pylist())) == files.num_rows

    def test_files_are_where_their_uris_say(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Each file exists at its URI, with its size and the row count of its footer."""
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot)

        found = read(spark, backend.uris(snapshot, files["path"].to_pylist()))

        assert files["size"].to_pylist() == [footer.size for footer in found]
        assert files["rows"].to_pylist() == [footer.rows for footer in found]

    def test_bounds_contain_the_rows(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """The bounds of every file contain all of its values."""
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot, [("a",), ("b",)])

        for number in range(files.num_rows):
            one = files.slice(number, 1)
            held = backend.read(snapshot, one).select("a", "b").toArrow()
            for name in ("a", "b"):
                stats = column(one, (name,))
                assert stats is not None
                _assert_within(held[name].drop_null().to_pylist(), stats[0].as_py())

    def test_reading_some_files_gives_their_rows(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Reads of single files together return all rows."""
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot)
        parts = [backend.read(snapshot, files.slice(i, 1)) for i in range(files.num_rows)]

        found = [tuple(row) for part in parts for row in part.select("a", "b").collect()]

        assert self.rows_behind(spark, table) == _sorted(found)

    def test_staged_files_are_invisible(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Staged files are visible only after the commit, with the same rows."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))

        assert before == self.rows_behind(spark, table)
        version = backend.commit(rewrite)

        assert before == self.rows_behind(spark, table)
        assert version == backend.snapshot(table).version
        assert backend.files(backend.snapshot(table)).num_rows == 1

    def test_staged_files_are_read_before_the_commit(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Staged files hold the rows that were read."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))

        found = backend.read_staged(snapshot, *rewrite.staged).select("a", "b").collect()

        assert before == _sorted(tuple(row) for row in found)

    @pytest.mark.parametrize("plain", [frozenset({("b",)}), frozenset()])
    def test_rows_are_encoded_as_asked(
        self, spark: SparkSession, backend: Backend, table: str, plain: frozenset[Parts]
    ) -> None:
        """Row groups have the requested rows, and columns a dictionary unless they are plain."""
        snapshot = backend.snapshot(table)
        rows = backend.read(snapshot, backend.files(snapshot)).coalesce(1)
        encoding = Encoding(row_group=ROWS // 4, plain=plain)

        written = backend.write(snapshot, rows, one_file_layout(), encoding)

        (footer,) = (metadata(spark, uri)[1] for uri in written.paths.values())
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        assert [group.num_rows for group in groups] == [ROWS // 4] * 4
        chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
        dictionaries = {c.has_dictionary_page for c in chunks if c.path_in_schema == "b"}
        assert {not plain} == dictionaries

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

    def test_the_second_writer_loses(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Exactly one of two rewrites of the same files is committed."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        first = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        second = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        backend.commit(first)

        with pytest.raises(ConflictError):
            backend.commit(second)

        assert before == self.rows_behind(spark, table)

    def test_an_append_in_between_is_kept(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Rows appended after the snapshot are kept, and the rewrite lands without a new write."""
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))
        self.append(spark, table, spark.range(ROWS, ROWS + 5).selectExpr("id a", "'new' b"))
        before = self.rows_behind(spark, table)

        landed = publish(backend, rewrite, Backoff(initial=0.0))

        assert landed.stale == ()
        assert before == self.rows_behind(spark, table)

    def test_discarding_leaves_the_table_alone(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Staged files can be discarded, even twice."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        rewrite = rewrite_of(spark, backend, snapshot, backend.files(snapshot))

        discard(spark, *rewrite.staged)
        discard(spark, *rewrite.staged)

        assert before == self.rows_behind(spark, table)

    def test_no_such_table(self, backend: Backend) -> None:
        """The error for a missing table contains its name."""
        with pytest.raises(UnknownTableError, match="no_such_table"):
            backend.snapshot("no_such_table")


def _assert_within(values: Iterable[Any], stats: dict[str, Any]) -> None:
    held = list(values)
    assert stats["min"] is None or stats["min"] <= min(held)
    assert stats["max"] is None or stats["max"] >= max(held)


def _sorted(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row))
