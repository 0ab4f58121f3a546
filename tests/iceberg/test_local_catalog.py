"""The Iceberg catalog of a local session."""

import pytest

from zadapter_iceberg import local_catalog


def test_a_local_session_gets_a_catalog(tmp_path):
    """Its tables lie in Spark's warehouse, wherever that is; nothing is created yet."""
    found = local_catalog.settings({"spark.sql.warehouse.dir": f"file://{tmp_path}/a%20b"}, 2)

    assert found["spark.sql.catalog.iceberg.uri"] == f"jdbc:sqlite:{tmp_path}/a b-iceberg.db"
    assert found["spark.sql.catalog.iceberg.warehouse"] == f"file://{tmp_path}/a%20b/iceberg"

    assert list(tmp_path.iterdir()) == []


def test_a_catalog_that_is_in_the_warehouse_is_found(tmp_path):
    """An earlier version of zadapter has made it."""
    tmp_path.joinpath("iceberg.db").touch()

    found = local_catalog.settings({"spark.sql.warehouse.dir": str(tmp_path)}, 2)

    assert found["spark.sql.catalog.iceberg.uri"] == f"jdbc:sqlite:{tmp_path}/iceberg.db"


def test_only_a_file_that_is_absent_has_no_tables(tmp_path):
    """Other catalogs are asked."""
    tmp_path.joinpath("there.db").touch()
    asked = ["", "jdbc:sqlite::memory:", "jdbc:sqlite:file:x?mode=memory", "jdbc:postgresql://h/d"]
    asked += ["http://localhost:8181", f"jdbc:sqlite:{tmp_path}/there.db?journal_mode=WAL"]

    assert not any(map(local_catalog.is_empty, asked))
    assert local_catalog.is_empty(f"jdbc:sqlite:{tmp_path}/absent.db")


@pytest.mark.parametrize(
    "stated",
    [
        {"spark.sql.catalog.mine": "org.apache.iceberg.spark.SparkCatalog"},
        {"spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog"},
        {"spark.sql.catalog.iceberg": "com.example.Other"},
        {"spark.sql.warehouse.dir": "hdfs://somewhere/else"},
    ],
)
def test_what_the_user_named_is_left_alone(stated):
    """Where there is an Iceberg catalog, or no local warehouse, none is added."""
    assert local_catalog.settings(stated, 2) == {}
