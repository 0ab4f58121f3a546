"""Missing folders are found before Spark starts; what may lie elsewhere is left to Spark."""

import os

import pytest

from zadapter.base.locations import VARIABLES, check_local
from zadapter.errors import UnknownTableError


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """An empty folder, on a machine without configuration of Hadoop or Spark."""
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "table",
    [
        "lake/events",
        "/lake/events",
        "./events",
        "file:/lake/events",
        "file:///lake/events",
        "delta.`/lake/events`",
        "lake/a b",
    ],
)
def test_a_missing_folder_is_named(table):
    """As the user has written it."""
    with pytest.raises(UnknownTableError, match="path not found; check its spelling") as refused:
        check_local([table], {})

    assert str(refused.value).startswith(f"{table}: ")


@pytest.mark.parametrize(
    "table",
    [
        "events",
        "db.events",
        "iceberg.db.`a/b`",
        "delta.`events`",
        "s3://bucket/events",
        "hdfs:/lake/events",
        "delta.`s3://bucket/events`",
        "file://server/lake/events",
        "lake/*",
        "lake/events\0",
    ],
)
def test_identifiers_and_stores_are_left_to_spark(table):
    """Only Spark has the catalog and the stores."""
    check_local([table], {})


@pytest.mark.parametrize(
    "table",
    [
        "lake/events", "lake/a%20b", "file:{0}/lake/a%2520b", "file:{0}/lake/a%20b",
        "file://{0}/lake/a#b?c", "file://localhost{0}/lake/a#b?c",
    ],
)  # fmt: skip
def test_a_folder_that_exists_is_accepted(table, tmp_path):
    """As Spark reads a URI, which takes it as it is written, or with the escapes of one."""
    for name in ("events", "a%20b", "a#b?c"):
        (tmp_path / "lake" / name).mkdir(parents=True)

    check_local([table.format(tmp_path)], {})


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "SPARK_HOME", "PYSPARK_GATEWAY_PORT"])
def test_where_hadoop_is_configured_spark_decides(name, monkeypatch):
    """Paths without a scheme may lie on HDFS; those with ``file:`` do not."""
    monkeypatch.setenv(name, os.devnull)

    check_local(["/lake/events"], {})
    with pytest.raises(UnknownTableError):
        check_local(["file:/lake/events"], {})


def test_a_setting_may_name_another_file_system():
    """As a user of the command line does with ``--conf``."""
    check_local(["/lake/events"], {"spark.hadoop.fs.defaultFS": "hdfs://server"})
