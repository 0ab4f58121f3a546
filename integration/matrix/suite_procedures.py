"""Procedures of SQL, with each release of Spark that has them."""

import pytest

import zadapter
from tests.spark.test_procedures import *  # noqa: F403 - every test of it
from tests.spark.test_procedures import ROWS, sql

__all__ = ["sql"]

CALL = "CALL zadapter.system.optimize('{}', by => array('a'), target_file_size => '8KB', {})"


@pytest.fixture(autouse=True)
def _library(request, cell):
    """Leave out the tests of Delta tables where Spark has no library for them."""
    if "lake" in request.fixturenames and "delta" not in cell.versions:
        pytest.skip("no library of delta")


def rows(sql):
    """Return rows in no order."""
    return sql.range(ROWS).selectExpr("id", "pmod(xxhash64(id), 1000) AS a").repartition(8)


def test_an_iceberg_table(sql, catalog):
    """By pyiceberg, it has the same rows, in files whose bounds overlap less."""
    sql.sql("CREATE NAMESPACE IF NOT EXISTS ice.procedures")
    rows(sql).writeTo("ice.procedures.t").using("iceberg").create()
    before = catalog.load_table("procedures.t").scan().to_arrow().sort_by("id")

    (row,) = sql.sql(CALL.format("ice.procedures.t", "verify => 'checksum'")).collect()

    assert (row.files_removed, row.rows_added) == (8, ROWS)
    assert row.share_after < row.share_before
    assert catalog.load_table("procedures.t").scan().to_arrow().sort_by("id") == before


def test_a_folder_of_parquet(sql, tmp_path):
    """No library of a format is needed."""
    folder = str(tmp_path / "t")
    rows(sql).write.parquet(folder)
    before = sorted(sql.read.parquet(folder).collect())

    (row,) = sql.sql(CALL.format(folder, "backend => 'parquet'")).collect()

    assert (row.files_removed, row.rows_added) == (8, ROWS)
    assert row.share_after < row.share_before
    assert sorted(zadapter.read(folder, backend="parquet", spark=sql).collect()) == before
