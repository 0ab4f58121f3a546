"""Jars: Ivy resolves packages once, a record names them afterwards."""

import subprocess
import sys
from pathlib import Path

import pytest

from zadapter.spark import settings
from zadapter.spark.launch import ivy, jars

SMALL = "org.reactivestreams:reactive-streams:1.0.4"
ADDED = {settings.PACKAGES: SMALL, settings.EXCLUDES: "a:b", "spark.ui.enabled": "false"}


def paths(found):
    return [Path(name) for name in found[settings.CLASS_PATH].split(":")]


def test_what_was_resolved_once_is_found_without_a_java(tmp_path, monkeypatch):
    """A jar that has gone, or is cut short, is fetched again."""
    stated = {"spark.jars.ivy": str(tmp_path)}

    first = jars.resolve_jars(stated, ADDED)

    (jar,) = paths(first)
    assert jar.name == "org.reactivestreams_reactive-streams-1.0.4.jar"
    assert jar.is_relative_to(tmp_path)
    assert set(first) == {settings.CLASS_PATH, "spark.ui.enabled"}
    whole = jar.read_bytes()
    with monkeypatch.context() as without:
        without.setenv("JAVA_HOME", "/nowhere")
        assert jars.resolve_jars(stated, ADDED) == first
        jar.write_bytes(whole[:100])
        with pytest.raises(ivy.UnresolvedError):
            jars.resolve_jars(stated, ADDED)
    jar.unlink()
    assert jars.resolve_jars(stated, ADDED) == first
    assert jar.read_bytes() == whole


@pytest.fixture(scope="module")
def ivy_folder(tmp_path_factory):
    """A folder in which Ivy has resolved the package."""
    folder = str(tmp_path_factory.mktemp("ivy"))
    jars.resolve_jars({"spark.jars.ivy": folder}, ADDED)
    return folder


@pytest.mark.slow
def test_processes_that_start_at_once_download_one_after_another(tmp_path):
    """Ivy's cache breaks if two of them write to it: three jobs at midnight, on a new machine."""
    code = (
        "import sys; from zadapter.spark.launch import jars; print(jars.resolve_jars("
        "{'spark.jars.ivy': sys.argv[1]}, {'spark.jars.packages': sys.argv[2]}))"
    )
    command = [sys.executable, "-c", code, str(tmp_path), "software.amazon.awssdk:regions:2.29.52"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    started = [subprocess.Popen(command, **pipes) for _ in range(3)]
    answers = [process.communicate() for process in started]

    assert [process.returncode for process in started] == [0, 0, 0], answers
    assert len({found for found, _ in answers}) == 1
    assert "regions-2.29.52.jar" in answers[0][0]


def test_a_package_that_is_nowhere_is_named(tmp_path):
    """The reason is Ivy's own, in one message."""
    added = {settings.PACKAGES: "org.example:no-such-artifact:9.9"}

    with pytest.raises(
        ivy.UnresolvedError, match=r"unresolved dependency.*org\.example#no-such-artifact;9\.9"
    ):
        jars.resolve_jars({"spark.jars.ivy": str(tmp_path)}, added)


@pytest.mark.parametrize(
    "stated",
    [{settings.PACKAGES: "my.own:package:1"}, {settings.PACKAGES: SMALL}],
)
def test_packages_of_the_user_are_left_to_spark(stated):
    """A range of versions or a snapshot may mean another jar today."""
    added = {settings.PACKAGES: f"{stated[settings.PACKAGES]},{SMALL}"}

    assert jars.resolve_jars(stated, added) == added


@pytest.mark.parametrize("option", ["--driver-class-path", "--conf spark.driver.extraClassPath"])
def test_a_class_path_that_would_hide_ours_stays_alone(monkeypatch, option):
    """Of two settings, Spark takes that of PYSPARK_SUBMIT_ARGS."""
    words = f"{option}=/mine" if "conf" in option else f"{option} /mine"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")

    assert jars.resolve_jars(settings.submit_args(), ADDED) == ADDED


@pytest.mark.parametrize(
    ("master", "key", "separator"),
    [
        ("local[2]", settings.CLASS_PATH, ":"),
        ("local-cluster[1,1,512]", settings.JARS, ","),
        ("spark://host:7077", settings.JARS, ","),
    ],
)
def test_what_the_user_has_stays_first(ivy_folder, master, key, separator):
    """One JVM has a class path; executors of a cluster get the jars from the driver."""
    stated = {settings.MASTER: master, key: "/mine.jar", "spark.jars.ivy": ivy_folder}

    found = jars.resolve_jars(stated, ADDED)

    mine, jar = found[key].split(separator)
    assert mine == "/mine.jar"
    assert Path(jar).is_file()
