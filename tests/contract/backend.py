"""Tests that every backend must pass."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

import zadapter
from tests.contract.commits import CommitContract
from tests.contract.tables import (
    ROWS,
    new_name,
    one_file_layout,
    rewrite_of,
    rows_of,
    sort_rows,
)
from zadapter.backend.contract import Backend, is_recoverable
from zadapter.base.names import NameParts
from zadapter.errors import UnknownTableError
from zadapter.rewrite.verify import stage_and_check
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.spark.files import discard
from zadapter.spark.footer_reader import metadata, read
from zadapter.table.encoding import Encoding
from zadapter.table.file_stats import column, total
from zadapter.table.snapshot import Exchange, Snapshot
from zadapter.table.staged_files import StagedWrite, new_id

MANY = 20_000


class BackendContract(CommitContract):
    """Tests of :class:`~zadapter.backend.contract.Backend`."""

    def test_files_account_for_every_row(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """The file table counts all live rows, and has each file once, with its partition."""
        files = backend.files(backend.snapshot(table))

        assert len(self.rows_behind(spark, table)) == total(files, "rows")
        assert len(set(files["path"].to_pylist())) == files.num_rows
        assert files["partition"].null_count == 0

    def test_files_are_where_their_uris_say(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Each file exists at its URI, with its size and the row count of its footer."""
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot)

        footers = read(spark, backend.uris(snapshot, files["path"].to_pylist()))

        assert files["size"].to_pylist() == [footer.size for footer in footers]
        assert files["rows"].to_pylist() == [footer.rows for footer in footers]

    def test_bounds_contain_the_rows(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """The stats of every file are those of its values, also of committed files."""
        snapshot = backend.snapshot(table)
        _check_stats(backend, snapshot)
        backend.commit(rewrite_of(spark, backend, snapshot, backend.files(snapshot).slice(0, 2)))

        _check_stats(backend, backend.snapshot(table))

    def test_reading_some_files_gives_their_rows(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """Reads of single files together return all rows."""
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot)
        parts = [backend.read(snapshot, files.slice(i, 1)) for i in range(files.num_rows)]

        rows = [tuple(row) for part in parts for row in part.select("a", "b").collect()]

        assert self.rows_behind(spark, table) == sort_rows(rows)

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

        rows = backend.read_staged(snapshot, *rewrite.staged).select("a", "b").collect()

        assert before == sort_rows(rows)

    @pytest.mark.parametrize("plain", [frozenset({("b",)}), frozenset()])
    def test_rows_are_encoded_as_asked(
        self, spark: SparkSession, backend: Backend, table: str, plain: frozenset[NameParts]
    ) -> None:
        """Row groups have the requested rows in order; a plain column has no dictionary."""
        snapshot = backend.snapshot(table)
        rows = backend.read(snapshot, backend.files(snapshot)).coalesce(1)
        rows = rows.sortWithinPartitions("a", ascending=False)
        encoding = Encoding(row_group=ROWS // 4, plain=plain)

        written = backend.write(snapshot, rows, one_file_layout(), encoding)

        (footer,) = (metadata(spark, uri)[1] for uri in written.paths.values())
        groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
        assert [group.num_rows for group in groups] == [ROWS // 4] * 4
        chunks = [group.column(i) for group in groups for i in range(group.num_columns)]
        dictionaries = {c.has_dictionary_page for c in chunks if c.path_in_schema == "b"}
        assert {not plain} == dictionaries
        keys = [c.statistics for c in chunks if c.path_in_schema == "a"]
        assert [(key.max, key.min) for key in keys] == [
            (999, 750),
            (749, 500),
            (499, 250),
            (249, 0),
        ]

    def test_all_exchanges_are_committed(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """A change may exchange files of several partitions."""
        before = self.rows_behind(spark, table)
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot)
        rows = backend.read(snapshot, files).repartition(2)
        written = backend.write(snapshot, rows, one_file_layout(), Encoding())
        new = stage_and_check(backend, snapshot, written, spark)
        exchanges = (
            Exchange(removed=files.slice(0, 3), added=new.files.slice(0, 1)),
            Exchange(removed=files.slice(3), added=new.files.slice(1)),
        )
        change = rewrite_of(spark, backend, snapshot, files)

        backend.commit(replace(change, exchanges=exchanges, staged=(new,)))

        assert before == self.rows_behind(spark, table)
        assert backend.files(backend.snapshot(table)).num_rows == len(exchanges)

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

    def test_a_write_is_found_by_its_id(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """All of its files and no other ones are listed, and removed; small files lie beside."""
        if not is_recoverable(backend):
            pytest.skip("the format does not find the files of dead processes")
        snapshot, layout = backend.snapshot(table), one_file_layout()
        rows = backend.read(snapshot, backend.files(snapshot)).repartition(2)
        encodings = [Encoding(), Encoding()]
        lost, kept = (backend.write(snapshot, rows, layout, each) for each in encodings)
        writes = [StagedWrite(id=each.write, layout=layout.id) for each in encodings]
        side_files = backend.side_files(snapshot)
        sizes = sorted(footer.size for footer in read(spark, list(lost.paths.values())))

        assert sorted(file.size for file in side_files.list_staged(writes[0])) == sizes
        assert not side_files.is_named(writes[0], snapshot.version, snapshot.version)
        side_files.remove(writes[0])

        assert [len(side_files.list_staged(write)) for write in writes] == [0, len(kept.paths)]
        assert not side_files.list_modification_times("_zadapter/runs")
        side_files.write("_zadapter/runs/note", b"text")
        assert list(side_files.list_modification_times("_zadapter/runs")) == ["note"]
        written = min(file.modified for file in side_files.list_staged(writes[1]))
        assert written <= side_files.list_modification_times("_zadapter/runs")["note"] < 2 * written
        assert side_files.read("_zadapter/runs/note") == b"text"
        side_files.delete("_zadapter/runs/note")
        assert not side_files.list_modification_times("_zadapter/runs")

    def test_older_versions_name_the_files_of_a_write(
        self, spark: SparkSession, backend: Backend, table: str
    ) -> None:
        """A later rewrite has replaced them, but a reader of an older version needs them."""
        if not is_recoverable(backend):
            pytest.skip("the format does not find the files of dead processes")
        encoding, before = Encoding(), backend.snapshot(table)
        backend.commit(rewrite_of(spark, backend, before, backend.files(before), encoding))
        between = backend.snapshot(table)
        backend.commit(rewrite_of(spark, backend, between, backend.files(between)))
        after = backend.snapshot(table)
        write = StagedWrite(id=encoding.write, layout=one_file_layout().id)
        other = StagedWrite(id=new_id(), layout=write.layout)
        side_files, versions = backend.side_files(after), (before.version, after.version)

        assert side_files.is_named(write, *versions)
        assert not side_files.is_named(other, *versions)

    def test_optimize_clusters_all_rows(self, spark: SparkSession, backend: Backend) -> None:
        """All rows stay, files hold ranges of the key, and a second run has nothing to do."""
        table = self.make(spark, new_name(), rows_of(spark, MANY).repartition(4))
        before = self.rows_behind(spark, table)
        options = _optimize_arguments(backend, spark)

        report = zadapter.optimize(table, **options)

        assert (report.rows_added, report.files_removed) == (MANY, 4)
        assert before == self.rows_behind(spark, table)
        files = zadapter.files(table, backend=backend.format.name, spark=spark)
        matching = zadapter.files(table, where="a = 5", backend=backend.format.name, spark=spark)
        assert matching.num_rows == 1 < files.num_rows
        assert zadapter.optimize(table, **options).nothing_to_do

    def test_optimize_takes_up_new_files(self, spark: SparkSession, backend: Backend) -> None:
        """Rows appended since the last run become a run of their own; the others stay."""
        table = self.make(spark, new_name(), rows_of(spark, MANY).repartition(4))
        options = _optimize_arguments(backend, spark)
        first = zadapter.optimize(table, **options)
        self.append(spark, table, rows_of(spark, MANY).where("a % 4 = 0").repartition(2))
        before = self.rows_behind(spark, table)

        second = zadapter.optimize(table, **options)

        assert (first.rows_added, second.rows_added) == (MANY, MANY // 4)
        assert before == self.rows_behind(spark, table)

    def test_no_such_table(self, backend: Backend) -> None:
        """The error for a missing table contains its name."""
        with pytest.raises(UnknownTableError, match="no_such_table"):
            backend.snapshot("no_such_table")


def _optimize_arguments(backend: Backend, spark: SparkSession) -> dict[str, Any]:
    """Return arguments of ``zadapter.optimize`` that cut the table into a few files."""
    size = {"target_file_size": "32KB", "row_groups": 2}
    return {"by": "a", "backend": backend.format.name, "spark": spark, **size}


def _check_stats(backend: Backend, snapshot: Snapshot) -> None:
    """Compare the stats of each file with its rows."""
    files = backend.files(snapshot, [("a",), ("b",)])
    for number in range(files.num_rows):
        file = files.slice(number, 1)
        rows = to_arrow(backend.read(snapshot, file).select("a", "b"))
        for name in ("a", "b"):
            stats = column(file, (name,))
            assert stats is not None
            known, values = stats[0].as_py(), rows[name].drop_null().to_pylist()
            assert known["min"] is None or known["min"] <= min(values)
            assert known["max"] is None or known["max"] >= max(values)
            assert known["nulls"] in {None, rows[name].null_count}
