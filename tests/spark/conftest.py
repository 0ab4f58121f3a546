"""One Spark session for all tests: starting one takes seconds."""

import pytest
from pyspark.sql import functions as F

from tests.kit import extremes, jvm


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A small session that can handle Delta and Iceberg."""
    session = jvm.session(
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
    """A table of nasty values of every type."""
    return extremes.table()


@pytest.fixture(scope="session")
def rows(spark, table):
    """The same table in Spark; one more column holds others as fields."""
    nested = F.struct(F.struct(F.col("big").alias("odd.name")).alias("b"))
    made = extremes.in_spark(spark, table).withColumn("a", nested)
    # by checkpoint no longer local rows, over which a plan is never compiled
    return made.localCheckpoint()


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


@pytest.fixture
def view(spark):
    """Makes temporary views, and drops them: other tests have the same session."""
    made = []

    def make(rows, name):
        rows.createOrReplaceTempView(name)
        made.append(name)

    yield make
    for name in made:
        spark.catalog.dropTempView(name)


@pytest.fixture
def sent(spark, monkeypatch):
    """The commands that the JVM gets."""
    client = spark._jvm._gateway_client  # noqa: SLF001
    send, commands = client.send_command, []

    def counted(command, *arguments, **keywords):
        commands.append(command)
        return send(command, *arguments, **keywords)

    monkeypatch.setattr(client, "send_command", counted)
    return commands
