"""Rows that are deleted, but still lie in files, do not come back."""

from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from integration.migration.tables import FORMATS
from zadapter.errors import UnsupportedError
from zadapter.report.migration_report import Mode

LIVE = [n for n in range(200) if n % 10]


def delta_vectors(lakes, rows):
    """Delta: deletion vectors."""
    table = lakes.make("delta", rows, enableDeletionVectors="true")
    lakes.sql(f"DELETE FROM delta.`{table}` WHERE a % 10 = 0")
    assert any(Path(table).glob("deletion_vector_*.bin"))
    return "delta", table


def iceberg_positions(lakes, rows, version="2"):
    """Iceberg: files of positions, or vectors in version 3."""
    said = {"format-version": version, "write.delete.mode": "merge-on-read"}
    table = lakes.make("iceberg", rows, **said)
    lakes.sql(f"DELETE FROM {table} WHERE a % 10 = 0")
    assert lakes.sql(f"SELECT count(*) FROM {table}.delete_files").first()[0]
    return "iceberg", table


def iceberg_vectors(lakes, rows):
    """Iceberg: deletion vectors of version 3."""
    return iceberg_positions(lakes, rows, "3")


def iceberg_equalities(lakes, rows):
    """Iceberg: equality deletes, as Flink writes them."""
    table = lakes.make("iceberg", rows, **{"format-version": "2"})
    delete_equal(lakes, table, range(0, 200, 10))
    return "iceberg", table


def delete_equal(lakes, name, values):
    """Commit an equality delete of column a."""
    jvm, spark = lakes.spark._jvm, lakes.spark  # noqa: SLF001
    session = spark._jsparkSession  # noqa: SLF001
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, name)
    number = table.schema().findField("a").fieldId()
    field = pa.field("a", pa.int64(), metadata={"PARQUET:field_id": str(number)})
    path = lakes.folder / f"{name}-equal.parquet"
    pq.write_table(pa.table([list(values)], schema=pa.schema([field])), path)
    ids = spark.sparkContext._gateway.new_array(jvm.int, 1)  # noqa: SLF001
    ids[0] = number
    builder = (
        jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(ids).withPath(f"file:{path}").withFormat("parquet")
        .withFileSizeInBytes(path.stat().st_size).withRecordCount(len(values))
    )  # fmt: skip
    table.newRowDelta().addDeletes(builder.build()).commit()
    lakes.sql(f"REFRESH TABLE {name}")


MAKERS = [delta_vectors, iceberg_positions, iceberg_vectors, iceberg_equalities]
PAIRS = [(m, to) for m in MAKERS for to in FORMATS if not m.__name__.startswith(to)]


@pytest.fixture(scope="module")
def deleted(lakes, spark):
    """Tables whose rows with a tenth number are deleted, made once: their formats and names."""
    return cache(lambda make: make(lakes, spark.range(200).selectExpr("id AS a", "id % 3 AS p")))


@pytest.mark.every_format
@pytest.mark.parametrize(("make", "to"), PAIRS)
def test_only_live_rows_are_copied(lakes, deleted, make, to):
    """Deletes are applied by the copy, of which the other format knows none."""
    format_, table = deleted(make)

    report = lakes.migrate(format_, table, to)

    assert report.proof.rows == len(LIVE)
    found = lakes.read(to, report.target)
    assert found == [f"[('a', '{n}'), ('p', '{n % 3}')]" for n in sorted(LIVE, key=str)]


@pytest.mark.parametrize("make", MAKERS)
def test_in_place_refuses_and_auto_copies(lakes, deleted, make):
    """Naming deletes, and the way out."""
    format_, table = deleted(make)
    to = {"delta": "iceberg", "iceberg": "delta"}[format_]
    target = lakes.name(to)

    with pytest.raises(UnsupportedError, match=r"row-level deletes.*mode='copy'"):
        lakes.migrate(format_, table, to, target, mode="in_place")

    assert not lakes.exists(to, target)
    report = lakes.migrate(format_, table, to, target, mode="auto")
    assert report.mode is Mode.COPY
    assert "row-level deletes" in report.why
    assert report.proof.rows == len(LIVE)


def test_deleted_rows_of_whole_files_are_gone(lakes, spark):
    """A delete that takes files as a whole leaves nothing behind, so in place is safe."""
    table = lakes.make("delta", spark.range(40).selectExpr("id AS a", "id % 2 AS p"), "p")
    lakes.sql(f"DELETE FROM delta.`{table}` WHERE p = 1")

    report = lakes.migrate("delta", table, "iceberg", mode="in_place")

    assert len(lakes.read("iceberg", report.target)) == 20
