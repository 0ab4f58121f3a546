"""A session that zadapter starts prints nothing, unless the user wants it to."""

import subprocess
import sys

import pytest

from zadapter.spark import settings
from zadapter.spark.launch import start

CODE = """
import zadapter.spark
spark = zadapter.spark.session({settings})
print(spark.range(100).repartition(3).count())
spark.sparkContext._jvm.org.slf4j.LoggerFactory.getLogger("mine").warn("a warning")
from zadapter.spark.clone import scratch
with scratch(spark):
    pass
"""

CANCELLED = """
import threading
import zadapter.spark

spark = zadapter.spark.session(formats=["delta", "iceberg"])
jobs = spark.sparkContext.statusTracker()

def cancel():
    while not jobs.getActiveJobsIds():
        pass
    spark.sparkContext.cancelAllJobs()

spark.sql("CREATE NAMESPACE iceberg.db")
spark.sql("CREATE TABLE iceberg.db.t (id BIGINT) USING iceberg")
rows = spark.range(10**13)
writes = [
    lambda: rows.write.parquet("parquet"),
    lambda: rows.write.format("delta").save("delta"),
    lambda: rows.writeTo("iceberg.db.t").append(),
]
for write in writes:
    threading.Thread(target=cancel).start()
    try:
        write()
    except Exception as error:
        assert "cancelled" in str(error), error
        print("cancelled")
"""


def run_python(code, cwd=None):
    """Run *code* in a new Python, and return what it printed, and what it logged."""
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return answer.stdout, answer.stderr


def run(settings=""):
    printed, logged = run_python(CODE.format(settings=settings))
    assert printed == "100\n"
    return logged


@pytest.mark.slow
def test_the_second_start_prints_nothing():
    """The first one may say that it downloads jars."""
    first = run()

    assert len(first.splitlines()) <= 1
    assert run() == ""


@pytest.mark.slow
def test_the_users_level_is_that_of_the_log():
    """Settings of our own in a clone of the session are none of the user's."""
    said = run({"spark.log.level": "WARN"})

    assert "WARN mine: a warning" in said
    assert "SparkSession" not in said


@pytest.mark.slow
def test_a_write_that_is_cancelled_prints_nothing(tmp_path):
    """As by Ctrl-C in a notebook, which shows what Java logs below the cell."""
    printed, logged = run_python(CANCELLED, cwd=tmp_path)

    assert printed.split() == ["cancelled"] * 3
    assert logged == ""


@pytest.mark.parametrize("key", settings.JAVA_OPTION_KEYS)
def test_a_log4j_of_the_user_stays(key):
    mine = {key: "-Dlog4j2.configurationFile=/mine.xml"}

    assert settings.JAVA_OPTIONS not in start.additions(mine, {})


@pytest.mark.parametrize("name", ["log4j2.properties", "log4j2.xml", "log4j2-test.yaml"])
def test_a_file_of_the_user_stays(tmp_path, monkeypatch, name):
    """Spark finds it by its class path; its template configures nothing."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "log4j2.properties.template").touch()
    assert "log4j2.properties" in start.additions({}, {})[settings.JAVA_OPTIONS]

    (tmp_path / name).touch()

    assert settings.JAVA_OPTIONS not in start.additions({}, {})


def test_other_settings_are_kept():
    """Options of both, and the bar of a user who wants it."""
    found = start.additions(
        {"spark.ui.showConsoleProgress": "true"}, {settings.JAVA_OPTIONS: "-XX:+UseParallelGC"}
    )

    assert "spark.ui.showConsoleProgress" not in found
    assert found[settings.JAVA_OPTIONS].startswith("-XX:+UseParallelGC -Dlog4j2.")
