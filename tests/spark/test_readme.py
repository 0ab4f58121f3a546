"""The README says what is so: every block of code in it runs."""

import importlib.util
import re
import shlex
from importlib.metadata import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from zadapter.cli.app import app

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
COMMANDS = [
    command.strip()
    for language, text in BLOCKS
    if language == "shell"
    for line in text.splitlines()
    if not line.startswith("#")
    for command in line.split("&&")
    if command.strip()
]


def commands(program):
    """Return the arguments of each call of *program* in the README."""
    split = [shlex.split(command) for command in COMMANDS]
    return [arguments for name, *arguments in split if name == program]


@pytest.fixture
def events(spark, tmp_path, monkeypatch):
    """The reader's folder: a Delta table lake/events of many small files, rows by arrival."""
    rows = spark.range(100_000).selectExpr(
        "timestamp_seconds(1750000000 + id * 7919 % 100003) AS event_time",
        "id * 31337 % 9973 AS user_id",
        "sha(string(id)) AS page",
    )
    rows.repartition(12).write.format("delta").save(str(tmp_path / "lake" / "events"))
    monkeypatch.chdir(tmp_path)
    hadoop = spark._jvm.org.apache.hadoop.fs  # noqa: SLF001 - the JVM has a working directory, too
    local = hadoop.FileSystem.getLocal(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    before = local.getWorkingDirectory()
    local.setWorkingDirectory(hadoop.Path(str(tmp_path)))
    yield "lake/events"
    local.setWorkingDirectory(before)


def contents(spark, table):
    """Return all rows in an order of their own."""
    return sorted(spark.read.format("delta").load(table).collect())


def test_python_blocks_run_one_after_the_other(spark, events):
    """As if typed into one session; and whatever they do, the rows stay."""
    before = contents(spark, events)
    typed = {}

    for language, text in BLOCKS:
        if language == "python":
            exec(text, typed)

    assert typed["report"].files_removed == 12
    assert typed["plan"].share_after < typed["plan"].share_before
    assert contents(spark, events) == before


def test_command_lines_run_one_after_the_other(spark, events):
    """Exit code 0 each; the facts printed are those the README shows."""
    before = contents(spark, events)
    shown = next(text for language, text in BLOCKS if language == "text")

    answers = [CliRunner().invoke(app, arguments) for arguments in commands("zadapter")]

    assert [answer.stderr for answer in answers if answer.exit_code] == []
    assert labels(answers[0].stdout) == labels(shown) != []
    assert contents(spark, events) == before


def labels(table):
    """Return the first column of a table drawn with lines."""
    return [line.split("│")[1].strip() for line in table.splitlines() if "│" in line]


def test_what_is_to_be_installed_exists():
    """Extras are declared, names are ours; pip itself cannot run within a test."""
    named = [arguments[-1] for arguments in commands("pip")]
    declared = metadata("zadapter").get_all("Provides-Extra")

    assert len(named) > 1
    for requirement in named:
        name, _, extras = requirement.removesuffix("]").partition("[")
        assert name in {".", "zadapter"}
        assert set(extras.split(",")) <= set(declared)


def test_what_is_to_be_run_exists():
    """Modules can be found, and no command is of a kind that nobody checks."""
    for dash_m, module, *_ in commands("python"):
        assert dash_m == "-m"
        assert importlib.util.find_spec(f"{module}.__main__" if is_package(module) else module)
    assert {command.split()[0] for command in COMMANDS} == {"pip", "pytest", "python", "zadapter"}


def is_package(module):
    """Tell whether *module* is a folder, which ``python -m`` needs a ``__main__`` in."""
    return importlib.util.find_spec(module).submodule_search_locations is not None
