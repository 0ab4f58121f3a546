"""One Spark session for all tests: starting one takes seconds."""

import pytest

import zadapter.spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A small session that can handle Delta and Iceberg."""
    session = zadapter.spark.session(
        {
            "spark.master": "local[2]",
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.driver.memory": "2g",
        }
    )
    yield session
    session.stop()
