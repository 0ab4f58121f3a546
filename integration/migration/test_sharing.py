"""M12: two tables have the same files, and no clean-up of the one takes them from the other."""

from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

import zadapter
from integration.migration.tables import settings, texts
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
    assert report.notes
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
        with pytest.raises(UnsupportedError, match="has the same files"):
            zadapter.vacuum(
                table, older_than=timedelta(0), dry_run=False, backend="parquet", spark=lakes.spark
            )
    else:
        name = table.removeprefix("ice.")
        call = f"(table => '{name}', older_than => {NOW})"
        for procedure in ("expire_snapshots", "remove_orphan_files"):
            with refused_or_harmless():
                lakes.sql(f"CALL ice.system.{procedure}{call}")


@pytest.mark.parametrize("shared", PAIRS, indirect=True)
def test_m12_a_clean_up_of_the_old_table_leaves_the_new_one_whole(lakes, shared):
    """Its files have gone from the old one's log, and are there."""
    format_, table, to, target, rows = shared
    rewrite(lakes, format_, table)

    clean(lakes, format_, table)

    assert lakes.read(to, target) == rows
    assert texts(lakes.load(to, target).toArrow()) == rows
    assert lakes.read(format_, table) == rows


@pytest.mark.parametrize("shared", PAIRS, indirect=True)
def test_m12_a_clean_up_of_the_new_table_leaves_the_old_one_whole(lakes, shared):
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


def test_m12_without_protection_the_clean_up_would_take_them(lakes, spark):
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
