"""Files of dead runs, without Spark: what is removed, what stays, and what is said."""

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

from tests.kit.builders import snapshot
from tests.kit.side_files import Memory
from zadapter.base.commit_attempts import Attempts
from zadapter.errors import ConflictError, ReplacedTableError, StoreError, UnknownOutcomeError
from zadapter.rewrite.recovery.leftovers import DEAD_AFTER, clear
from zadapter.rewrite.recovery.notes import FOLDER, Driver, begin_run
from zadapter.rewrite.recovery.processes import Process, current_process
from zadapter.table.staged_files import StagedWrite, new_id

TABLE = snapshot(pa.schema([("a", pa.int64())]))
NOW = datetime.now(timezone.utc)
OLD = NOW - DEAD_AFTER - timedelta(hours=1)


@pytest.fixture
def memory():
    return Memory(TABLE.location)


@pytest.fixture(scope="module")
def dead():
    """A process that was killed."""
    code = (
        "import json; from zadapter.rewrite.recovery.processes import current_process;"
        "print(json.dumps(current_process().to_dict()), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        process = Process.from_dict(json.loads(child.stdout.readline()))
        assert not process.is_dead()
        child.kill()
        while not process.is_dead():  # nobody has waited for it yet
            time.sleep(0.005)
    assert process.is_dead()
    return process


def a_run(memory, *processes, jobs=3):
    driver = Driver(application="local-1", processes=processes)
    return begin_run(memory, TABLE, driver, new_id(), jobs)


def a_write():
    return StagedWrite(id=new_id(), layout="0123456789abcdef")


def live(*writes):
    """Return a file table whose files have the ids of *writes*."""
    return pa.table({"path": [f"data/{each.id}/part-0.parquet" for each in writes] or ["old"]})


def died(memory, *processes, sent=False):
    """Have a run commit one write, begin another one, and die."""
    run, first, second = a_run(memory, *processes), a_write(), a_write()
    run.start(first)
    with run.sending(first, Attempts()):
        memory.stage(first)
    run.start(second)
    memory.stage(second)
    if sent:
        run.sending(second, Attempts()).__enter__()
    return run, first, second


def test_what_a_dead_run_has_not_sent_is_removed(memory, dead):
    """Its committed files stay; the note goes; the report says so once."""
    run, first, _ = died(memory, dead)

    (line,) = clear(memory, TABLE, live(first))

    assert f"run {run.id}" in line
    assert "ended after 1 of 3 jobs; removed 1 file of 1 KB that it had staged" in line
    assert set(memory.writes) == {first.id}
    assert memory.files == {}
    assert clear(memory, TABLE, live(first)) == ()


def test_a_commit_that_was_sent_and_not_seen_stays(memory, dead):
    """It may still land; every run says so until the format's own clean-up has removed it."""
    _, first, second = died(memory, dead, sent=True)

    for _ in range(2):
        (line,) = clear(memory, TABLE, live(first))
        assert "kept 1 file of 1 KB of a commit of unknown outcome" in line
        assert set(memory.writes) == {first.id, second.id}
    memory.remove(second)
    clear(memory, TABLE, live(first))
    assert memory.files == {}


@pytest.mark.parametrize("sent", [True, False])
def test_a_live_file_stays_whatever_the_note_says(memory, dead, sent):
    """Its commit has landed before the process died."""
    _, first, second = died(memory, dead, sent=sent)

    (line,) = clear(memory, TABLE, live(first, second))

    assert "ended after 2 of 3 jobs" in line
    assert set(memory.writes) == {first.id, second.id}
    assert memory.files == {}


def test_a_running_process_is_left_alone(memory, dead):
    """As long as one of the two that can commit lives, nothing is removed or said."""
    _, first, second = died(memory, dead, current_process())

    assert clear(memory, TABLE, live(first)) == ()
    assert set(memory.writes) == {first.id, second.id}
    assert len(memory.files) == 1


@pytest.mark.parametrize(
    "elsewhere", [{"host": "other"}, {"boot": "other"}, {"namespace": "other"}, {"boot": ""}]
)
@pytest.mark.parametrize("ages", [(NOW, OLD), (OLD, NOW), (OLD, OLD)])
def test_of_another_machine_only_age_is_known(memory, dead, elsewhere, ages):
    """Both the note and every file must be older than any write lasts."""
    noted, modified = ages
    removed = ages == (OLD, OLD)
    memory.now = noted
    run, first, second = died(memory, dead, replace(dead, **elsewhere))
    memory.stage(second, modified)
    memory.now = NOW

    (line,) = clear(memory, TABLE, live(first))

    assert (second.id not in memory.writes) == removed
    assert bool(memory.files) != removed
    assert removed or f"run {run.id}" in line
    assert removed or "local-1 on" in line


@pytest.mark.parametrize("ahead", [timedelta(days=8), timedelta(days=-8), timedelta(days=4_000)])
@pytest.mark.parametrize("old", [True, False])
def test_only_the_clock_of_the_store_counts(memory, dead, monkeypatch, ahead, old):
    """The clock of the machine that cleans, or of the driver, may differ by days or years."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW.astimezone(tz) + ahead

    for module in ("notes", "leftovers"):
        monkeypatch.setattr(f"zadapter.rewrite.recovery.{module}.datetime", Clock)
    memory.now = OLD if old else NOW
    _, first, second = died(memory, replace(dead, host="other"))
    memory.now = NOW

    clear(memory, TABLE, live(first))

    assert (second.id not in memory.writes) == old
    assert len(memory.files) == (not old)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:40],
        lambda _: "",
        lambda _: "[]",
        lambda text: text.replace('"sent": false', '"sent": "no"'),
        lambda text: text.replace('"sent": false', '"send": false'),
        lambda text: text.replace('"layout": "0', '"layout": "../0'),
        lambda text: text.replace('"writes": [{"id": "', '"writes": [{"id": "../'),
        lambda text: json.dumps(json.loads(text) | {"processes": []}),
        lambda text: json.dumps(json.loads(text) | {"id": new_id()}),
        lambda text: json.dumps(json.loads(text) | {"place": "elsewhere"}),
        lambda text: json.dumps(json.loads(text) | {"table": "another"}),
    ],
)
def test_a_note_that_does_not_say_what_is_needed_removes_nothing(memory, dead, damage):
    """Torn, of another version, made up, or of a table that was here before."""
    _, first, second = died(memory, dead)
    ((path, data),) = memory.files.items()
    memory.files[path] = damage(data.decode()).encode()

    (line,) = clear(memory, TABLE, live(first))

    assert path in line
    assert set(memory.writes) == {first.id, second.id}
    assert path in memory.files


def test_writes_that_staged_elsewhere_are_not_forgotten(memory, dead):
    """The table's data folder was changed since, so that nothing is listed."""
    _, first, _ = died(memory, dead)
    memory.root, memory.writes = f"{TABLE.location}/elsewhere", {}

    assert "names another table or location" in clear(memory, TABLE, live(first))[0]
    assert memory.files


def test_a_note_that_is_older_than_a_commit_removes_nothing(memory, dead):
    """A backup has put it back; the files are live no more, but an older version needs them."""
    _, first, second = died(memory, dead)
    memory.named = {second.id}

    (line,) = clear(memory, TABLE, live(first))

    assert "ended after 2 of 3 jobs" in line
    assert set(memory.writes) == {first.id, second.id}


@pytest.mark.parametrize(
    "method",
    ["list_modification_times", "read", "list_staged", "is_named", "remove", "write", "delete"],
)
def test_a_store_that_fails_stops_no_run(memory, dead, method):
    """The line says why; another run tries again."""
    _, first, second = died(memory, dead, sent=method == "write")
    memory.broken = {method}

    assert len(clear(memory, TABLE, live(first))) == 1
    assert memory.files
    memory.broken = set()
    clear(memory, TABLE, live(first))
    assert (second.id in memory.writes) == (method == "write")


def test_a_run_that_ends_leaves_no_note(memory):
    """Committed, lost to another writer, or failed in the middle, and discarded."""
    run, committed, lost, failed = a_run(memory, current_process()), a_write(), a_write(), a_write()
    run.start(committed)
    assert list(memory.files) == [f"{FOLDER}/{run.id}.json"]
    with run.sending(committed, Attempts()):
        memory.stage(committed)
    run.start(lost)
    with suppress(ConflictError), run.sending(lost, Attempts()):
        raise ConflictError("lost")
    run.start(failed)

    run.close()

    assert memory.files == {}


@pytest.mark.parametrize(
    ("error", "may_have_landed", "removed"),
    [
        (ConflictError("lost"), False, True),
        (KeyError("a bug"), False, True),
        (KeyError("a bug"), True, False),
        (KeyboardInterrupt(), False, True),
        (KeyboardInterrupt(), True, False),
        (UnknownOutcomeError("t", "1"), False, False),
        (ReplacedTableError("t"), False, False),
    ],
)
def test_files_that_could_not_be_discarded_are_removed_later(
    memory, error, may_have_landed, removed
):
    """By the same process, too; but not if the commit may have landed, whatever was raised."""
    run, write, attempts = a_run(memory, current_process()), a_write(), Attempts()
    run.start(write)
    memory.stage(write)
    with suppress(type(error)), run.sending(write, attempts):
        attempts.may_have_landed = may_have_landed
        raise error
    run.close()

    clear(memory, TABLE, live())

    assert (write.id not in memory.writes) == removed


def test_a_commit_is_not_sent_if_the_note_cannot_say_so(memory):
    """Otherwise, a later run could take its files for never sent."""
    run, write, sent = a_run(memory, current_process()), a_write(), []
    run.start(write)
    memory.stage(write)
    memory.broken = {"write"}

    with pytest.raises(StoreError), run.sending(write, Attempts()):
        sent.append(write)

    assert sent == []
