"""The command line, as far as it goes without Spark."""

import signal
import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from zadapter.base.interrupts import Interrupted
from zadapter.cli import app
from zadapter.errors import EngineError, SessionError


def zadapter_says(*arguments):
    """Run the command line with *arguments*."""
    return CliRunner().invoke(app.app, list(arguments))


def test_the_version_is_that_of_the_package():
    """What bug reports quote."""
    answer = zadapter_says("--version")

    assert answer.stdout == f"zadapter {version('zadapter-spark')}\n"
    assert answer.exit_code == 0


def test_help_needs_no_pyspark():
    """Whoever looks around has not installed a format yet; and importing PySpark takes time."""
    code = (
        "import sys; sys.modules.update(pyspark=None, py4j=None)\n"
        "from zadapter.cli.app import app; app(['optimize', '--help'])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert "--target-file-size" in answer.stdout
    assert answer.stderr == ""
    assert answer.returncode == 0


def test_the_module_is_the_command():
    """Where no script is on the PATH, such as in a wheel that was unpacked."""
    answer = subprocess.run(
        [sys.executable, "-m", "zadapter", "files"], capture_output=True, text=True, check=False
    )

    assert "Usage: zadapter files" in answer.stderr
    assert answer.returncode == 2


def test_without_pyspark_the_complaint_says_what_to_install():
    """One sentence to act on."""
    code = (
        "import sys; sys.modules.update(pyspark=None, py4j=None)\n"
        "from zadapter.cli.app import app; app(['plan', 'events', '--by', 'user_id'])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    said = (
        "error: zadapter.plan requires PySpark; run pip install '.[delta]' in a clone of "
        "zadapter's repository\n"
    )
    assert answer.stderr == said
    assert answer.returncode == 2


def test_sessions_of_python_say_so_as_well():
    """Readers of README's example import them before anything else."""
    code = "import sys; sys.modules.update(pyspark=None, py4j=None)\nimport zadapter.spark"

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert answer.stderr.splitlines()[-1] == (
        "zadapter.errors.MissingBackendError: zadapter.spark requires PySpark; run pip install "
        "'.[delta]' in a clone of zadapter's repository"
    )


def test_an_unknown_backend_is_one_line_before_spark_starts():
    """No traceback: the user mistyped, nothing is broken."""
    answer = zadapter_says("optimize", "events", "--by", "user_id", "--backend", "detla")

    assert answer.stderr == "error: unknown backend 'detla'; installed: delta, iceberg, parquet\n"
    assert answer.stdout == ""
    assert answer.exit_code == 2


def test_a_machine_that_cannot_run_spark_is_one_message(monkeypatch):
    """The call is right, so the exit code is another one than that of a wrong call."""

    def refuse(*_, **__):
        raise SessionError("Spark requires Java 17 or 21")

    monkeypatch.setattr("zadapter.api.session.start_for_one_call", refuse)
    answer = zadapter_says("optimize", "events", "--by", "user_id")

    assert answer.stderr == "error: Spark requires Java 17 or 21\n"
    assert answer.exit_code == 1


@pytest.mark.parametrize("typed", ["", ",", "a,,b", "a,", "=2", "a=", "a=much", "a=1=2", "a,b,a"])
def test_keys_that_cannot_be_meant_are_refused(typed):
    """A slip of the keyboard must not become another layout."""
    answer = zadapter_says("plan", "events", "--by", typed)

    assert answer.stderr.startswith("error: --by: ")
    assert answer.exit_code == 2


@pytest.mark.parametrize(
    "typed",
    [
        ("--conf", "fs.s3a.secret.key:hidden"),
        ("--conf", "fs.s3a.secret.key hidden"),
        ("--conf", "fs.s3a.secret.key", "hidden"),
        ("--conf", "hidden"),
        ("--conf", "=hidden"),
        ("--backend", "password=hidden"),
        ("fs.s3a.secret.key=hidden",),
        ("--row-groups", "secret=hidden"),
    ],
)
def test_a_slip_shows_no_secret(typed):
    """What was mistyped may be a key, and terminals are looked over and logged."""
    answer = zadapter_says("optimize", "events", "--by", "user_id", *typed)

    assert "hidden" not in answer.output
    assert answer.exit_code == 2


def test_a_setting_without_a_value_is_named():
    """The name is no secret, and says which one is wrong."""
    answer = zadapter_says("plan", "t", "--by", "a", "--conf", "fs.s3a.secret.key:hidden")

    said = "error: --conf must be key=value; 'fs.s3a.secret.key' has no '='\n"
    assert answer.stderr == said


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (
            Interrupted(signal.SIGINT, "interrupted; nothing was committed"),
            130,
            "interrupted; nothing was committed\n",
        ),
        (
            Interrupted(signal.SIGTERM, "interrupted; nothing was committed"),
            143,
            "interrupted; nothing was committed\n",
        ),
        (EngineError("t: sig=hidden"), 1, "error: t: sig=***\n"),
        (
            ValueError("token=hidden"),
            1,
            "error: ValueError: token=*** (repeat the call in Python for the traceback)\n",
        ),
    ],
)
def test_whatever_ends_a_command_is_one_line(monkeypatch, raised, code, said):
    """Nobody reads a traceback; scripts look at the exit code."""

    def fail(*_, **__):
        raise raised

    monkeypatch.setattr("zadapter.api.session.start_for_one_call", fail)
    answer = zadapter_says("optimize", "events", "--by", "user_id")

    assert answer.stderr == said
    assert answer.exit_code == code
