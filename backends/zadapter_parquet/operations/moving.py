"""Moving files to other names, while others read and write.

An entry of the log lists the files before the first one moves. From then on each lies at its old or
its new place, and versions name it by the new one. Every writer finishes what was begun: moves can
be repeated, by several writers at a time. Another entry states that all files are in place.
"""

from contextlib import suppress
from typing import Any
from uuid import uuid4

from zadapter.errors import ConflictError, ForeignChangeError
from zadapter_parquet.format.entries import FORMAT, Entry, Operation
from zadapter_parquet.format.legacy_names import successor
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log import commit_entries
from zadapter_parquet.log.log import TRIES, Log
from zadapter_parquet.operations import external_changes, move_plan
from zadapter_parquet.operations.move_plan import Moves
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files, hive_names
from zadapter_parquet.store.contract import Files


def settle(log: Log, files: Files, table: str) -> Entry:
    """Finish what was begun, whoever else does so, and return the current version.

    Raises:
        ConflictError: Other writers were faster.
        ForeignChangeError: A file is neither at its old nor at its new place.
    """
    for _ in range(TRIES):
        with suppress(ConflictError):
            return settled(log, files, table, log.head())
    raise ConflictError(f"{table}: other writers were faster {TRIES} times; try again")


def settled(log: Log, files: Files, table: str, head: Entry) -> Entry:
    """Return *head*, or the version after it that is the same with all files in place.

    The files of a table of the log's first format get the names of today. Files that another table
    has, too, stay where they are, and so does the list of those that are to move.

    Raises:
        ConflictError: Another writer has added a version.
        ForeignChangeError: A file is neither at its old nor at its new place.
        UnsupportedError: Files are being published that another table has.
    """
    if head.format < FORMAT:
        head = begin(log, files, head, Operation.MOVE, _renamed(files))
    if head.moves is None:
        return head
    known = move_plan.pending(files, head)
    if known.visible:
        shared_files.refuse(files, table)
    elif shared_files.notes(files):
        return head
    _finish(log, files, table, head, known)
    said: dict[str, Any] = {"visible": head.version + 1} if known.visible else {}
    operation = Operation.PUBLISH if known.visible else Operation.MOVE
    done = commit_entries.following(
        log, head, operation, transaction=uuid4().hex, moves=None, **said
    )
    log.claim(done)
    return done


def begin(
    log: Log, files: Files, head: Entry, operation: Operation, known: Moves, **said: Any
) -> Entry:
    """Add the entry that lists the files that are about to move.

    Raises:
        ConflictError: Another writer has added a version; nothing moves.
    """
    part = move_plan.write(files, known)
    entry = commit_entries.following(
        log, head, operation, transaction=uuid4().hex, moves=part, **said
    )
    log.claim(entry)
    return entry


def _renamed(files: Files) -> Moves:
    """Return the moves to the names of today, without files that Spark is writing."""
    found = {f.path: f.size for f in files.listed(HIDDEN) if successor(f.path) != f.path}
    # listed later: a guard is there before the files that it guards
    guarded = {
        _folder(file.path)
        for file in files.listed(f"{HIDDEN}/data")
        if file.path.endswith(f"/{guard_files.WRITING}")
    }
    old = [path for path in found if _folder(path) not in guarded]
    return Moves(
        names={successor(path): path for path in old},
        sizes={successor(path): found[path] for path in old},
    )


def _folder(path: str) -> str:
    """Return the folder of one commit that *path* lies in."""
    return "/".join(path.split("/")[:3])


def _finish(log: Log, files: Files, table: str, head: Entry, known: Moves) -> None:
    """Move the files that have not moved yet, and then delete those that go.

    Raises:
        ConflictError: Another writer has finished it.
        ForeignChangeError: A file is neither at its old nor at its new place, or may not be
            deleted; nothing was.
    """
    guarded = guard_files.put(files, known.visible, str(head.version))
    files.move({old: new for new, old in known.names.items()})
    if not known.visible:
        guard_files.note(files)
        return
    listed = list(files.listed())
    newest = log.newest()
    if newest is None or newest.version != head.version:
        if newest is not None and newest.moves != head.moves:
            guard_files.remove(files, guarded)  # who has finished it may have removed them before
        raise ConflictError(f"{table} was published by another writer meanwhile")
    there = {file.path: file.size for file in listed}
    if lost := sorted(path for path, size in known.sizes.items() if there.get(path) != size):
        raise ForeignChangeError(table, "went", lost, external_changes.RESTORE)
    external_changes.check_old(log, table, head, listed, known.goes)
    files.delete(sorted(known.goes.keys() & there.keys()))
    guard_files.remove(files, [file.path for file in hive_names.visible(listed)])
