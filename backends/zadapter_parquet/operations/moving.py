"""Moves of files, with concurrent readers and writers.

A log entry lists the files before the first one moves. From then on, each file is at its old or new
path, and versions name the new one. Every writer completes unfinished moves; moves are idempotent
and may run in several writers at a time. A second entry states that all files are in place.
"""

from contextlib import suppress
from typing import Any
from uuid import uuid4

from zadapter.base.commit_attempts import Attempts
from zadapter.errors import ConflictError, ForeignChangeError
from zadapter_parquet.format.entries import FORMAT, Entry, Operation
from zadapter_parquet.format.legacy_names import successor
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log import commit_entries
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes, move_plan
from zadapter_parquet.operations.move_plan import Moves
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files, hive_names
from zadapter_parquet.store.contract import Files


def settle(log: Log, files: Files, table: str) -> Entry:
    """Complete unfinished moves, and return the current version.

    Raises:
        ConflictError: Other writers committed first in all attempts.
        ForeignChangeError: A file is neither at its old nor at its new path.
        UnsupportedError: Files that another table shares are being published.
    """
    for _ in Attempts():
        with suppress(ConflictError):
            return settled(log, files, table, log.head())
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


def settled(log: Log, files: Files, table: str, head: Entry) -> Entry:
    """Return *head*, or a later version with the same content and all files in place.

    Files of a table in log format 1 are renamed to their current names. Files that another table
    shares are not moved: the list of moves then stays unfinished.

    Raises:
        ConflictError: Another writer has added a version.
        ForeignChangeError: A file is neither at its old nor at its new path.
        UnsupportedError: Files that another table shares are being published.
    """
    if head.format < FORMAT:
        head = begin(log, files, head, Operation.MOVE, _renamed(files))
    if head.moves is None:
        return head
    moves = move_plan.pending(files, head)
    if moves.visible:
        shared_files.refuse(files, table)
    elif shared_files.notes(files):
        return head
    _finish(log, files, table, head, moves)
    fields: dict[str, Any] = {"visible": head.version + 1} if moves.visible else {}
    operation = Operation.PUBLISH if moves.visible else Operation.MOVE
    done = commit_entries.following(
        log, head, operation, transaction=uuid4().hex, moves=None, **fields
    )
    log.claim(done)
    return done


def begin(
    log: Log, files: Files, head: Entry, operation: Operation, moves: Moves, **fields: Any
) -> Entry:
    """Commit the entry that lists the files to move.

    Raises:
        ConflictError: Another writer has added a version; nothing is moved.
    """
    part = move_plan.write(files, moves)
    entry = commit_entries.following(
        log, head, operation, transaction=uuid4().hex, moves=part, **fields
    )
    log.claim(entry)
    return entry


def _renamed(files: Files) -> Moves:
    """Return the moves from former to current names, except of files that Spark is writing."""
    sizes = {f.path: f.size for f in files.listed(HIDDEN) if successor(f.path) != f.path}
    # listed second: a guard exists before the files that it guards
    guarded = {
        _folder(file.path)
        for file in files.listed(f"{HIDDEN}/data")
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
    listed = list(files.listed())
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
    guard_files.remove(files, [path for path in actual if not hive_names.hidden(path)])
