"""Moves of files, with concurrent readers and writers.

A log entry lists the files before the first one moves. From then on, each file is at its old or new
path, and versions name the new one. Every writer completes unfinished moves; moves are idempotent
and may run in several writers at a time. A second entry states that all files are in place.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from zadapter.base.commit_attempts import Attempts
from zadapter.base.locations import map_files
from zadapter.errors import ConflictError, ForeignChangeError
from zadapter_parquet.format.entries import FORMAT, Entry, LogOperation, StatsPart
from zadapter_parquet.format.paths import HIDDEN, check_path, former, successor
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files, hive_names
from zadapter_parquet.store.contract import Files


@dataclass(frozen=True, kw_only=True)
class Moves:
    """Files to rename, and files to delete."""

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Old path by new path."""
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes by new path."""
    deletes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Visible files that the newest version does not need: bytes by path."""

    @property
    def visible(self) -> set[str]:
        """Visible paths that are created or deleted."""
        return {*self.deletes, *(new for new in self.names if not new.startswith(f"{HIDDEN}/"))}


def settle(log: Log, files: Files, table: str) -> Entry:
    """Complete unfinished moves, and return the current version.

    Raises:
        ConflictError: Other writers committed first in all attempts.
        ForeignChangeError: A file is neither at its old nor at its new path.
        UnsupportedError: Files that another table shares are being published.
    """
    for _ in Attempts():
        with suppress(ConflictError):
            return finish_moves(log, files, table, log.head())
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


def finish_moves(log: Log, files: Files, table: str, head: Entry) -> Entry:
    """Return *head*, or a later version with the same content and all files in place.

    Files of a table in log format 1 are renamed to their current names. Files that another table
    shares are not moved: the list of moves then stays unfinished.

    Raises:
        ConflictError: Another writer has added a version.
        ForeignChangeError: A file is neither at its old nor at its new path.
        UnsupportedError: Files that another table shares are being published.
    """
    if head.format < FORMAT:
        head = begin(log, files, head, LogOperation.MOVE, _plan_renames(files))
    if head.moves is None:
        return head
    moves = pending(files, head)
    if moves.visible:
        shared_files.refuse(files, table)
    elif shared_files.notes(files):
        return head
    _finish(log, files, table, head, moves)
    fields: dict[str, Any] = {"visible": head.version + 1} if moves.visible else {}
    operation = LogOperation.PUBLISH if moves.visible else LogOperation.MOVE
    done = commit_entries.build_next(
        log, head, operation, transaction=uuid4().hex, moves=None, **fields
    )
    log.claim(done)
    return done


def begin(
    log: Log, files: Files, head: Entry, operation: LogOperation, moves: Moves, **fields: Any
) -> Entry:
    """Commit the entry that lists the files to move.

    Raises:
        ConflictError: Another writer has added a version; nothing is moved.
    """
    part = write(files, moves)
    entry = commit_entries.build_next(
        log, head, operation, transaction=uuid4().hex, moves=part, **fields
    )
    log.claim(entry)
    return entry


def _plan_renames(files: Files) -> Moves:
    """Return the moves from former to current names, except of files that Spark is writing."""
    sizes = {f.path: f.size for f in files.list_files(HIDDEN) if successor(f.path) != f.path}
    # listed second: a guard exists before the files that it guards
    guarded = {
        _folder(file.path)
        for file in files.list_files(f"{HIDDEN}/data")
        if file.path.endswith(f"/{guard_files.WRITING}")
    }
    old = [path for path in sizes if _folder(path) not in guarded]
    return Moves(
        names={successor(path): path for path in old},
        sizes={successor(path): sizes[path] for path in old},
    )


def _folder(path: str) -> str:
    """Return the folder of the commit that wrote *path*."""
    return "/".join(path.split("/")[:3])


def _finish(log: Log, files: Files, table: str, head: Entry, moves: Moves) -> None:
    """Move the remaining files, then delete the listed ones.

    Raises:
        ConflictError: Another writer has completed the moves.
        ForeignChangeError: A file is neither at its old nor at its new path, or must not be
            deleted; nothing was deleted.
    """
    guarded = guard_files.put(files, moves.visible, str(head.version))
    files.move({old: new for new, old in moves.names.items()})
    if not moves.visible:
        guard_files.note(files)
        return
    listed = list(files.list_files())
    newest = log.newest()
    if newest is None or newest.version != head.version:
        if newest is not None and newest.moves != head.moves:
            guard_files.remove(files, guarded)  # put after the other writer removed its guards
        raise ConflictError(f"{table} was published by another writer; retry")
    actual = {file.path: file.size for file in listed}
    if missing := sorted(path for path, size in moves.sizes.items() if actual.get(path) != size):
        raise ForeignChangeError(table, "removed", missing, external_changes.RESTORE)
    external_changes.check_old(log, table, head, listed, moves.deletes)
    files.delete(sorted(moves.deletes.keys() & actual.keys()))
    guard_files.remove(files, [path for path in actual if not hive_names.is_hidden(path)])


def write(files: Files, moves: Moves) -> StatsPart:
    """Write *moves* as a part, which the log entry names."""
    columns = {
        "path": pa.array([*moves.names, *moves.deletes], pa.string()),
        "from": pa.array([*moves.names.values(), *[None for _ in moves.deletes]], pa.string()),
        "size": pa.array([*map(moves.sizes.get, moves.names), *moves.deletes.values()], pa.int64()),
    }
    return stats_table.write(files, pa.table(columns))


def pending(files: Files, head: Entry) -> Moves:
    """Return the moves that *head* lists as unfinished.

    Raises:
        CorruptLogError: The list is missing or damaged.
    """
    if head.moves is None:
        return Moves()
    rows = stats_table.read(files, head.moves, ["path", "from", "size"]).to_pylist()
    renames = [row for row in rows if row["from"] is not None]
    return Moves(
        names={row["path"]: check_path(row["from"]) for row in renames},
        sizes={row["path"]: row["size"] for row in renames},
        deletes={row["path"]: row["size"] for row in rows if row["from"] is None},
    )


def current_paths(files: Files, head: Entry, paths: Sequence[str]) -> list[str]:
    """Return the current path of each file.

    Args:
        files: The table's files.
        head: Entry of the current version.
        paths: Paths in the log, of any version.
    """
    if head.format < FORMAT:
        return [former(path) for path in paths]
    old = pending(files, head).names
    moving = [path for path in paths if path in old]
    moved = dict(zip(moving, map_files(files.has, moving, files.uri), strict=True))
    return [path if moved.get(path, True) else old[path] for path in paths]


def has_file(files: Files, moving: Moves, path: str) -> bool:
    """Return whether a file exists at its old or new path, checked in this order."""
    old = moving.names.get(path)
    return (old is not None and files.has(old)) or files.has(path)
