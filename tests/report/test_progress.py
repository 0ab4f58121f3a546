"""Progress on a terminal, without Spark: phases are real, their bytes are given."""

import io
import os
import pty
import re
import threading
from itertools import groupby

import pytest
from rich.console import Console

import zadapter
from zadapter.base.phases import Amounts, call, phase
from zadapter.report import progress

KB = 1024


@pytest.fixture
def fast(monkeypatch):
    """Measure all the time."""
    monkeypatch.setattr(progress, "POLL", 0.001)


@pytest.fixture
def terminal():
    """A console on a pseudo-terminal, and a function that ends it and returns what it shows."""
    master, slave = pty.openpty()
    file = os.fdopen(slave, "w", encoding="utf-8")
    chunks = []

    def read():
        # the end of the other side is an error on Linux
        try:
            while chunk := os.read(master, 4096):
                chunks.append(chunk)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()

    def ended():
        file.close()
        reader.join()
        return b"".join(chunks).decode()

    yield Console(file=file, width=100, legacy_windows=False), ended
    file.close()
    reader.join()
    os.close(master)


def shown(text):
    """Return the phases with their bytes in the order in which a terminal showed them."""
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)
    of_bytes = r" [\d.]+ of [\d.]+ \w+"
    found = re.findall(rf"lake/\w+ (\w+ing(?:{of_bytes})?)", plain)
    return [part for part, _ in groupby(found)]


def measuring(step, *amounts):
    """Let *step* process *amounts*, and return an event that is set when all were asked for."""
    given, asked = iter(amounts), threading.Event()

    def measure():
        amount = next(given, None)
        if amount is None:
            asked.set()
            return amounts[-1]
        return amount

    step.measure = measure
    return asked


@pytest.mark.usefixtures("fast")
def test_a_terminal_shows_phases_in_order_and_bytes_up_to_the_total(terminal):
    """Two jobs of 4 KB: bytes grow over both of them, and reach the total."""
    console, ended = terminal

    with zadapter.progress(console), call("optimize", "lake/t") as whole:
        with phase("plan", "lake/t"):
            whole.expected = 8 * KB
        with phase("fit", "lake/t"):
            pass
        for _ in range(2):
            with phase("write", "lake/t", expected=4 * KB) as step:
                amounts = Amounts(0.5, 0), Amounts(1.0, 1 * KB), Amounts(1.0, 3 * KB)
                assert measuring(step, *amounts).wait(30)
            with phase("verify", "lake/t"):
                pass
            with phase("commit", "lake/t"):
                pass

    written = ("writing 4 of 8 KB", "writing 8 of 8 KB")
    assert shown(ended()) == [
        *("planning", "sampling"),
        *("writing", "writing 0 of 8 KB", "reading 2 of 8 KB", "writing 1 of 8 KB"),
        *("writing 3 of 8 KB", written[0], "verifying", "committing"),
        *("writing", written[0], "reading 6 of 8 KB", "writing 5 of 8 KB"),
        *("writing 7 of 8 KB", written[1], "verifying", "committing"),
    ]


def test_a_terminal_shows_what_takes_time_beside_a_rewrite(terminal):
    """A lake is searched, its log is read and its tables are cleaned up, also by a dry run."""
    console, ended = terminal

    with zadapter.progress(console):
        for name in ("discover", "weigh", "clean"):
            with call("maintain", "lake/t"), phase(name, "lake/t"):
                pass

    assert shown(ended()) == ["finding", "reading", "cleaning"]


def test_what_is_done_never_goes_back():
    """Rows are read first and written then: at the same rate, half of the time is left between."""
    read = [Amounts(share / 10, 0) for share in range(1, 11)]
    written = [Amounts(1.0, share * KB) for share in range(1, 11)]

    done = [progress.describe(each, 10 * KB, 0, 10 * KB)[1] for each in read + written]

    assert done == sorted(done)
    assert done[9] == 5 * KB
    assert progress.seconds_left(600.0, done[9], 10 * KB) == 600.0
    assert done[-1] == 10 * KB


@pytest.mark.usefixtures("fast")
def test_a_failure_ends_the_display(terminal):
    """The error comes through, and nobody measures any more."""
    console, ended = terminal

    def fail():
        with (
            progress.progress(console),
            call("optimize", "lake/t"),
            phase("write", "lake/t", expected=KB) as step,
        ):
            assert measuring(step, Amounts(0.0, 512)).wait(30)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()

    assert shown(ended())[-1] == "writing 0.5 of 1 KB"
    assert all(thread.name != progress.WATCHER for thread in threading.enumerate())


@pytest.mark.usefixtures("fast")
def test_a_display_that_cannot_ask_spark_disturbs_nobody(terminal, capfd):
    """Spark may be gone before the display is."""
    console, ended = terminal
    asked = threading.Event()

    def gone():
        asked.set()
        raise ConnectionError("Spark is gone")

    with (
        progress.progress(console),
        call("optimize", "lake/t"),
        phase("write", "lake/t", expected=KB) as step,
    ):
        step.measure = gone
        assert asked.wait(30)

    assert shown(ended())[-1] == "writing 1 of 1 KB"
    assert capfd.readouterr().err == ""


def test_a_file_gets_no_display():
    """Logs stay readable."""
    written = io.StringIO()

    with progress.progress(Console(file=written)), phase("plan", "lake/t"):
        pass

    assert written.getvalue() == ""


class Gone(io.StringIO):
    """A terminal whose other side has gone."""

    def write(self, text):
        raise BrokenPipeError(text)


def test_a_terminal_that_is_gone_ends_nothing():
    """A commit may have landed just before; rich would end the process."""
    console, done = Console(file=Gone(), force_terminal=True), []

    with (
        progress.progress(console),
        call(
            "optimize",
            "lake/t",
        ),
        phase("write", "lake/t", expected=4),
    ):
        done.append("written")
    with progress.progress(console), call("optimize", "lake/t"), phase("commit", "lake/t"):
        done.append("committed")

    assert done == ["written", "committed"]
