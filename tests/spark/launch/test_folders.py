"""Folders for scratch files, before Spark starts."""

import resource
import subprocess
import sys
from contextlib import contextmanager

import pytest

from zadapter.errors import SessionError
from zadapter.spark.launch import folders

COMMAND = (sys.executable, "-c", "from zadapter.cli.app import app; app()")


@contextmanager
def full():
    """A disk on which only small files fit, also for this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_folder_is_refused(tmp_path):
    """Java's libraries for compression need more than one byte."""
    stated = {folders.LOCAL: str(tmp_path)}
    full_folder = rf"{tmp_path} \(File too large\); free space there"

    with full():
        assert folders.find_fault(tmp_path) is None
        with pytest.raises(SessionError, match=full_folder):
            folders.refuse_full(stated)
        folders.refuse_full({**stated, "spark.master": "spark://host:7077"})


def test_one_folder_of_several_is_enough(tmp_path):
    """As for Spark, which leaves out those that it cannot write."""
    (tmp_path / "taken").touch()
    taken, good = tmp_path / "taken" / "a", tmp_path / "new"

    folders.refuse_full({folders.LOCAL: f"{taken},{good}"})
    with pytest.raises(SessionError, match=rf"{taken} \(Not a directory\)"):
        folders.refuse_full({folders.LOCAL: str(taken)})


def test_the_variable_of_spark_and_an_option_of_java_count(monkeypatch, tmp_path):
    """The one replaces the setting; with the other, the folder is Java's matter."""
    (tmp_path / "taken").touch()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "taken"))
    with pytest.raises(SessionError):
        folders.refuse_full({folders.LOCAL: str(tmp_path)})

    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.io.tmpdir={tmp_path}")
    assert folders.scratch({}) == []


def test_the_demo_says_which_folder_is_full_in_one_line(tmp_path):
    """The JVM ended without a word, and a refused connection was told."""
    (tmp_path / "taken").touch()

    answer = subprocess.run(
        [*COMMAND, "demo", "--conf", f"spark.local.dir={tmp_path}/taken/a"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert answer.returncode == 1
    assert answer.stderr == (
        f"error: Spark has no folder for scratch files: {tmp_path}/taken/a (Not a directory); "
        "free space there, or set spark.local.dir to a folder that can be written\n"
    )
