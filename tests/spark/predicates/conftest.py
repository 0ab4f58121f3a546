"""An empty table of every type, and conditions on it."""

import pytest

from zadapter.spark.where import condition
from zadapter.table.spark_schema import arrow_schema

DDL = """i int, t tinyint, f float, d double, s string, flag boolean, day date, ts timestamp,
ntz timestamp_ntz, dec decimal(12,2), bytes binary, `Odd` struct<`b.c`:int,x:struct<y:int>>,
low string collate UTF8_LCASE, map map<string,int>, list array<struct<z:int>>"""


@pytest.fixture(scope="module")
def empty(spark):
    """No rows of every type."""
    return spark.createDataFrame([], DDL)


@pytest.fixture(scope="module")
def columns(empty):
    """Their schema, as snapshots have it."""
    return arrow_schema(empty.schema.jsonValue())


@pytest.fixture
def read(empty, columns):
    """Reads a condition."""
    return lambda text, *, later=False: condition(text, empty, columns, later=later).predicate
