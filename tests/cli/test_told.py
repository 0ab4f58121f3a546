"""What was changed is said, whatever becomes of its report."""

import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import typer

from tests.report.test_optimize_report import PLAN, REPORT
from zadapter.cli.error_messages import mention_change, message_of, print_errors, report_change
from zadapter.cli.results import facts, with_pages
from zadapter.cli.rewrite import _done, _together
from zadapter.errors import ReportError, StoreError, UsageError
from zadapter.report.optimize_report import Report
from zadapter.rewrite.tally import Tally

COMMITTED = "sales.orders: committed version 42, unknown"
JOINED = replace(
    REPORT, plan=replace(PLAN, columns=(), row_group_share_before=None), share_after=0.0
)
"""A table without keys, whose small files were joined."""


def cells(result):
    """Return the cells of the table for people, row by row."""
    return list(zip(*([str(c) for c in col._cells] for col in result.table.columns), strict=True))  # noqa: SLF001


def broken(name, error):
    """Return a report one of whose forms fails."""

    @dataclass(frozen=True, kw_only=True)
    class Broken(Report):
        pass

    def fails(*_, **__):
        raise error

    setattr(Broken, name, fails)
    fields = {each: getattr(REPORT, each) for each in Report.__dataclass_fields__}
    return Broken(**fields)


def test_tables_without_keys_are_lines_of_a_report_of_several():
    """Nothing reads the text for people: there is no share of what filters read."""
    result = _together([("a", JOINED), ("b", JOINED.plan), ("c", REPORT)])

    (one, two, three) = cells(result)
    assert one == ("a", "800 of 950 -> 96", "", one[3])
    assert one[3].startswith("committed version 42, unknown; not rewritten: 12 files")
    assert two == ("b", "812 of 950 -> 97", "", "planned")
    assert three[2].startswith("87.5% of the rows -> 7.0%; by row group 50.0% -> 1.2%")
    assert result.exit_code == 0


@pytest.mark.parametrize("form", ["to_dict", "summary"])
@pytest.mark.parametrize("error", [KeyError("data scanned"), UnicodeError("x"), OSError("y")])
def test_a_report_that_fails_hides_no_other(form, error):
    """Its line says what failed, and that the change was committed."""
    result = _together([("a", REPORT), ("b", broken(form, error)), ("c", REPORT)])

    rows = cells(result)
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert rows[0][1:] == rows[2][1:]
    assert "error: b: committed version 42, unknown. Its report cannot be shown: " in rows[1][3]
    assert type(error).__name__ in rows[1][3]
    assert result.note == "2 of 3 tables done; failed: b"
    assert result.exit_code == 3
    assert "committed version 42, unknown" in result.documents[0]


def test_a_result_that_is_no_json_hides_no_other():
    """A value whose text fails is found table by table."""

    class Odd:
        def __str__(self):
            raise RuntimeError("no text")

    odd = replace(REPORT, run=Odd())
    result = _together([("a", REPORT), ("b", odd)])

    assert "RuntimeError: no text" in cells(result)[1][3]
    assert cells(result)[0][1] == "800 of 950 -> 96"


def test_a_page_that_cannot_be_written_hides_no_commit(tmp_path):
    """A folder is no file."""
    with pytest.raises(ReportError, match=r"^sales.orders: committed version 42, unknown\. Its r"):
        report_change(
            _done("sales.orders", REPORT),
            lambda: with_pages(REPORT, "sales.orders", None, tmp_path),
        )

    with pytest.raises(OSError, match="directory"):
        report_change(_done("t", PLAN), lambda: with_pages(PLAN, "t", None, tmp_path))


def test_what_was_done_stands_beside_the_result():
    """For whatever follows; nothing is said where nothing was done."""
    assert (
        report_change(_done("t", REPORT), lambda: facts({}, {})).done
        == "t: committed version 42, unknown"
    )
    assert report_change(_done("t", PLAN), lambda: facts({}, {})).done == ""
    assert _done("t", replace(REPORT, versions=())) == _done("t", UsageError("an error")) == ""


def test_an_interrupt_says_what_was_done():
    """As a failure does."""
    says = r"^interrupted\. Done before: t is committed$"

    with pytest.raises(KeyboardInterrupt, match=says), mention_change("t is committed"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [StoreError("full"), KeyError("x")])
def test_an_error_after_commits_says_which(error, capsys):
    """Whatever its type, which stays; on the command line, too."""
    tally = Tally(versions=[*range(300)])

    with pytest.raises(type(error)) as raised, tally.reporting_versions():
        raise error

    said = "Versions committed by this call: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 290 more]"
    assert said in message_of(raised.value)
    with pytest.raises(typer.Exit), print_errors():
        raise raised.value
    assert said in capsys.readouterr().err
    with pytest.raises(type(error)) as plain, Tally().reporting_versions():
        raise type(error)("first")
    assert "committed" not in message_of(plain.value)


CODE = """
import sys
import zadapter.cli.calls as calls
from zadapter.cli.results import Result, listing
table = listing(["row"], [["x" * 60] for _ in range(5_000)])
done = sys.argv[1]
calls._result = lambda call, conf, quiet: Result(documents=["1" * 300_000], table=table, done=done)
from zadapter.cli.app import app
app(["optimize", "db.t", "--by", "a", *sys.argv[2:]])
"""


def run(shell, done, *options):
    """Run a command whose call is done already; *shell* redirects its output."""
    line = f'"$0" -c "$1" "$2" "${{@:3}}" {shell}'
    command = ["bash", "-c", f"set -o pipefail; {line}", sys.executable, CODE, done, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("shell", ["| true", "> /dev/full"])
def test_output_that_fails_is_no_failure_of_the_change(shell, options):
    """The reader has gone, or the disk is full: one line says what was committed."""
    answer = run(shell, "db.t: committed version 3", *options)

    assert answer.returncode == 1
    assert answer.stderr.startswith(
        "error: db.t: committed version 3. Its report cannot be shown: "
    )
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_command_without_output_prints_nothing(options):
    """Its output was closed by whoever started it, who wants none."""
    answer = run(">&-", "db.t: committed version 3", *options)

    assert (answer.returncode, answer.stderr) == (0, "")


def test_a_command_that_changes_nothing_ends_quietly_with_its_reader():
    """As other programs in a pipe."""
    answer = run("| true", "")

    assert (answer.returncode, answer.stderr) == (1, "")


def test_an_error_without_a_stream_to_print_it_is_an_exit_code():
    """Both streams are closed."""
    assert run("> /dev/full 2>&-", "db.t: committed version 3").returncode == 1
