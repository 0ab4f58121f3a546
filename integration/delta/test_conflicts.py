"""Other writers between plan and commit (reliability: D01-D12, D23, D28, D41, D46)."""

import shutil
from pathlib import Path

import deltalake
import pytest

from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter import Backoff
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    StaleRewriteError,
    UnknownOutcomeError,
    VerificationError,
)
from zadapter_delta import DeltaBackend

NOW = Backoff(initial=0.0, attempts=4)
UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@pytest.fixture
def table(lake, spark):
    rows = spark.range(2_000).selectExpr("id a", "id % 3 p", "uuid() s")
    return lake.make(rows, partition_by=["p"], files=2, enableDeletionVectors="true")


def test_an_append_lands_beside_the_rewrite(lake, spark, table, between):
    """An append in between is kept, and the rewrite is committed with snapshot isolation."""
    new = spark.range(9_000, 9_010).selectExpr("id a", "id % 3 p", "'new' s")
    backend = between(lambda: new.write.format("delta").mode("append").save(table))
    before = lake.load(table).count()

    report = lake.optimize(table, backend=backend, backoff=NOW)

    assert report.stale == ()
    assert lake.load(table).count() == before + 10
    assert lake.log(table)[-1][0]["commitInfo"]["isolationLevel"] == "SnapshotIsolation"


@pytest.mark.parametrize("vectors", ["true", *slow("false")])
def test_a_delete_makes_its_partition_give_up(lake, table, between, vectors):
    """Without a rebase, the partition with deleted rows is dropped, and others are rewritten."""
    lake.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES (delta.enableDeletionVectors = {vectors})"
    )
    backend = between(lambda: lake.sql(f"DELETE FROM delta.`{table}` WHERE p = 1 AND a < 100"))
    before = set(lake.rows(table))

    report = lake.optimize(table, backend=backend, backoff=NOW, max_rebase=0)

    assert len(report.stale) == 1
    assert report.rows_added == lake.load(table).where("p <> 1").count()
    assert set(lake.rows(table)) < before
    assert lake.load(table).where("p = 1 AND a < 100").count() == 0
    on_disk = {p.name for p in Path(table).rglob("*.parquet")}
    named = {Path(a["add"]["path"]).name for v in lake.log(table) for a in v if "add" in a}
    assert on_disk == named  # what was staged for the stale partition is gone again


def test_a_rival_on_every_file_wins(lake, table, between):
    """Where all files were rewritten by another, the rewrite is stale and nothing is doubled."""
    rival = lambda: lake.optimize(table, backend="delta", curve="linear")  # noqa: E731
    before = lake.rows(table)

    with pytest.raises(StaleRewriteError, match="was changed by another writer"):
        lake.optimize(table, backend=between(rival), backoff=NOW)

    assert before == lake.rows(table)


def test_a_new_column_stops_the_rewrite(lake, table, between):
    """A changed schema makes the rewrite stale, so no version mixes two schemas."""
    add = lambda: lake.sql(f"ALTER TABLE delta.`{table}` ADD COLUMN (x int)")  # noqa: E731
    before = lake.load(table).count()

    with pytest.raises(StaleRewriteError):
        lake.optimize(table, backend=between(add), backoff=NOW)

    assert lake.load(table).count() == before
    assert "x" in lake.load(table).columns


def test_a_lost_answer_counts_as_committed(lake, table):
    """A commit that landed although its answer got lost is found in the history, not repeated."""

    class Lossy(DeltaBackend):
        def commit(self, rewrite):
            super().commit(rewrite)
            raise UnknownOutcomeError(rewrite.base.table, rewrite.id)

    before = lake.rows(table)

    report = lake.optimize(table, backend=Lossy, backoff=NOW)

    assert report.versions == (None,)
    assert len(lake.log(table)) == 2
    assert before == lake.rows(table)


def test_an_unknown_outcome_deletes_nothing(lake, table):
    """Where no history can tell, the staged files stay and the error names the commit."""

    class Silent(DeltaBackend):
        def commit(self, rewrite):
            raise UnknownOutcomeError(rewrite.base.table, rewrite.id)

    before, files = lake.rows(table), set(Path(table).rglob("*.parquet"))

    with pytest.raises(UnknownOutcomeError, match="the outcome of commit"):
        lake.optimize(table, backend=Silent, backoff=Backoff(attempts=2, initial=0.0))

    assert before == lake.rows(table)
    assert set(Path(table).rglob("*.parquet")) > files


@pytest.mark.parametrize("attempts", [2, *slow(1)])
def test_a_vacuum_right_before_an_attempt_stops_it(lake, table, attempts):
    """Files were verified, and taken by somebody who vacuums without patience."""
    before = lake.rows(table)

    class Lost(DeltaBackend):
        tried = 0

        def commit(self, rewrite):
            Lost.tried += 1
            if Lost.tried < attempts:
                raise ConflictError("the race is lost")
            with settings(lake.spark, UNCHECKED):
                lake.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
            return super().commit(rewrite)

    with pytest.raises(VerificationError, match="is missing; nothing was"):
        lake.optimize(table, backend=Lost, backoff=NOW)

    assert before == lake.rows(table)
    assert Lost.tried == attempts


@pytest.mark.parametrize(("old", "new"), [(2, 0), (0, 2), (1, 1)])
@pytest.mark.parametrize("whole", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_table_that_was_made_again_gets_nothing(lake, spark, between, old, new, whole):
    """Be its log shorter, longer or as long, and what was written still in the folder or not."""

    def write(folder, versions):
        for _ in range(versions + 1):
            rows = spark.range(100).selectExpr("id a", "id b").repartition(2)
            rows.write.format("delta").mode("append").save(folder)

    def again():
        gone = Path(table) if whole else Path(table, "_delta_log")
        shutil.rmtree(gone)
        write(table, new)

    table = str(lake.folder / "again")
    write(table, old)

    with pytest.raises(ReplacedTableError):
        lake.optimize(table, backend=between(again), backoff=NOW)

    assert len(lake.log(table)) == new + 1
    assert deltalake.DeltaTable(table).to_pyarrow_table().num_rows == 100 * (new + 1)


def _losing_a_file(base):
    class Vacuumed(base):
        def write(self, *arguments):
            written = super().write(*arguments)
            Path(next(iter(written.paths.values())).removeprefix("file:")).unlink()
            return written

    return Vacuumed


def _dropping_a_row(base):
    class Lossy(base):
        def read(self, snapshot, files):
            return super().read(snapshot, files).where("a <> 7")

    return Lossy


@pytest.mark.parametrize("fault", [_losing_a_file, _dropping_a_row])
def test_a_wrong_rewrite_is_not_committed(lake, table, fault):
    """A staged file or a row that is gone stops the commit; what was staged is removed."""
    before, files = lake.rows(table), set(Path(table).rglob("*.parquet"))

    with pytest.raises(VerificationError):
        lake.optimize(table, backend=fault(DeltaBackend))

    assert before == lake.rows(table)
    assert len(lake.log(table)) == 1
    assert files == set(Path(table).rglob("*.parquet"))
