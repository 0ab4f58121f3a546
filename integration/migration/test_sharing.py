"""Two tables have the same files, and no clean-up of the one takes them from the other."""

from contextlib import contextmanager, suppress
from datetime import timedelta
from shutil import copytree
from urllib.parse import urlparse

import pytest

import zadapter
from integration.kit.lakes import settings
from integration.migration.tables import texts
from tests.kit.variants import slow
from zadapter.errors import UnsupportedError

PAIRS = [("delta", "iceberg"), ("iceberg", "delta"), ("parquet", "delta"), ("parquet", "iceberg")]
NOW = "TIMESTAMP '2100-01-01 00:00:00'"
AT_ONCE = {"deletedFileRetentionDuration": "interval 0 hours"}
"""Else VACUUM would keep files that have just gone, and prove nothing."""


@pytest.fixture
def shared(lakes, spark, request):
    """Two tables with the same files, and their rows."""
    format_, to = request.param
    rows = spark.range(100).selectExpr("id", "id % 3 AS p")
    said = AT_ONCE if format_ == "delta" else {}
    table = lakes.make(format_, rows, "p", files=4, **said)
    report = lakes.migrate(format_, table, to, mode="in_place")
    assert "maintain leaves out the clean-up" in " ".join(report.notes)
    return format_, table, to, report.target, texts(rows.toArrow())


def rewrite(lakes, format_, table):
    """Put new files in place of all the old ones."""
    zadapter.optimize(table, by="id", backend=format_, spark=lakes.spark, force=True)


@contextmanager
def refused_or_harmless():
    """Formats refuse a clean-up by errors of their own, or leave the files."""
    with suppress(Exception):
        yield


def clean(lakes, format_, table):
    """All clean-ups that the format has."""
    if format_ == "delta":
        lakes.sql(f"VACUUM delta.`{table}`")
        with refused_or_harmless():  # a retention that is shorter than the table's
            lakes.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    elif format_ == "parquet":
        with pytest.raises(UnsupportedError, match="shares its files"):
            zadapter.vacuum(
                table, older_than=timedelta(0), dry_run=False, backend="parquet", spark=lakes.spark
            )
    else:
        name = table.removeprefix("ice.")
        call = f"(table => '{name}', older_than => {NOW})"
        for procedure in ("expire_snapshots", "remove_orphan_files"):
            with refused_or_harmless():
                lakes.sql(f"CALL ice.system.{procedure}{call}")


@pytest.mark.parametrize("shared", [PAIRS[0], *slow(*PAIRS[1:])], indirect=True)
def test_a_clean_up_of_the_old_table_leaves_the_new_one_whole(lakes, shared):
    """Its files have gone from the old one's log, and are there."""
    format_, table, to, target, rows = shared
    rewrite(lakes, format_, table)

    clean(lakes, format_, table)

    assert lakes.read(to, target) == rows
    assert texts(lakes.load(to, target).toArrow()) == rows
    assert lakes.read(format_, table) == rows


@pytest.mark.parametrize("shared", [PAIRS[0], *slow(*PAIRS[1:])], indirect=True)
def test_a_clean_up_of_the_new_table_leaves_the_old_one_whole(lakes, shared):
    """Even if it is dropped."""
    format_, table, to, target, rows = shared
    name = target
    if to == "delta":
        name = f"delta.`{target}`"
        said = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
        lakes.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({said})")
    rewrite(lakes, to, target)
    lakes.sql(f"DELETE FROM {name} WHERE p = 1")

    with settings(lakes.spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        clean(lakes, to, target)
    assert len(lakes.read(to, target)) == 67
    if to == "iceberg":
        with refused_or_harmless():
            lakes.sql(f"DROP TABLE {target} PURGE")

    assert lakes.read(format_, table) == rows
    assert texts(lakes.load(format_, table).toArrow()) == rows


@pytest.mark.parametrize("shared", [PAIRS[0], *slow(*PAIRS[1:])], indirect=True)
def test_nightly_clean_ups_are_left_out_with_a_remark(lakes, shared):
    """Nothing has failed, and the next nights say the same; a dry run does, too."""
    format_, table, to, target, rows = shared
    protected = {table, target} if to == "iceberg" else {table}
    entries = [{"match": table, "format": format_}, {"match": target, "format": to}]
    keep = {"versions": "7d", "orphans": "7d"}
    lake = {"defaults": {"by": ["id"], "keep": keep}, "tables": entries}
    rewrite(lakes, format_, table)

    for dry_run in (True, False, False):
        report = zadapter.maintain(lake, dry_run=dry_run, spark=lakes.spark)

        assert report.failed == ()
        assert len(report.lines) == 2
        for line in report.lines:
            is_left_out = "clean-up left out: " in (line.remark or "")
            assert (line.error, is_left_out) == (None, line.table in protected)
        assert {step.step for table in protected for step in report.cleaned[table]} == {"left out"}
    assert lakes.read(to, target) == rows
    assert lakes.read(format_, table) == rows


@pytest.mark.slow
def test_without_protection_the_clean_up_would_take_them(lakes, spark):
    """What the tests above are about: this is what VACUUM does otherwise."""
    table = lakes.make("delta", spark.range(100), files=4, **AT_ONCE)
    report = lakes.migrate("delta", table, "iceberg", mode="in_place")
    said = "'delta.deletedFileRetentionDuration' = 'interval 0 hours'"
    lakes.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({said})")
    rewrite(lakes, "delta", table)

    with settings(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        lakes.sql(f"VACUUM delta.`{table}`")

    with pytest.raises(FileNotFoundError):
        lakes.read("iceberg", report.target)


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), PAIRS[:2])
def test_writes_to_the_new_table_stay_its_own(lakes, spark, format_, to):
    """Rows that are added, changed or deleted there are not in the old one."""
    table = lakes.make(format_, spark.range(100))
    target = lakes.migrate(format_, table, to, mode="in_place").target
    name = f"delta.`{target}`" if to == "delta" else target

    lakes.append(to, target, spark.range(100, 110))
    lakes.sql(f"DELETE FROM {name} WHERE id < 50")

    found = sorted(row.id for row in lakes.load(to, target).collect())
    assert found == list(range(50, 110))
    assert len(lakes.read(format_, table)) == 100


@pytest.mark.slow
def test_a_drop_with_purge_is_refused_at_once(lakes, spark):
    """In the user's own session, whose catalog holds on to tables for a while."""
    table = lakes.make("iceberg", spark.range(20))
    assert spark.table(table).count() == 20
    target = lakes.migrate("iceberg", table, "delta", mode="in_place").target

    with refused_or_harmless():
        lakes.sql(f"DROP TABLE {table} PURGE")

    assert lakes.load("delta", target).count() == 20


@pytest.mark.slow
def test_rows_that_were_carried_are_seen_at_once(lakes, spark):
    """Without a REFRESH of the user's."""
    table = lakes.make("delta", spark.range(20))
    target = lakes.migrate("delta", table, "iceberg").target
    assert spark.table(target).count() == 20
    lakes.append("delta", table, spark.range(5))

    lakes.migrate("delta", table, "iceberg", target, follow=True)

    assert spark.table(target).count() == 25


@pytest.mark.slow
def test_what_drops_them_all_the_same_is_said(lakes, spark):
    """No property keeps Spark from deleting the folder of a table that it manages."""
    spark.sql("CREATE TABLE managed_one USING delta AS SELECT id FROM range(5)")

    report = lakes.migrate("delta", "managed_one", "iceberg", mode="in_place")

    assert "DROP TABLE still deletes them" in report.notes[0]
    spark.sql("DROP TABLE managed_one")


def test_files_of_a_third_table_stay_where_they_are(lakes, spark):
    """A clone has the files of another table, which may delete them."""
    table, clone = lakes.make("delta", spark.range(20)), lakes.name("delta")
    lakes.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{table}`")

    with pytest.raises(UnsupportedError, match="outside the table's folder"):
        lakes.migrate("delta", clone, "iceberg", mode="in_place")

    report = lakes.migrate("delta", clone, "iceberg", mode="auto")
    assert report.mode.value == "copy"
    assert "pass mode" not in str(report)


@pytest.mark.parametrize(
    ("to", "mode"), [("delta", "in_place"), ("delta", "copy"), ("parquet", "copy")]
)
def test_a_second_call_says_what_the_first_has_done(lakes, spark, to, mode):
    table = lakes.make("iceberg", spark.range(20))
    target = lakes.migrate("iceberg", table, to, mode=mode).target

    again = lakes.migrate("iceberg", table, to, target)
    planned = lakes.migrate("iceberg", table, to, target, dry_run=True)

    assert (again.mode.value, again.why) == (mode, "created by an earlier call")
    assert again.proof.rows == 20
    assert (planned.proof, planned.target_version) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Id", "1a", "a-b", "é"])
def test_names_that_files_have_otherwise_are_copied(lakes, name):
    """Iceberg's writer changes some names in files."""
    table = lakes.name("iceberg")
    lakes.sql(f"CREATE TABLE {table} (`{name}` bigint) USING iceberg")
    lakes.sql(f"INSERT INTO {table} VALUES (1), (2)")

    report = lakes.migrate("iceberg", table, "delta", mode="auto")

    assert report.proof.rows == 2
    assert report.mode.value == ("in_place" if name in {"Id", "é"} else "copy")


def test_files_with_ids_of_another_table_are_copied(lakes):
    """Iceberg would read its own columns by them."""
    first = lakes.name("iceberg")
    lakes.sql(f"CREATE TABLE {first} (z int, a int, b int) USING iceberg")
    lakes.sql(f"ALTER TABLE {first} DROP COLUMN z")
    lakes.sql(f"INSERT INTO {first} VALUES (1, 10), (2, 20)")
    (file, *_) = lakes.iceberg(first).scan().plan_files()
    files = lakes.name("parquet")
    copytree(urlparse(file.file.file_path).path.rpartition("/")[0], files)

    report = lakes.migrate("parquet", files, "iceberg", mode="auto")

    assert report.mode.value == "copy"
    assert report.proof.rows == 2


def test_columns_that_iceberg_has_itself_are_refused(lakes, spark):
    table = lakes.make("delta", spark.range(3).selectExpr("id AS _pos"))

    with pytest.raises(UnsupportedError, match="its name is reserved by Iceberg"):
        lakes.migrate("delta", table, "iceberg")
