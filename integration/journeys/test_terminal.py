"""The command line in a terminal: the display moves and vanishes, and Ctrl-C ends it."""

import pytest

from integration.kit.kills import data_files
from integration.kit.terminal import CTRL_C, Terminal
from integration.kit.witnesses import delta_table, of_delta

COMMAND = "zadapter optimize lake/events --by a,b --target-file-size"
LAST = 5
"""Frames whose moving lines are the display."""


@pytest.fixture
def events(user):
    """A Delta table that its user has made without Spark."""
    folder = user.folder / "lake" / "events"
    delta_table(str(folder), 60_000)
    return folder


def still(terminal):
    """Return the lines that stood still on the last frames before the end."""
    *_, end = terminal.frames
    before = [frame for frame in terminal.frames if frame != end][-LAST:]
    assert len(before) == LAST
    return set.intersection(*map(set, before))


def test_a_table_is_optimized(user, events):
    """The display moves and leaves nothing; the report is on standard output, and true."""
    before, files = of_delta(events), data_files(events)
    terminal = Terminal(f"{COMMAND} 64KB > report.txt", user.folder, user.environment())

    code = terminal.run()

    report = (user.folder / "report.txt").read_text()
    assert code == 0, terminal.lines
    assert set(terminal.lines) <= still(terminal)
    assert "data scanned" in report
    assert "60,000" in report
    assert of_delta(events) == before
    assert len(data_files(events) - files) > 4


@pytest.mark.slow
def test_ctrl_c_while_files_are_written(user, events):
    """The shell's exit code, one line, and the table as it was. The same call works afterwards."""
    before, files = of_delta(events), data_files(events)
    terminal = Terminal(f"{COMMAND} 4KB", user.folder, user.environment())

    code = terminal.run(CTRL_C, when=lambda: data_files(events) > files)

    assert terminal.pressed
    assert code == 130, terminal.lines
    (line,) = set(terminal.lines) - still(terminal)
    assert line.endswith("interrupted; nothing was committed")
    assert data_files(events) == files
    assert of_delta(events) == before
    again = Terminal(f"{COMMAND} 64KB", user.folder, user.environment())
    assert again.run() == 0, again.lines
    assert any("data scanned" in line for line in again.lines)
    assert of_delta(events) == before
