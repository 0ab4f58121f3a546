"""Drivers that are killed in the middle of a run, and the files of a table."""

import os
import signal
import time
from pathlib import Path

from zadapter.rewrite.recovery.notes import RunNote
from zadapter.table.staged_files import SHORT

LOGS = {"_delta_log", "metadata", "log", "stats", "layouts", "new"}
"""Folders without data files."""
OPTIMIZE = """
import json, sys
import zadapter, zadapter.spark

table, backend, keys, conf = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
zadapter.optimize(table, **keys, backend=backend, spark=zadapter.spark.session(conf))
"""


def data_files(folder):
    """Return all files in *folder*, of any name, except logs and notes."""
    # unlike Path.rglob, this ignores folders that vanish during the walk
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return {
        str(path)
        for path in found
        if not LOGS & set(path.relative_to(folder).parts)
        and not path.name.lstrip(".").startswith("migration-")
    }


def is_of_rows(path):
    """Return whether *path* is a data file, not the guard that zadapter writes before."""
    return path.endswith((".parquet", ".rows")) and "zadapter-is-writing" not in path


def killed(process, folder):
    """Kill a driver in the middle of its second job's write, and return its note."""
    notes = Path(folder, "_zadapter", "runs")
    staged = set()
    while process.poll() is None and not staged:
        time.sleep(0.005)
        note = next(map(read_note, notes.glob("*.json")), None)
        if note is None or not note.committed:
            continue
        (write,) = note.writes
        staged = {p for p in data_files(folder) if write.id[:SHORT] in p and is_of_rows(p)}
    os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert staged, errors[-3000:]
    # a process that was killed still ends
    while not all(each.is_dead() for each in note.processes):
        time.sleep(0.005)
    return note


def read_note(path):
    """Return the note of a run, or None while it is being written or deleted."""
    try:
        return RunNote.from_json(path.read_text())
    except (OSError, ValueError):
        return None


def unfinished(note):
    """Return what all files of the write that was killed have in their paths."""
    ((write, sent),) = note.writes.items()
    assert not sent
    return write.id[:SHORT]
