"""Rows that are appended to the old table later are carried to the new one, each of them once."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

import zadapter
from integration.kit.lakes import settings
from integration.migration.hooks import at_commit, lose
from integration.migration.tables import log
from zadapter.errors import ConflictError, UnsupportedError, UsageError

PAIRS = [("delta", "iceberg"), ("iceberg", "parquet"), ("parquet", "delta")]
"""Each format once on each side."""


def numbers(spark, first, rows=10):
    return spark.range(first, first + rows).selectExpr("id", "int(id % 2) AS p")


def versioned(lakes, format_):
    """A table of two commits: a folder of Parquet files has versions since the first append."""
    table = lakes.make(format_, numbers(lakes.spark, 0), "p")
    lakes.append(format_, table, numbers(lakes.spark, 10))
    return table


def ids(lakes, format_, table):
    rows = lakes.read(format_, table)
    return sorted(int(row.split("'")[3]) for row in rows)


def commits(lakes, format_, table):
    """How many commits there are."""
    if format_ == "iceberg":
        return len(lakes.iceberg(table).snapshots())
    if format_ == "delta":
        return len(log(table))
    return len(list(Path(table, "_zadapter", "log").glob("*.json")))


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_appends_are_carried_in_one_commit_each_time(lakes, spark, format_, to):
    """Whatever the number of appends since; and with nothing to carry there is none."""
    table = versioned(lakes, format_)
    target = lakes.migrate(format_, table, to).target
    before = commits(lakes, to, target)

    for made, first in enumerate([20, 40], start=1):
        lakes.append(format_, table, numbers(spark, first))
        lakes.append(format_, table, numbers(spark, first + 10))
        report = lakes.migrate(format_, table, to, target, follow=True)
        assert report.proof.rows == 20
        assert commits(lakes, to, target) == before + made
        assert ids(lakes, to, target) == list(range(first + 20))

    idle = lakes.migrate(format_, table, to, target, follow=True)
    assert (idle.target_version, idle.file_count) == (None, 0)
    assert commits(lakes, to, target) == before + 2


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_rows_that_come_meanwhile_are_carried_later(lakes, spark, monkeypatch, format_, to):
    """The new table has the version that was looked at first; follow brings exactly the rest."""
    table = versioned(lakes, format_)
    at_commit(monkeypatch, to, before=lambda: lakes.append(format_, table, numbers(spark, 20)))

    target = lakes.migrate(format_, table, to).target

    assert ids(lakes, to, target) == list(range(20))
    assert ids(lakes, format_, table) == list(range(30))
    report = lakes.migrate(format_, table, to, target, follow=True)
    assert report.proof.rows == 10
    assert ids(lakes, to, target) == list(range(30))


@pytest.mark.parametrize(
    ("format_", "to", "more"), [*((*pair, 10) for pair in PAIRS), ("delta", "iceberg", 0)]
)
def test_two_that_follow_at_once_double_nothing(lakes, spark, monkeypatch, format_, to, more):
    """One of them carries the rows, maybe more of them; the other one finds that out."""
    table = versioned(lakes, format_)
    target = lakes.migrate(format_, table, to).target
    lakes.append(format_, table, numbers(spark, 20))

    def rival():
        if more:
            lakes.append(format_, table, numbers(spark, 30, more))
        lakes.migrate(format_, table, to, target, follow=True)

    at_commit(monkeypatch, to, before=rival)

    with pytest.raises(ConflictError):
        lakes.migrate(format_, table, to, target, follow=True)

    assert ids(lakes, to, target) == list(range(30 + more))
    assert lakes.migrate(format_, table, to, target, follow=True).target_version is None


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_rows_that_others_add_to_the_new_table_meanwhile_stay(
    lakes, spark, monkeypatch, format_, to
):
    """They are no reason to give up: nobody else has carried rows."""
    table = versioned(lakes, format_)
    target = lakes.migrate(format_, table, to).target
    lakes.append(format_, table, numbers(spark, 20))
    at_commit(monkeypatch, to, before=lambda: lakes.append(to, target, numbers(spark, 1_000, 1)))

    lakes.migrate(format_, table, to, target, follow=True)

    assert ids(lakes, to, target) == [*range(30), 1_000]


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_a_lost_answer_doubles_nothing(lakes, spark, monkeypatch, format_, to):
    """Each commit is found by its id."""
    table, target = versioned(lakes, format_), lakes.name(to)

    at_commit(monkeypatch, to, after=lose)
    assert lakes.migrate(format_, table, to, target).proof.rows == 20
    assert ids(lakes, to, target) == list(range(20))

    lakes.append(format_, table, numbers(spark, 20))
    at_commit(monkeypatch, to, after=lose)
    assert lakes.migrate(format_, table, to, target, follow=True).target_version is not None
    assert ids(lakes, to, target) == list(range(30))


MAINTENANCE = {
    "delta": [
        "OPTIMIZE delta.`{t}`",
        "ALTER TABLE delta.`{t}` SET TBLPROPERTIES ('a.b' = 'c')",
        "VACUUM delta.`{t}`",
        "REORG TABLE delta.`{t}` APPLY (PURGE)",
    ],
    "iceberg": [
        "CALL ice.system.rewrite_data_files('{n}', options => map('rewrite-all', 'true'))",
        "CALL ice.system.rewrite_manifests('{n}')",
        "CALL ice.system.rewrite_position_delete_files('{n}')",
        "ALTER TABLE {t} SET TBLPROPERTIES ('a.b' = 'c')",
    ],
    "parquet": [],
}
"""Statements that change no row, for each format."""


@pytest.mark.parametrize(("format_", "to"), PAIRS)
def test_rewrites_of_the_old_table_are_followed(lakes, spark, format_, to):
    """Whoever rewrites its files, and whether appended rows are among others or alone."""
    table = versioned(lakes, format_)
    if format_ == "delta":  # rows with deletion vectors, which REORG purges
        lakes.sql(
            f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES (delta.enableDeletionVectors=true)"
        )
        lakes.sql(f"DELETE FROM delta.`{table}` WHERE id = 5")
    wanted = [row for row in range(20) if format_ != "delta" or row != 5]
    target = lakes.migrate(format_, table, to).target

    def append(first):
        lakes.append(format_, table, numbers(spark, first))
        wanted.extend(range(first, first + 10))

    def optimize():
        zadapter.optimize(table, by="id", force=True, backend=format_, spark=spark)

    append(20)
    optimize()
    append(30)
    for statement in MAINTENANCE[format_]:
        lakes.sql(statement.format(t=table, n=table.removeprefix("ice.")))
    optimize()
    append(40)

    report = lakes.migrate(format_, table, to, target, follow=True)

    assert report.proof.rows == 30
    assert ids(lakes, to, target) == wanted


@pytest.mark.slow
def test_a_rewrite_whose_old_files_are_gone_is_refused(lakes, spark):
    """Appended rows are then in files with other rows only."""
    table = versioned(lakes, "delta")
    target = lakes.migrate("delta", table, "iceberg").target
    lakes.append("delta", table, numbers(spark, 20))
    zadapter.optimize(table, by="id", backend="delta", spark=spark)
    with settings(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        lakes.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")

    with pytest.raises(UnsupportedError, match=r"was deleted since: .*migrate to another target"):
        lakes.migrate("delta", table, "iceberg", target, follow=True)

    assert ids(lakes, "iceberg", target) == list(range(20))


CHANGES = {
    "delete": "DELETE FROM {t} WHERE id = 3",
    "update": "UPDATE {t} SET id = -1 WHERE id = 3",
    "overwrite": "INSERT OVERWRITE {t} SELECT * FROM {t}",
    "schema": "ALTER TABLE {t} ADD COLUMN c int",
}


@pytest.fixture(scope="module")
def followed(lakes):
    """A table of each format and one that was migrated from it; changes are taken back."""
    known = {}

    @contextmanager
    def pair(format_, to):
        if format_ not in known:
            table = versioned(lakes, format_)
            known[format_] = table, lakes.migrate(format_, table, to).target
        yield known[format_]
        undo(lakes, format_, known[format_][0])

    return pair


def undo(lakes, format_, table):
    if format_ == "delta":
        lakes.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    else:
        then = lakes.iceberg(table).snapshots()[1].snapshot_id
        name = table.removeprefix("ice.")
        lakes.sql(f"CALL ice.system.rollback_to_snapshot('{name}', {then})")


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "delta")])
def test_more_than_appends_is_refused(lakes, followed, format_, to, change):
    """The new table stays as it is, even if rows were appended, too."""
    with followed(format_, to) as (table, target):
        name = f"delta.`{table}`" if format_ == "delta" else table
        lakes.sql(CHANGES[change].format(t=name))
        before = commits(lakes, to, target)

        with pytest.raises(UnsupportedError, match="migrate to another target"):
            lakes.migrate(format_, table, to, target, follow=True)

        assert commits(lakes, to, target) == before
        assert ids(lakes, to, target) == list(range(20))


@pytest.mark.slow
def test_changes_of_a_folder_are_refused(lakes, spark):
    """Its log tells as well."""
    table = versioned(lakes, "parquet")
    target = lakes.migrate("parquet", table, "delta").target
    zadapter.delete(table, "id = 3", backend="parquet", spark=spark)

    with pytest.raises(UnsupportedError, match="changes other than appends"):
        lakes.migrate("parquet", table, "delta", target, follow=True)

    assert ids(lakes, "delta", target) == list(range(20))


def test_a_folder_that_was_no_table_cannot_be_followed(lakes, spark):
    """Nobody knows which of its files were there."""
    table = lakes.make("parquet", numbers(spark, 0))
    target = lakes.migrate("parquet", table, "delta").target

    with pytest.raises(UnsupportedError, match="had no versions"):
        lakes.migrate("parquet", table, "delta", target, follow=True)


@pytest.mark.slow
def test_only_what_was_migrated_from_it_follows_a_table(lakes, spark):
    """No table at all, one of its own, or one that was migrated from another table."""
    table, other = versioned(lakes, "delta"), versioned(lakes, "delta")
    foreign = lakes.make("iceberg", numbers(spark, 0), "p")
    of_other = lakes.migrate("delta", other, "iceberg").target

    for target in (lakes.name("iceberg"), foreign, of_other):
        with pytest.raises(UsageError, match="was not migrated from"):
            lakes.migrate("delta", table, "iceberg", target, follow=True)


@pytest.mark.slow
def test_what_would_follow_is_told(lakes, spark):
    """And nothing is written."""
    table = versioned(lakes, "delta")
    target = lakes.migrate("delta", table, "parquet").target
    lakes.append("delta", table, numbers(spark, 20))

    report = lakes.migrate("delta", table, "parquet", target, follow=True, dry_run=True)

    assert (report.target_version, report.proof) == (None, None)
    assert report.file_count > 0
    entry = max(Path(target, "_zadapter", "log").glob("*.json")).read_text().splitlines()[0]
    assert json.loads(entry)["rows"] == 20
