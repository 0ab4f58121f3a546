"""A table that queries of logs read, and what a log says about it."""

import pytest

from zadapter.inspection.measure.table_access import opening
from zadapter.inspection.querylog.log_reader import read_log

DDL = "id bigint, day date, ts timestamp, country string, amount decimal(10,2), at struct<x:double>"


@pytest.fixture(scope="package")
def lake(spark, tmp_path_factory):
    """A folder with a Delta table named ``events`` and a Parquet folder named ``users``."""
    folder = tmp_path_factory.mktemp("lake")
    spark.createDataFrame([], DDL).write.format("delta").save(f"{folder}/events")
    spark.createDataFrame([(1, "de")], "id bigint, name string").write.parquet(f"{folder}/users")
    return folder


@pytest.fixture
def read(spark, lake):
    """Reads a log as one of the table ``events``."""

    def read_(queries, table=f"{lake}/events", backend="delta", *, dynamic=False):
        with opening("advise", str(table), backend, spark) as opened:
            return read_log(queries, opened.snapshot, opened.rows, dynamic=dynamic)

    return read_


@pytest.fixture
def filters(read):
    """Reads a log, and returns the texts of the filters in their order, if all entries are used."""

    def filters_(*queries):
        found = read(list(queries))
        assert found.unused == {}
        return [each.sql for each in found.filters]

    return filters_
