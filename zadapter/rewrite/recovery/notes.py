"""Notes of runs beside their table, in ``_zadapter/runs/<id>.json``.

A run is a call that rewrites files job by job. Its note is written before the first file is staged,
records of each write whether its commit was sent, and is deleted when nothing is left to be done.
So a later run knows of each staged file of a dead run whether it can have been committed.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from zadapter.backend.contract import SideFiles
from zadapter.base.commit_attempts import Attempts
from zadapter.base.interrupts import ignoring_errors
from zadapter.errors import ReplacedTableError, UnknownOutcomeError
from zadapter.rewrite.recovery.processes import Process, current_process, jvm_process
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import StagedWrite, is_id

FOLDER = "_zadapter/runs"
NAME = re.compile(r"[0-9a-f]{32}\.json\Z")
"""Name of a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNote:
    """What a run has stated about itself."""

    id: str
    application: str
    """Id of the Spark application."""
    processes: tuple[Process, ...]
    """The processes that can send a commit: Python's and the JVM."""
    table: str
    """Digest of the table's id; empty: it had none yet."""
    place: str
    """Digest of the location below which its writes stage files."""
    version: int | None
    """The version that was read; None: the table had none yet."""
    started: datetime
    """By the clock of the driver; it is shown and not compared."""
    jobs: int
    """Number of jobs."""
    committed: int = 0
    """Number of jobs that were committed."""
    writes: Mapping[StagedWrite, bool] = field(default_factory=dict[StagedWrite, bool])
    """Writes that may have left files, and whether the commit of their files was sent."""
    ended: bool = False
    """Whether the run has ended by itself, and left files."""

    @property
    def path(self) -> str:
        """Path of the note, relative to the table."""
        return f"{FOLDER}/{self.id}.json"

    def is_of(self, snapshot: Snapshot, root: str) -> bool:
        """Return whether the run was one of this table, neither of a copy nor of its successor.

        Args:
            snapshot: The table.
            root: Location below which writes stage files today.
        """
        return self.place == hash_text(root) and self.table in ("", table_of(snapshot))

    def to_json(self) -> str:
        """Return the note as its file holds it."""
        stored: dict[str, Any] = {
            "id": self.id,
            "application": self.application,
            "processes": [process.to_dict() for process in self.processes],
            "table": self.table,
            "place": self.place,
            "version": self.version,
            "started": self.started.isoformat(),
            "jobs": self.jobs,
            "committed": self.committed,
            "writes": [
                {"id": write.id, "layout": write.layout, "sent": sent}
                for write, sent in self.writes.items()
            ],
            "ended": self.ended,
        }
        return json.dumps(stored)

    @classmethod
    def from_json(cls, text: str) -> "RunNote":
        """Return the note in a file.

        Raises:
            ValueError, LookupError, TypeError: It is incomplete, or of another version.
        """
        stored: dict[str, Any] = json.loads(text)
        note = cls(
            id=stored["id"],
            application=str(stored["application"]),
            processes=tuple(map(Process.from_dict, stored["processes"])),
            table=stored["table"],
            place=stored["place"],
            version=None if stored["version"] is None else int(stored["version"]),
            started=datetime.fromisoformat(stored["started"]),
            jobs=int(stored["jobs"]),
            committed=int(stored["committed"]),
            writes={
                StagedWrite.from_dict(write): _flag(write["sent"]) for write in stored["writes"]
            },
            ended=_flag(stored["ended"]),
        )
        if not is_id(note.id) or not note.processes or note.started.tzinfo is None:
            raise ValueError("not a note")
        return note


class Run:
    """A run and its note. Threads may write side by side."""

    def __init__(self, side_files: SideFiles | None, note: RunNote) -> None:
        """Begin a run; its note is written with the first write.

        Args:
            side_files: The files beside the table; None: its format cannot be recovered.
            note: The run without writes.
        """
        self._side_files = side_files
        self._note = note
        self._written = False
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        """Id of the run."""
        return self._note.id

    def start(self, write: StagedWrite) -> None:
        """Note that *write* is going to stage files."""
        with self._lock:
            self._set(write, sent=False)
            self._store()

    @contextmanager
    def sending(self, write: StagedWrite, attempts: Attempts) -> Iterator[None]:
        """Note that the commit of *write* is going to be sent, and then what became of it.

        Args:
            write: The write.
            attempts: The attempts to commit it within the block.
        """
        try:
            with self._lock:
                self._set(write, sent=True)
                self._store()
            yield
        except UnknownOutcomeError:
            raise  # its files may be needed
        except ReplacedTableError:
            self._forget(write)  # a copy of the old table may need them
            raise
        except BaseException:
            if not attempts.may_have_landed:
                with self._lock:
                    self._set(write, sent=False)
            raise
        # nothing is stored, so that nothing can fail after a commit
        self._forget(write, committed=1)

    def close(self) -> None:
        """Delete the note, unless files of the run are left, or may be."""
        if self._side_files is None or not self._written:
            return
        with ignoring_errors():  # the note stays for a later run to look at
            for write, sent in self._note.writes.items():
                if not sent and not self._side_files.list_staged(write):
                    self._forget(write)
            if self._note.writes:
                self._note = replace(self._note, ended=True)
                self._store()
            else:
                self._side_files.delete(self._note.path)

    def _forget(self, write: StagedWrite, *, committed: int = 0) -> None:
        with self._lock:
            note = self._note
            writes = {each: sent for each, sent in note.writes.items() if each != write}
            self._note = replace(note, writes=writes, committed=note.committed + committed)

    def _set(self, write: StagedWrite, *, sent: bool) -> None:
        self._note = replace(self._note, writes={**self._note.writes, write: sent})

    def _store(self) -> None:
        if self._side_files is not None:
            self._side_files.write(self._note.path, self._note.to_json().encode())
            self._written = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The driver of a run."""

    application: str
    """Id of the Spark application."""
    processes: tuple[Process, ...]
    """The processes that can send a commit: Python's and the JVM."""

    @classmethod
    def of(cls, spark: Any) -> "Driver":
        """Return the driver of a session."""
        application = str(spark.sparkContext.applicationId)
        return cls(application=application, processes=(current_process(), jvm_process(spark)))


def begin_run(
    side_files: SideFiles | None, snapshot: Snapshot, driver: Driver, run: str, jobs: int
) -> Run:
    """Begin a run.

    Args:
        side_files: The files beside the table; None: its format cannot be recovered.
        snapshot: The version that is read.
        driver: The driver.
        run: Id of the run.
        jobs: Number of jobs.
    """
    note = RunNote(
        id=run,
        application=driver.application,
        processes=driver.processes,
        table=table_of(snapshot),
        place=hash_text(snapshot.location if side_files is None else side_files.root),
        version=snapshot.version,
        started=datetime.now(timezone.utc),
        jobs=jobs,
    )
    return Run(side_files, note)


def table_of(snapshot: Snapshot) -> str:
    """Return a digest of the table's id; empty for a folder that is not registered as a table."""
    return "" if snapshot.version is None else hash_text(snapshot.id)


def hash_text(text: str) -> str:
    """Return a digest of a text, which may contain a secret."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _flag(stored: object) -> bool:
    if not isinstance(stored, bool):
        raise TypeError("not a flag")
    return stored
