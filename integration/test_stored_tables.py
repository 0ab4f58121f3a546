"""Tables that an earlier version has written are read, maintained and migrated by this one.

The archives in ``integration/stored`` were written in November 2026, for each format by::

    rows = spark.sql(f"SELECT {COLUMNS} FROM range(2000)").repartition(3)  # written by Spark
    zadapter.optimize(table, by=["a", "b"], target_file_size="4KB", backend=table_format)
    new = spark.sql(f"SELECT {COLUMNS} FROM range(2000, 2100)").repartition(1)  # then appended

The table of Iceberg names its files by their folder, to which it is therefore unpacked.
"""

import shutil
import tarfile
from pathlib import Path

import pytest

import zadapter

STORED = Path(__file__).parent / "stored"
FOLDER = Path("/tmp/zadapter-stored")
COLUMNS = """
    id, id * 7919 % 3001 AS a, id * 104729 % 2003 AS b,
    date_add(date'2024-01-01', CAST(id % 365 AS INT)) AS day,
    CASE WHEN id % 17 = 0 THEN NULL ELSE concat('user ', id % 50) END AS text
"""
CLUSTERED = {"delta": 9, "iceberg": 6, "parquet": 9}
"""Files that the earlier version has clustered."""


@pytest.fixture
def table(spark, table_format, tmp_path):
    """A table of the earlier version."""
    folder = tmp_path if table_format != "iceberg" else FOLDER
    shutil.rmtree(FOLDER, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    with tarfile.open(STORED / f"{table_format}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    if table_format != "iceberg":
        yield str(folder / table_format)
        return
    metadata = FOLDER / "iceberg" / "db" / "events" / "metadata"
    version = (metadata / "version-hint.text").read_text()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.stored")
    spark.sql(
        "CALL ice.system.register_table('stored.events', "
        f"'file://{metadata}/v{version}.metadata.json')"
    )
    yield "ice.stored.events"
    spark.sql("DROP TABLE ice.stored.events")
    shutil.rmtree(FOLDER)


def rows(spark, table, table_format):
    """Return the rows as zadapter's readers see them, in order."""
    read = zadapter.read(table, backend=table_format, spark=spark)
    return sorted(map(tuple, read.collect()))


@pytest.mark.every_format
def test_a_table_of_an_earlier_version_is_maintained(spark, table, table_format, tmp_path):
    """Its layout is known: what was clustered stays so, and new rows join it without keys."""
    expected = sorted(map(tuple, spark.sql(f"SELECT {COLUMNS} FROM range(2100)").collect()))
    given = {"backend": table_format, "spark": spark}
    assert rows(spark, table, table_format) == expected

    analysis = zadapter.analyze(table, **given)
    report = zadapter.optimize(table, **given)

    assert analysis.by == ("a", "b")
    assert sorted(run.totals.files for run in analysis.runs) == [1, CLUSTERED[table_format]]
    assert report.files_removed <= 1
    assert rows(spark, table, table_format) == expected

    forced = zadapter.optimize(table, force=True, **given)
    to = "parquet" if table_format == "delta" else "delta"
    moved = zadapter.migrate(table, to=to, target=tmp_path / "new", **given)

    assert forced.rows_added == 2_100
    assert forced.share_after < 0.4
    assert rows(spark, table, table_format) == expected
    assert rows(spark, moved.target, to) == expected
