"""First calls in a new process, with nothing prepared."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from zadapter.backend import plugins
from zadapter.errors import SessionError
from zadapter.spark.launch.java import choose
from zadapter.spark.launch.start import _launch

DELTA = plugins.load("delta").format.library

TWO_FORMATS = """
import deltalake, pyarrow as pa, zadapter
deltalake.write_deltalake("events", pa.table({"id": list(range(2000)), "n": [1] * 2000}))
print(zadapter.optimize("events", by="id", force=True).versions)
print(zadapter.migrate("events", to="iceberg", target="iceberg.db.events").version is not None)
"""
NO_OBSTORE = """
import sys; sys.modules["obstore"] = None
import os, pyarrow as pa, pyarrow.parquet as pq, zadapter
os.mkdir("events")
for part in range(2):
    pq.write_table(pa.table({"id": list(range(part, 2000, 2))}), f"events/{part}.parquet")
print(zadapter.optimize("events", by="id", backend="parquet").versions)
try:
    zadapter.plan("gs://bucket/events", by="id", backend="parquet")
except zadapter.errors.MissingBackendError as error:
    print(error)
"""
CONNECT = """
import inspect, zadapter, zadapter.spark
from zadapter.errors import SessionError
calls = {
    "delete": ("t", "a > 1"),
    "files": ("t",), "read": ("t",), "history": ("t",), "restore": ("t", 0), "vacuum": ("t",),
    "publish": ("t",),
}
keys = {"plan": {"by": "a"}, "optimize": {"by": "a"}, "migrate": {"to": "delta", "target": "u"}}
def names(call):
    return inspect.signature(call).parameters
def refused(name, call, *given, **keywords):
    try:
        call(*given, **keywords)
    except SessionError as error:
        assert "classic" in str(error), error
    else:
        print(name, "was not refused")
for backend in (None, "parquet"):
    for name in (*calls, *keys):
        call = getattr(zadapter, name)
        more = {"backend": backend} if "backend" in names(call) and backend else {}
        refused(name, call, *calls.get(name, ("t",)), **keys.get(name, {}), **more)
refused("session", zadapter.spark.session)
refused("ensure", zadapter.spark.ensure, None, "parquet")
print("done")
"""
SUBMITTED = """
from pyspark.sql import SparkSession
import zadapter
spark = SparkSession.builder.getOrCreate() if {own} else None
import deltalake, pyarrow as pa
deltalake.write_deltalake("events", pa.table({{"id": list(range(2000))}}))
print(zadapter.plan("events", by="id", force=True).format)
try:
    zadapter.plan("evnts", by="id")
except zadapter.errors.UnknownTableError as error:
    print(error)
"""


def run(command, cwd, **variables):
    answer = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.splitlines()


def python(code, cwd, **variables):
    return run([sys.executable, "-c", code], cwd, **variables)


@pytest.mark.slow
def test_two_formats_in_one_process(tmp_path):
    """Nobody has said a word about sessions."""
    assert python(TWO_FORMATS, tmp_path) == ["(1,)", "True"]


@pytest.mark.slow
def test_local_folders_need_no_obstore(tmp_path):
    """Object stores do, and the message says so."""
    versions, reason = python(NO_OBSTORE, tmp_path)

    assert versions == "(1,)"
    assert reason == (
        "gs://bucket/events: Parquet tables in object stores require obstore; run pip install "
        "'.[parquet]' in a clone of zadapter's repository"
    )


def test_connect_is_refused_by_every_function(tmp_path):
    assert python(CONNECT, tmp_path, SPARK_REMOTE="sc://localhost") == ["done"]


@pytest.mark.slow
def test_formats_that_were_not_submitted_are_not_asked_for(tmp_path):
    """``spark-submit --packages`` of Delta alone, and a typo."""
    script = tmp_path / "job.py"
    script.write_text(SUBMITTED.format(own=False))
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    options = ["--master", "local[1]", "--packages", DELTA.packages[0]]

    found, reason = run([submit, *options, script], tmp_path, PYSPARK_PYTHON=sys.executable)

    assert found == "delta"
    assert reason == (
        "evnts: no delta or parquet table found; check the name; this session does not load iceberg"
    )


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_java_opens_the_paths_that_python_opens(monkeypatch, locale):
    """In the C locale Python reads names as UTF-8, and Java would refuse them."""
    monkeypatch.setenv("LC_ALL", locale)

    with _launch({}):
        answer = subprocess.run(
            [choose().home / "bin" / "java", "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip

    assert "sun.jnu.encoding = UTF-8" in answer.stderr
    assert os.environ["LC_ALL"] == locale


def test_a_user_without_a_name_is_told_before_java_starts(monkeypatch):
    """Hadoop asks the system for it, as containers that run as any number find out."""
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    with pytest.raises(SessionError, match=rf"id {os.getuid()} has no name"), _launch({}):
        pass
