"""Removal of the files that dead runs have staged and not committed.

A file is removed only if its run is certainly dead, its commit was certainly never sent, and no
version that is kept names a file with the id of its write. What cannot be read or is in doubt
stays, with a line in the report. Ages are differences of times of the store's clock: the clocks of
machines may differ by days.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.contract import SideFiles
from zadapter.base.interrupts import ignoring_errors, reraise
from zadapter.base.java_errors import first_line
from zadapter.base.quantities import show, show_count
from zadapter.rewrite.recovery.notes import FOLDER, NAME, RunNote
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import SHORT, StagedFile, StagedWrite, new_id

DEAD_AFTER = timedelta(days=7)
"""Age of a note, and of all files of its run, after which a run on another machine is dead: no
write lasts as long. Delta's VACUUM spares unknown files for as long."""
_CLEAN_UP = "the format's own clean-up (VACUUM, remove_orphan_files, zadapter.vacuum) removes them"


def clear(side_files: SideFiles, snapshot: Snapshot, files: pa.Table) -> tuple[str, ...]:
    """Remove the uncommitted files of dead runs; return a line for each run that did not end.

    Args:
        side_files: The files beside the table.
        snapshot: The newest version of the table.
        files: Its file table.
    """
    try:
        notes = {
            name: time
            for name, time in side_files.list_modification_times(FOLDER).items()
            if NAME.match(name)
        }
    except Exception as error:  # noqa: BLE001 - the run itself goes on
        reraise(error)
        return (f"notes of earlier runs cannot be listed: {first_line(error)}",)
    ages = _Ages(side_files, notes)
    return tuple(filter(None, (_clear_run(ages, snapshot, files, name) for name in sorted(notes))))


def read_clock(side_files: SideFiles) -> int:
    """Return the present time, as the store gives it to a new file, in milliseconds since 1970."""
    name = f"{new_id()}.now"
    path = f"{FOLDER}/{name}"
    side_files.write(path, b"")
    try:
        return side_files.list_modification_times(FOLDER)[name]
    finally:
        side_files.delete(path)


@dataclass(frozen=True)
class _Ages:
    """Notes beside a table, and when they were written, by the store's clock."""

    side_files: SideFiles
    written: Mapping[str, int]
    """Milliseconds since 1970, by the note's name."""

    @cached_property
    def current_time(self) -> int:
        """The present time by the store's clock."""
        return read_clock(self.side_files)


def _clear_run(ages: _Ages, snapshot: Snapshot, files: pa.Table, name: str) -> str:
    """Remove the files of one run if it is dead; return a line for the report, or nothing."""
    side_files, path = ages.side_files, f"{FOLDER}/{name}"
    try:
        data = side_files.read(path)
        note = None if data is None else RunNote.from_json(data.decode())
    except Exception as error:  # noqa: BLE001 - the note lacks what is needed
        reraise(error)
        return f"{path} cannot be read, so the files of that run stay; delete it; {_CLEAN_UP}"
    if note is None:
        return ""  # the run has ended meanwhile
    if note.path != path or not note.is_of(snapshot, side_files.root):
        return f"{path} names another table or location; delete it if that is wrong; {_CLEAN_UP}"
    try:
        dead = _is_dead(ages, note)
        written = ages.written[name]
        return _remove_files(side_files, note, snapshot, files) if dead else _running(note, written)
    except Exception as error:  # noqa: BLE001 - the run itself goes on
        reraise(error)
        return f"{_title(note)} ended early; its files stay: {first_line(error)}"


def _running(note: RunNote, written: int) -> str:
    if any(process.is_alive() for process in note.processes):
        return ""
    until = datetime.fromtimestamp(written / 1_000, timezone.utc) + DEAD_AFTER
    return (
        f"{_title(note)}, {note.application} on {note.processes[0].host}, is running, or its files "
        f"stay until a run after {until:%Y-%m-%d %H:%M} UTC"
    )


def _is_dead(ages: _Ages, note: RunNote) -> bool:
    """Return whether a run has certainly ended."""
    if note.ended or all(process.is_dead() for process in note.processes):
        return True
    if any(process.is_alive() for process in note.processes):
        return False
    last = ages.current_time - DEAD_AFTER // timedelta(milliseconds=1)
    staged = [file for write in note.writes for file in ages.side_files.list_staged(write)]
    times = [ages.written[note.path.rpartition("/")[2]], *(file.modified for file in staged)]
    return max(times) < last


def _remove_files(side_files: SideFiles, note: RunNote, snapshot: Snapshot, files: pa.Table) -> str:
    """Remove the files of a dead run, and its note if nothing of it is left.

    Returns: A line for the report.
    """
    live = {write for write in note.writes if _is_live(write, files)}
    sent = {write for write, was_sent in note.writes.items() if was_sent}
    # a copy of the note may have been put back that is older than the run's commit
    live |= {
        write
        for write in note.writes.keys() - live - sent
        if side_files.is_named(write, note.version, snapshot.version)
    }
    removed = list[StagedFile]()
    for write in note.writes.keys() - live - sent:
        removed += side_files.list_staged(write)
        side_files.remove(write)
    found = {write: side_files.list_staged(write) for write in note.writes.keys() - live}
    left = {write: staged for write, staged in found.items() if staged}
    if left:
        writes = {write: write in sent for write in left}
        rest = replace(note, writes=writes, ended=True, committed=note.committed + len(live))
        side_files.write(note.path, rest.to_json().encode())
    else:
        with ignoring_errors():  # the next run finds it once more
            side_files.delete(note.path)
    doubtful = [file for write in left.keys() & sent for file in left[write]]
    done = note.committed + len(live)
    parts = [f"{_title(note)} ended after {done} of {show_count(note.jobs, 'jobs')}"]
    parts += [f"removed {_describe_files(removed)} that it had staged"] if removed else []
    if doubtful:
        parts.append(
            f"kept {_describe_files(doubtful)} of a commit of unknown outcome; {_CLEAN_UP}"
        )
    return "; ".join(parts)


def _is_live(write: StagedWrite, files: pa.Table) -> bool:
    return bool(pc.any(pc.match_substring(files["path"], write.id[:SHORT])).as_py())


def _title(note: RunNote) -> str:
    return f"run {note.id} of {note.started:%Y-%m-%d %H:%M} UTC"


def _describe_files(files: Sequence[StagedFile]) -> str:
    return f"{show_count(len(files), 'files')} of {show(sum(file.size for file in files))}"
