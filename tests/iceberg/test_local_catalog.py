"""The Iceberg catalog of a local session."""

import pytest

from zadapter_iceberg import local_catalog


def test_a_local_session_gets_a_catalog(tmp_path):
    """It lies in Spark's warehouse, wherever that is."""
    found = local_catalog.settings({"spark.sql.warehouse.dir": f"file://{tmp_path}/a%20b"}, 2)

    assert found["spark.sql.catalog.iceberg.uri"] == f"jdbc:sqlite:{tmp_path}/a b/iceberg.db"
    assert found["spark.sql.catalog.iceberg.warehouse"] == f"file://{tmp_path}/a%20b/iceberg"


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
