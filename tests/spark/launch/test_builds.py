"""The libraries that go with a release of Spark, and releases that are untested."""

from dataclasses import replace

import pytest

import zadapter
from tests.kit.variants import slow
from tests.spark.test_sessions import run_python
from zadapter.backend import plugins
from zadapter.errors import SessionError
from zadapter.rewrite import self_test
from zadapter.spark import library_builds, sessions

FORMATS = plugins.formats()
DELTA = FORMATS["delta"].library


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_loaded_version_that_is_not_known_is_refused_on_request(spark, monkeypatch, table_format):
    """The JVM is asked for the version, as its jars need not be those of pip."""
    known = FORMATS[table_format]
    (found, *_), other = known.library.builds, known.library.builds[-1]
    newer = replace(known, library=replace(known.library, builds=(other,)))

    assert sessions.ensure_format(spark, newer, "") is spark
    monkeypatch.setenv("ZADAPTER_UNTESTED", "refuse")
    assert sessions.ensure_format(spark, known, "") is spark
    with pytest.raises(
        SessionError,
        match=rf"{table_format} {found.version} is untested.* Spark 3\.5\.\d+ with "
        rf"{table_format} {other.version}; unset ZADAPTER_UNTESTED",
    ):
        sessions.ensure_format(spark, newer, "")


def test_old_pyspark_is_refused():
    """The message names what was found, what is supported, and the command to type."""
    said = run_python(
        "import pyspark, zadapter.spark; pyspark.__version__ = '3.4.4'; zadapter.spark.session()"
    )

    assert "SessionError: Spark 3.4.4 is too old" in said
    assert "pip install 'pyspark>=3.5'" in said


def test_a_format_without_a_library_for_this_spark_is_refused():
    """The message names the releases of Spark for which there is one."""
    code = "pyspark.__version__ = '4.2.1'; zadapter.spark.session(formats=['iceberg'])"

    said = run_python(f"import pyspark, zadapter.spark; {code}")

    assert "SessionError: iceberg has no tested library for Spark 4.2.1" in said
    assert "install PySpark 4.1 or 4.0 or 3.5" in said


@pytest.mark.parametrize(
    ("spark", "client", "package"),
    [
        ("4.1.4", None, "delta-spark_4.1_2.13:4.4.0"),
        ("4.1.1", "4.2.0", "delta-spark_4.1_2.13:4.2.0"),
        ("4.1.4", "4.4.1", "delta-spark_4.1_2.13:4.4.0"),
        ("4.2.1", None, "delta-spark_4.2_2.13:4.4.0"),
        ("4.0.2", None, "delta-spark_4.0_2.13:4.4.0"),
        ("4.0.2-amzn-0", "4.0.0", "delta-spark_2.13:4.0.0"),
        ("3.5.6-amzn-1", None, "delta-spark_2.12:3.3.2"),
        ("3.5.6", "4.4.0", "delta-spark_2.12:3.3.2"),
    ],
)
def test_the_jar_goes_with_spark_and_with_delta_spark(monkeypatch, spark, client, package):
    """The installed PySpark decides; delta-spark decides where there are several."""
    monkeypatch.setattr(library_builds, "version", lambda _: client)

    assert library_builds.select_build(DELTA, spark).packages == (f"io.delta:{package}",)


@pytest.mark.slow
def test_on_databricks_the_way_out_is_named():
    """Its Delta has other classes."""
    code = """
from pyspark.sql import SparkSession
import zadapter.spark
zadapter.spark.ensure(SparkSession.builder.getOrCreate(), "delta")
"""

    said = run_python(code, DATABRICKS_RUNTIME_VERSION="17.3")

    assert "SessionError: Databricks Runtime has no delta library" in said
    assert "Run zadapter on Apache Spark" in said


@pytest.mark.parametrize("name", ["delta", *slow("iceberg"), "parquet"])
def test_an_untested_release_is_tested_before_the_first_write(spark, monkeypatch, caplog, name):
    """Once an application; what fails there is never tried on the user's table."""
    monkeypatch.setattr(self_test, "describe_untested", lambda *_: "Spark 9.9 is untested")
    monkeypatch.setattr(self_test, "_begun", set())

    for _ in range(2):
        self_test.before_writing(FORMATS[name], spark)

    assert [record.message for record in caplog.records if "untested" in record.message] == [
        "Spark 9.9 is untested; testing them on a table in a temporary folder"
    ]


def test_rows_that_get_lost_in_the_test_stop_the_write(spark, monkeypatch):
    """The user's table is not touched, and the next call tries again."""
    monkeypatch.setattr(self_test, "describe_untested", lambda *_: "Spark 9.9 is untested")
    monkeypatch.setattr(self_test, "_begun", set())
    monkeypatch.setattr(self_test, "rewrite", lambda *_: None)

    for _ in range(2):
        with pytest.raises(SessionError, match="lost or changed rows; nothing was written"):
            self_test.before_writing(FORMATS["parquet"], spark)


@pytest.mark.slow
def test_rows_that_get_lost_in_the_test_stop_what_follows_a_migration(spark, monkeypatch, tmp_path):
    """The new table keeps its rows, and gets the appended ones once the test passes."""
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    spark.range(10).write.format("delta").save(old)
    zadapter.migrate(old, to="parquet", target=new, spark=spark)
    spark.range(10, 15).write.format("delta").mode("append").save(old)
    monkeypatch.setattr(self_test, "describe_untested", lambda *_: "Spark 9.9 is untested")
    monkeypatch.setattr(self_test, "_begun", set())

    with monkeypatch.context() as broken:
        broken.setattr(self_test, "rewrite", lambda *_: None)
        with pytest.raises(SessionError, match="lost or changed rows; nothing was written"):
            zadapter.migrate(old, to="parquet", target=new, follow=True, spark=spark)

    assert zadapter.read(new, backend="parquet", spark=spark).count() == 10
    zadapter.migrate(old, to="parquet", target=new, follow=True, spark=spark)
    assert zadapter.read(new, backend="parquet", spark=spark).count() == 15
