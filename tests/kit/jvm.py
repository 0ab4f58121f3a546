"""Options of the JVMs that tests start.

A test runs each piece of code a few times. Of all the processor time of a test session, Java's
optimizing compiler takes a third, and tests that start a JVM of their own end before it pays off.
Its fast compiler needs no profile. It changes no result, only how fast code is that runs for long.

The journeys in ``integration/journeys`` remove all of Spark's variables: they run as a user does.
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

import pytest

FAST_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
"""The cache has its usual size, which Java otherwise cuts to 48 MB for the fast compiler alone."""


SHARING = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")
"""Without words about archives that are missing, or of another class path."""

_MAKE = """
import sys
from pathlib import Path

import pyspark
import zadapter.spark

folder, made, archive = map(Path, sys.argv[1:])
spark = zadapter.spark.session(
    {"spark.master": "local[2]", "spark.sql.warehouse.dir": str(folder / "warehouse")}
)
rows = spark.range(9).selectExpr("id", "CAST(id AS STRING) AS text").repartition(2)
for table_format in ("delta", "parquet"):
    table = str(folder / table_format)
    rows.write.format(table_format).save(table)
    zadapter.optimize(table, by=["id", "text"], backend=table_format, spark=spark)
gateway = pyspark.SparkContext._gateway
spark.stop()
gateway.proc.stdin.close()
if gateway.proc.wait() == 0 and made.exists():
    made.replace(archive)
"""


def use_fast_compiler():
    """Have the JVMs of Spark that this process and its children start compile fast."""
    options = (*FAST_COMPILER, *SHARING, f"-XX:SharedArchiveFile={_archive()}")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(options))


def _archive():
    """Return the file of Spark's classes as Java has parsed them, which JVMs share if it exists.

    A JVM parses and verifies some 15 000 classes of Spark before the first row is written, for a
    third of the time until then.
    """
    import pyspark

    version = (pyspark.__file__, pyspark.__version__, os.environ.get("JAVA_HOME", ""))
    name = sha256(repr(version).encode()).hexdigest()[:16]
    return Path(gettempdir(), f"zadapter-tests-{os.getuid()}", f"{name}.jsa")


def _make_archive():
    """Make the archive in the background, unless a process did or does."""
    archive = _archive()
    folder = archive.with_suffix("")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return
    made = folder / "made.jsa"
    options = " ".join((*FAST_COMPILER, *SHARING, f"-XX:ArchiveClassesAtExit={made}"))
    subprocess.Popen(
        [sys.executable, "-c", _MAKE, folder, made, archive],
        env={**os.environ, "SPARK_SUBMIT_OPTS": options},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def session(settings, **keywords):
    """Return zadapter's session. Without a Java or the jars, each test says so in one line."""
    import zadapter.spark
    from zadapter.errors import SessionError

    _make_archive()
    try:
        return zadapter.spark.session(settings, **keywords)
    except SessionError as error:
        others = "pytest --ignore tests/spark runs the tests without Spark"
        pytest.fail(f"{error}; {others}", pytrace=False)
