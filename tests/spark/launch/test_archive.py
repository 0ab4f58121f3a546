"""The archive of Java classes: written at the second start, used by all later ones."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from zadapter.spark import settings
from zadapter.spark.launch import archive
from zadapter.spark.launch.java import chosen

ADDED = {settings.CLASS_PATH: "/jars/delta.jar", settings.JAVA_OPTIONS: "-Dmine=1"}


@pytest.fixture
def start(tmp_path):
    """Return a function that returns the Java options of the next start."""

    def options(added=ADDED, **stated):
        stated = {"spark.jars.ivy": str(tmp_path), **stated}
        return archive.additions(stated, added, chosen()).get(settings.JAVA_OPTIONS, "")

    return options


def test_the_second_start_writes_what_the_third_uses(start):
    """A machine that starts Spark once does not wait for an archive that nobody will use."""
    assert start() == "-Dmine=1"

    written = start().rpartition("-XX:ArchiveClassesAtExit=")[2]
    Path(written).touch()

    assert start().endswith(f"-XX:SharedArchiveFile={written}")


def test_an_archive_that_could_not_be_written_is_not_tried_again(start):
    """Where Java is killed as Python ends, each start would take longer for nothing."""
    tried = [start() for _ in range(4)]

    assert ["ArchiveClassesAtExit" in options for options in tried] == [False, True, False, False]


def test_other_jars_have_another_archive(start):
    """Java would ignore an archive of other jars."""
    other = ADDED | {settings.CLASS_PATH: "/jars/iceberg.jar"}
    start(), start(other)

    first, second = start().split("=")[-1], start(other).split("=")[-1]

    assert first != second


@pytest.mark.parametrize("own", ["-Xshare:off", "-XX:SharedArchiveFile=/my.jsa"])
def test_an_archive_of_the_user_takes_precedence(start, own):
    """So ``-Xshare:auto`` opts out."""
    for _ in range(3):
        assert "cds" not in start(**{settings.EXTRA_JAVA_OPTIONS: own})


def test_a_java_of_another_shape_goes_without(start, monkeypatch, tmp_path):
    """Such as one whose program has another name; the session starts all the same."""
    java = replace(chosen(), home=tmp_path)
    monkeypatch.setattr(f"{__name__}.chosen", lambda: java)

    assert [start() for _ in range(3)] == ["-Dmine=1"] * 3


def test_without_a_class_path_there_is_no_archive(start):
    """Executors of a cluster get the jars from the driver, and packages of the user's change."""
    for _ in range(3):
        assert start({settings.JARS: "/jars/delta.jar"}) == ""


def test_an_archive_that_nobody_uses_is_deleted_after_a_month(start, tmp_path):
    """An upgrade of Java, Spark or a format leaves one behind."""
    old, young = tmp_path / "zadapter" / "old.jsa", tmp_path / "zadapter" / "young.jsa"
    start()
    for path, days in ((old, 31), (young, 29)):
        path.touch()
        os.utime(path, (time.time() - days * 86_400,) * 2)

    start()

    assert [old.exists(), young.exists()] == [False, True]
