"""Wrong calls are answered before PySpark is imported, and commands offer what functions take."""

import inspect
import json
import os
import shutil
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import zadapter
from zadapter.base.locations import VARIABLES
from zadapter.cli.app import app

NOT_FUNCTIONS = {"Backoff", "Cleanup", "Commit", "Curve", "Deletion", "Lake", "Layout"}
NOT_FUNCTIONS |= {"Migration", "Plan", "Publication", "WriteResult"}
RESULTS = {"Advice", "Analysis", "Audit", "Explanation", "LakeReport", "Report"}
NOT_COMMANDS = {"Keys", "progress", "register_procedures", *NOT_FUNCTIONS, *RESULTS, "zvalue"}
ALONE = {"demo", "serve"}
"""Commands that are no functions: a table of its own, and a server until Ctrl-C."""
OF_EVERY_COMMAND = {"conf", "as_json", "quiet", "verbose"}
OWN = {
    "advise": {"plot", "html"},
    "analyze": {"check", "plot", "html"},
    "audit": {"html"},
    "explain": {"plot", "html"},
    "history": {"html"},
    "maintain": {"html", "metrics"},
    "optimize": {"context", "config", "plot", "html"},
    "plan": {"context", "config", "plot", "html"},
    "read": {"limit"},
    "append": {"form", "schema", "option"},
    "overwrite": {"form", "schema", "option"},
}
"""Parameters that the command line has beyond those of the function."""
OTHERWISE = {"older_than": "7d", "table": None}
"""Defaults that are written otherwise, or that a file of tables replaces."""
WRONG = [
    ("analyze t --check 0.2", "a share from 0 to 1, or depth= and a number of files from 1"),
    ("analyze t --check gain=2", "such as scanned=0.3, not 'gain=2'"),
    ("analyze t --check scanned=0.3 --check depth=0.5", "not 'depth=0.5'"),
    ("analyze t --check scanned=nan", "not 'scanned=nan'"),
    ("analyze t --check depth=inf", "not 'depth=inf'"),
    ("analyze t --check loss=0.1", "not 'loss=0.1'"),
    ("analyze t --plot a.pdf", "must end in .png or .svg"),
    ("analyze t --query ''", "query= is empty"),
    ("analyze t --matches", "pass --queries as well"),
    ("explain t --where 'a = 1' --html nosuch/a.html", "there is no folder"),
    ("plan", "TABLE is missing"),
    ("plan t --row-groups 8", "curve= and row_groups= without by= have no effect"),
    ("plan t --by a --curve peano", "unknown curve 'peano'; expected one of: adaptive"),
    ("plan t --by a --target-file-size many", "target_file_size: 'many' is not a size"),
    ("plan t --by a --max-job-bytes 1", "max_job_bytes: '1' is too small"),
    ("plan t --by a --row-groups 0", "row_groups= must be at least 1"),
    ("plan t --by a --verify twice", "unknown verify='twice'"),
    ("plan t --price egress=1", "price=: unknown price 'egress'; expected some of: put, get"),
    ("plan t --by auto", "by='auto' needs queries= (--queries); pass a query log"),
    ("plan t --by a=0", "the weight of a in by= is 0.0"),
    ("plan t --by a --backend detla", "unknown backend 'detla'; installed: delta"),
    ("plan t --by a --where ''", "where= is empty"),
    ("plan lake/nowhere --by a", "lake/nowhere: path not found"),
    ("plan t --by a --quiet --verbose", "--quiet and --verbose exclude each other"),
    ("plan t --by a --config x.toml", "and --config exclude each other"),
    ("plan --force --config x.toml", "--force and --config exclude each other"),
    ("optimize --config nowhere.toml", "nowhere.toml: the file cannot be read"),
    ("optimize t --by a --conf spark.master", "--conf must be key=value"),
    ("optimize t --by a --modes b", "No such option: --modes"),
    ("optimize t --max-group-bytes 1GB", "--max-group-bytes was renamed; pass --max-job-bytes"),
    ("plan t --settle=1h", "--settle was renamed; pass --min-age"),
    ("plan t --widen-stats", "--widen-stats was renamed; pass --collect-stats"),
    ("files t --settle 1h", "No such option: --settle"),
    ("optimize t --dry-run", "--dry-run; zadapter plan predicts the effect"),
    ("files t --dry-run", "No such option: --dry-run"),
    ("optimize t --columns a", "No such option: --columns; did you mean --by?"),
    ("analyze t --format delta", "No such option: --format; did you mean --backend?"),
    ("append t rows --format", "Option '--format' requires an argument"),
    ("demo --columns a", "No such option: --columns"),
    ("optimise t", "No such command 'optimise'"),
    ("undo t", "No such command 'undo'. Did you mean 'restore'?"),
    ("rollback t", "No such command 'rollback'. Did you mean 'restore'?"),
    ("migrate t --to detla --target u", "to= (--to): unknown backend 'detla'; installed: delta"),
    ("migrate t --to delta --target u --mode move", "unknown mode 'move'"),
    ("migrate t --to delta --target u --curve peano", "unknown curve 'peano'"),
    ("migrate t --to delta --target u --by a --follow", "by= rewrites all rows"),
    ("migrate lake/nowhere --to delta --target u", "lake/nowhere: path not found"),
    ("migrate t --to delta", "Missing option '--target'"),
    ("maintain", "Missing argument 'LAKE'"),
    ("maintain nowhere.toml", "nowhere.toml: the file cannot be read"),
    ("maintain lake.toml --html nosuch/a.html", "there is no folder"),
    ("maintain lake.toml --metrics nosuch/lake.prom", "there is no folder"),
    ("maintain lake.toml --metrics lake.txt", "--metrics: lake.txt must end in .prom"),
    ("maintain lake.toml --metrics a.prom --dry-run", "--metrics and --dry-run exclude each other"),
    ("maintain lake.toml --max-concurrent-tables 0", "'--max-concurrent-tables'"),
    ("files t --where ' '", "where= is empty"),
    ("files t --version v1", "--version: 'v1' is neither"),
    ("read t --limit 0", "'--limit'"),
    ("read", "Missing argument 'TABLE'"),
    ("history lake/nowhere", "lake/nowhere: path not found"),
    ("history t --html a.html", "--html needs the file of a lake"),
    ("history lake.toml --html nosuch/a.html", "there is no folder"),
    ("history nowhere.toml", "nowhere.toml: the file cannot be read"),
    ("history lake.toml", "lake.toml has no [journal]; add one with a table, and run maintain"),
    ("append t nowhere.parquet", "nowhere.parquet: path not found"),
    ("append t nowhere/rows --format csv --option header", "--option must be key=value"),
    ("overwrite t nowhere/rows", "nowhere/rows: path not found"),
    ("delete t", "Missing option '--where'"),
    ("delete t --where ''", "pass where='true' to delete all rows"),
    ("restore t v1", "'VERSION'"),
    ("publish lake/nowhere", "lake/nowhere: path not found"),
    ("demo --folder /dev/null/below", "--folder: /dev/null is a file; pass a folder"),
    ("vacuum t --older-than 7", "--older-than: '7' is not a duration"),
]
LAKE = '[[tables]]\nmatch = "sales.*"'
"""The only file in the folder of these calls: a lake without a journal."""
CODE = """
import json, shlex, sys
from typer.testing import CliRunner
from zadapter.cli.app import app
answers = [CliRunner().invoke(app, shlex.split(call)) for call in json.loads(sys.argv[1])]
print(json.dumps([[a.exit_code, a.stdout, a.stderr] for a in answers]))
assert not {"pyspark", "py4j"} & set(sys.modules)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exit code, standard output and standard error of all wrong calls, in one new process."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "lake.toml").write_text(LAKE)
    calls = json.dumps([call for call, _ in WRONG])
    ended = subprocess.run(
        [sys.executable, "-c", CODE, calls],
        cwd=folder,
        env={name: os.environ[name] for name in os.environ.keys() - set(VARIABLES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return {call: answer for (call, _), answer in zip(WRONG, json.loads(ended.stdout), strict=True)}


@pytest.mark.parametrize(("call", "expected"), WRONG)
def test_a_wrong_call_needs_no_spark(answers, call, expected):
    """The mistake is named at once, on standard error, with the exit code of a wrong call."""
    code, stdout, stderr = answers[call]

    assert expected in stderr
    assert stdout == ""
    assert code == 2


def commands():
    """Return the functions of the commands, by name."""
    return {command.name: command.callback for command in app.registered_commands}


def test_every_public_function_has_a_command():
    """Whoever finds a function in the documents finds it on the command line."""
    assert set(commands()) == set(zadapter.__all__) - NOT_COMMANDS | ALONE


@pytest.mark.parametrize("name", sorted(commands().keys() - ALONE))
def test_commands_offer_what_the_functions_take(name):
    """An option means what the keyword means, and has the same default."""
    offered = inspect.signature(commands()[name]).parameters
    taken = inspect.signature(getattr(zadapter, name)).parameters
    same = taken.keys() - {"backoff", "spark"}

    assert offered.keys() - OWN.get(name, set()) - OF_EVERY_COMMAND == same
    assert offered.keys() >= OF_EVERY_COMMAND
    for option in same:
        assert offered[option].default in (taken[option].default, OTHERWISE.get(option))


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_has_a_help_text(name):
    """An option without one would have to be guessed."""
    command = typer.main.get_command(app).commands[name]

    assert command.help
    assert [p.name for p in command.params if not getattr(p, "help", None)] == []


@pytest.mark.parametrize("name", commands())
def test_help_can_be_read_on_any_terminal(name):
    """Frames are of ASCII where the terminal has nothing else."""
    answer = CliRunner(charset="ascii").invoke(app, [name, "--help"])

    assert answer.exit_code == 0
    assert "--verbose" in answer.stdout
    assert answer.stdout.isascii()


def test_help_can_be_read_on_a_narrow_terminal():
    """Texts that are cut end in a character that ASCII lacks."""
    narrow = {"COLUMNS": "24", "TERMINAL_WIDTH": "24", "PYTHONIOENCODING": "ascii"}

    assert "\\u2026" in zadapter_in_bash("plan", "--help", **narrow)


def test_a_message_can_be_read_on_any_terminal():
    """It repeats what was typed, in escapes where the terminal lacks the characters."""
    typed = ["plan", "t", "--by", "n", "--curve", "東"]
    answer = CliRunner(charset="ascii").invoke(app, typed)

    assert answer.stderr.startswith("error: unknown curve '\\u6771'; expected one of: ")
    assert answer.exit_code == 2


def test_a_usage_error_can_be_read_on_any_terminal():
    """It is printed by typer."""
    answer = CliRunner(charset="ascii").invoke(app, ["東"])

    assert "No such command '\\u6771'" in answer.stderr
    assert answer.exit_code == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("zadapter op", {"optimize"}),
        ("zadapter ", {"plan", "optimize", "migrate", "files", "read", "vacuum"}),
        ("zadapter plan t --cur", {"--curve"}),
        ("zadapter plan t --curve ", {"adaptive", "zorder", "hilbert", "linear"}),
        ("zadapter plan t --backend ice", {"iceberg"}),
        ("zadapter migrate t --mode in", {"in_place"}),
    ],
)
def test_a_shell_completes_commands_options_and_values(typed, offered):
    """As the script does that ``--install-completion`` installs."""
    words = typed.split(" ")
    answer = zadapter_in_bash(
        _ZADAPTER_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(len(words) - 1)
    )

    assert offered <= set(answer.split())


def test_the_completion_script_calls_zadapter():
    """What ``zadapter --show-completion`` prints in bash."""
    script = zadapter_in_bash("--show-completion", "bash")

    assert "complete -o default -F _zadapter_completion zadapter" in script


def zadapter_in_bash(*arguments, **variables):
    """Run the command line as a script named zadapter, and return its output."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    code = "import sys; sys.argv[0] = 'zadapter'; from zadapter.cli.app import app; app()"
    ended = subprocess.run(
        ["bash", "-c", '"$@"; exit $?', "bash", sys.executable, "-c", code, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout
