"""One Spark session for all tests: starting one takes seconds."""

from itertools import cycle, islice

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import zadapter.spark
from tests import extremes


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


@pytest.fixture(scope="session")
def table():
    """One row number and one column a type, all of the same length, all with nulls."""
    arrays = {
        name: pa.concat_arrays([array, pa.nulls(1, array.type)])
        for name, array in extremes.columns()
    }
    length = max(map(len, arrays.values()))
    # lengths without a common divisor pair every value of a column with many of the others
    places = {name: pa.array(islice(cycle(range(len(a))), length)) for name, a in arrays.items()}
    cycled = {name: array.take(places[name]) for name, array in arrays.items()}
    return pa.table({"row": pa.array(range(length)), **cycled})


@pytest.fixture(scope="session")
def rows(spark, table):
    """The same table in Spark; one more column holds others as fields."""
    schema = ", ".join(f"{field.name} {spark_type(field.type)}" for field in table.schema)
    nested = F.struct(F.struct(F.col("big").alias("odd.name")).alias("b"))
    # by checkpoint no longer local rows, over which a plan is never compiled
    return spark.createDataFrame(table, schema).withColumn("a", nested).localCheckpoint()


def spark_type(type_):
    """A type as Spark SQL writes it."""
    names = {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "date32[day]": "date",
        "timestamp[us, tz=UTC]": "timestamp",
        "timestamp[us]": "timestamp_ntz",
        "bool": "boolean",
    }
    return names.get(str(type_), str(type_).replace("decimal128", "decimal"))


@pytest.fixture
def conf(spark):
    """Sets session options, and takes them back."""
    before = {}

    def set_(options):
        for name, value in options.items():
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)

    yield set_
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
