"""What commands print, on any terminal."""

import io
import json
import logging
import sys

import pytest

from zadapter.cli.calls import _print_log
from zadapter.cli.results import (
    Result,
    accept_any_text,
    as_json,
    facts,
    listing,
    replace_file,
    show,
)
from zadapter.cli.rewrite import _together
from zadapter.errors import UsageError
from zadapter.report.plan import Plan

FACTS = {
    "table": "lake/events",
    "format": "delta",
    "version": 1,
    "columns": ("a",),
    "curve": "adaptive",
    "target_file_size": 1 << 20,
    "groups": 0,
    "files_before": 8,
    "files_asked": 8,
    "files_rewritten": 0,
    "files_written": 0,
    "bytes_rewritten": 0,
    "rows": 0,
    "share_before": 0.5,
    "share_after": 0.6,
}


@pytest.fixture
def terminal(monkeypatch):
    """Replace standard output by one of an encoding; return a function that reads it."""

    def replace(encoding):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        accept_any_text()

        def printed():
            sys.stdout.flush()
            return raw.getvalue().decode(encoding)

        return printed

    return replace


def files(path):
    """Return a result with one file."""
    found = [{"path": path, "rows": 1234}]
    table = listing(["path", "rows"], [[file["path"], file["rows"]] for file in found])
    return Result(documents=[as_json(found)], table=table, note="1 file, done ☑")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("path", ["ä/東京/😀", "a\x1b[2Jb", "lone\udcff", "a\tb\x00"])
def test_any_text_can_be_printed_on_any_terminal(terminal, encoding, path):
    """As a table and as JSON; nothing moves the cursor, and the JSON has the text as it was."""
    printed = terminal(encoding)

    show(files(path), as_json=False, quiet=False)
    table = printed()
    show(files(path), as_json=True, quiet=False)
    document = printed().removeprefix(table)

    assert "1,234" in table
    assert not {"\x1b", "\x00", "\t"} & set(table)
    assert len({len(line) for line in table.splitlines()[:-1]}) == 1 or encoding == "utf-8"
    assert json.loads(document)[0]["path"] == path


def test_a_quiet_command_prints_only_the_result(terminal):
    """No remark below the table."""
    printed = terminal("utf-8")

    show(files("a"), as_json=False, quiet=True)

    assert "done" not in printed()


def test_a_long_row_is_one_line_in_a_file(terminal):
    """So that other programs can search it."""
    printed = terminal("utf-8")

    show(files("a" * 500), as_json=False, quiet=False)

    assert "a" * 500 in printed()


def test_facts_are_printed_by_name(terminal):
    """Values that look like markup of the terminal library are printed as they are."""
    printed = terminal("ascii")

    show(facts({}, {"table": "[bold]t[/bold]"}), as_json=False, quiet=False)

    assert "[bold]t[/bold]" in printed()


def test_the_log_is_printed_from_a_level(capsys):
    """On standard error, and no longer than the command runs: phases only with --verbose."""
    logger = logging.getLogger("zadapter.rewrite")
    for level in (logging.INFO, logging.WARNING, logging.ERROR):
        with _print_log(level):
            logger.info("phase from level %s", level)
            logger.warning("download from level %s", level)
    logger.warning("after the call")

    out, err = capsys.readouterr()
    assert [line.partition(" zadapter.rewrite: ")[2] or line for line in err.splitlines()] == [
        "phase from level 20",
        "download from level 20",
        "zadapter: download from level 30",
    ]
    assert out == ""


def test_a_declined_table_is_a_line_of_the_report_of_several():
    """With what a rewrite would have brought, beside a table that failed."""
    declined = Plan(**FACTS, groups_declined=2)

    result = _together([("lake/events", declined), ("lake/gone", UsageError("no such table"))])

    text = str(result.table.columns[3]._cells)  # noqa: SLF001 - rich has no public way
    assert "nothing to gain: range filters scan 50.0% of the rows -> 60.0%" in text
    assert "error: no such table" in text
    (document,) = map(json.loads, result.documents)
    assert document[1] == {
        "table": "lake/gone",
        "error": "no such table",
        "class": "UsageError",
        "retryable": False,
        "committed": False,
    }
    assert result.exit_code == 3


def test_a_file_that_others_read_is_replaced_as_a_whole(tmp_path):
    """Who has begun to read sees all of the old file; who may not write may read the new one."""
    path = tmp_path / "lake.prom"
    path.write_text("old\n" * 1_000)
    path.chmod(0o600)
    with path.open() as reader:
        replace_file(path, "new\n")

        assert reader.read() == "old\n" * 1_000
    (tmp_path / "other").touch()
    assert path.read_text() == "new\n"
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path):
    path = tmp_path / "lake.prom"
    path.write_text("old\n")

    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "new \ud800")

    assert path.read_text() == "old\n"
    assert [*tmp_path.iterdir()] == [path]
