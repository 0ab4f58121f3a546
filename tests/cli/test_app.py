"""The command line, as far as it goes without Spark."""

import inspect
import io
import signal
import subprocess
import sys
import threading
from importlib.metadata import version
from threading import Event
from types import SimpleNamespace

import pytest
from rich.console import Console
from typer.testing import CliRunner

import zadapter
from zadapter.base.interrupts import Interrupted
from zadapter.cli import app
from zadapter.errors import EngineError, SessionError, UsageError
from zadapter.reports import progress


def zadapter_says(*arguments):
    """Run the command line with *arguments*."""
    return CliRunner().invoke(app.app, list(arguments))


def test_the_version_is_that_of_the_package():
    """What bug reports quote."""
    answer = zadapter_says("--version")

    assert answer.stdout == f"zadapter {version('zadapter')}\n"
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


def test_without_pyspark_the_complaint_says_what_to_install():
    """One sentence to act on."""
    code = (
        "import sys; sys.modules.update(pyspark=None, py4j=None)\n"
        "from zadapter.cli.app import app; app(['plan', 'lake/events', '--by', 'user_id'])"
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


def test_an_unknown_backend_is_one_line_before_spark_starts():
    """No traceback: the user mistyped, nothing is broken."""
    answer = zadapter_says("optimize", "lake/events", "--by", "user_id", "--backend", "detla")

    assert answer.stderr == "error: unknown backend 'detla'; installed: delta, iceberg, parquet\n"
    assert answer.stdout == ""
    assert answer.exit_code == 2


def test_a_machine_that_cannot_run_spark_is_one_message(monkeypatch):
    """The call is right, so the exit code is another one than that of a wrong call."""

    def refuse(*_, **__):
        raise SessionError("Spark requires Java 17 or 21")

    monkeypatch.setattr("zadapter.arguments.resolve.start", refuse)
    answer = zadapter_says("optimize", "lake/events", "--by", "user_id")

    assert answer.stderr == "error: Spark requires Java 17 or 21\n"
    assert answer.exit_code == 1


@pytest.mark.parametrize("command", ["optimize", "plan"])
def test_without_key_columns_the_usage_is_shown(command):
    """There is no default for what filters use."""
    answer = zadapter_says(command, "lake/events")

    assert "--by" in answer.stderr
    assert answer.exit_code == 2


def test_commands_offer_what_the_functions_take():
    """An option means what the keyword means, and has the same default."""
    for command in app.app.registered_commands:
        offered = inspect.signature(command.callback).parameters
        taken = inspect.signature(getattr(zadapter, command.name)).parameters
        same = taken.keys() - {"backoff", "spark"}
        assert offered.keys() - {"context", "conf", "as_json"} == same
        for name in same:
            assert offered[name].default == taken[name].default


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["event_time"], {"event_time": 1}),
        (["event_time,user_id"], {"event_time": 1, "user_id": 1}),
        ([" event_time , user_id"], {"event_time": 1, "user_id": 1}),
        (["event_time", "user_id"], {"event_time": 1, "user_id": 1}),
        (
            ["event_time=2,user_id", "device.os = 0.5"],
            {"event_time": 2, "user_id": 1, "device.os": 0.5},
        ),
        (["`odd,name`,`a=b`=3"], {"`odd,name`": 1, "`a=b`": 3}),
        (["a.`b``,=c`"], {"a.`b``,=c`": 1}),
    ],
)
def test_keys_are_typed_in_one_go_or_one_by_one(typed, meant):
    """Commas separate, = gives a weight, backticks hold a name together; the order stays."""
    assert list(app.parse_by(typed).items()) == list(meant.items())


@pytest.mark.parametrize("typed", ["", ",", "a,,b", "a,", "=2", "a=", "a=much", "a=1=2", "a,b,a"])
def test_keys_that_cannot_be_meant_are_refused(typed):
    """A slip of the keyboard must not become another layout."""
    answer = zadapter_says("plan", "lake/events", "--by", typed)

    assert answer.stderr.startswith("error: --by: ")
    assert answer.exit_code == 2


def test_settings_are_pairs():
    """Values may hold an equals sign, keys may not."""
    assert app.parse_conf(["spark.master=local[4]", "a=b=c", "d="]) == {
        "spark.master": "local[4]",
        "a": "b=c",
        "d": "",
    }
    for typed in ("spark.master", "=local"):
        with pytest.raises(UsageError, match="--conf must be key=value"):
            app.parse_conf([typed])


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
    answer = zadapter_says("optimize", "lake/events", "--by", "user_id", *typed)

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

    monkeypatch.setattr("zadapter.arguments.resolve.start", fail)
    answer = zadapter_says("optimize", "lake/events", "--by", "user_id")

    assert answer.stderr == said
    assert answer.exit_code == code


class Tracker:
    """Stands for Spark's: one stage that runs, another that is gone already."""

    def __init__(self):
        self.asked = Event()
        self.rounds = 0

    def getActiveStageIds(self):  # noqa: N802 - Spark's name
        """Return the ids, and tell on the second round that the first one was shown."""
        self.rounds += 1
        if self.rounds > 1:
            self.asked.set()
        return [3, 4]

    def getStageInfo(self, stage):  # noqa: N802 - Spark's name
        """Return the first one only."""
        found = SimpleNamespace(name="sorting rows", numTasks=8, numCompletedTasks=5)
        return found if stage == 3 else None


@pytest.fixture
def fast(monkeypatch):
    """Look at Spark all the time."""
    monkeypatch.setattr(progress, "POLL", 0.001)


@pytest.mark.usefixtures("fast")
def test_a_terminal_shows_how_far_spark_is():
    """A rewrite takes minutes; people want to see it move."""
    written, tracker = io.StringIO(), Tracker()

    with progress.progress(tracker, Console(file=written, force_terminal=True, width=100)):
        assert tracker.asked.wait(30)

    assert "sorting rows" in written.getvalue()
    assert "5/8" in written.getvalue()


@pytest.mark.usefixtures("fast")
def test_a_failure_stops_the_bar():
    """The error comes through, and nobody looks at Spark any more."""
    tracker = Tracker()
    console = Console(file=io.StringIO(), force_terminal=True)

    def fail():
        with progress.progress(tracker, console):
            assert tracker.asked.wait(30)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()

    assert all(thread.name != progress.WATCHER for thread in threading.enumerate())


@pytest.mark.usefixtures("fast")
def test_a_bar_that_cannot_ask_spark_disturbs_nobody(capfd):
    """Spark may be gone before the bar is."""
    asked = Event()

    def ask():
        asked.set()
        raise ConnectionError("Spark is gone")

    with progress.progress(
        SimpleNamespace(getActiveStageIds=ask), Console(file=io.StringIO(), force_terminal=True)
    ):
        assert asked.wait(30)

    assert capfd.readouterr().err == ""


def test_a_file_gets_no_bar():
    """Logs stay readable."""
    written = io.StringIO()

    with progress.progress(Tracker(), Console(file=written)):
        pass

    assert written.getvalue() == ""
