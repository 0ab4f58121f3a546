"""Vacuum: deletion of files that no retained version needs."""

from collections.abc import Iterable
from datetime import timedelta
from math import inf
from typing import Any
from uuid import uuid4

from zadapter.base import outcome
from zadapter.base.commit_attempts import Attempts
from zadapter.errors import ConflictError, CorruptLogError, UnsupportedError
from zadapter.table.snapshot import Vacuumed
from zadapter_parquet.format.entries import Entry, LogOperation, StatsPart
from zadapter_parquet.format.paths import ASIDE, DATA, HIDDEN, successor
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import FOLDER, Log, path_of
from zadapter_parquet.operations import external_changes, moving
from zadapter_parquet.rows import shared_files
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files


def vacuum(
    files: Files, table: str, older_than: timedelta, *, dry_run: bool, keep_visible: bool = False
) -> Vacuumed:
    """Delete files needed only by versions older than *older_than*.

    A log entry first expires the versions, so they cannot be restored; then their files are
    deleted. Files that were never committed are deleted after a log entry has aborted their commit.

    Args:
        files: The table's files.
        table: The table as the caller named it.
        older_than: Retention of replaced versions.
        dry_run: Only return the paths.
        keep_visible: Whether to refuse to delete visible files, which readers of a catalog list.

    Raises:
        ConflictError: Other writers committed first in all attempts.
        CorruptLogError: The files of retained versions are unknown or missing.
        UnknownOutcomeError: A commit may or may not have succeeded; its files were not deleted.
        UnsupportedError: Another table shares the files, or readers of a catalog need them.
    """
    shared_files.refuse(files, table)
    log = Log(files, table)
    if not dry_run:
        moving.settle(log, files, table)
    now = commit_entries.current_time() if dry_run else _current_time(files)
    cutoff = now - older_than // timedelta(milliseconds=1)
    oldest = _oldest(files, log, cutoff)
    orphans = _orphans(files, log, cutoff)
    unneeded = _find_unneeded(files, log, table, oldest, cutoff)
    deletable = sorted({*unneeded, *(path for paths in orphans.values() for path in paths)})
    if keep_visible:
        _check_hidden(table, deletable)
    if dry_run or not deletable:
        return Vacuumed(paths=deletable)
    expired = _commit(log, table, LogOperation.VACUUM, oldest=oldest)
    outcome.record_landing()
    versions = [expired.version]
    # stats last: after an interruption, they still list the remaining files
    deleted = sorted(
        _find_unneeded(files, log, table, oldest, cutoff),
        key=lambda path: path.startswith(stats_table.FOLDER),
    )
    shared_files.refuse(files, table)  # the note may be new
    if keep_visible:  # the versions have expired: what a rival has made visible stays
        deleted = [path for path in deleted if _is_hidden(path)]
    # engines that list the folder must not read the remaining files as a version
    guard_files.put(files, (path for path in deleted if not path.startswith(HIDDEN)), uuid4().hex)
    files.delete(deleted)
    for folder, paths in orphans.items():
        aborted = _abort(log, table, folder)
        if aborted.operation is LogOperation.ABORT:
            files.delete(paths)
            deleted += paths
            versions += [aborted.version]
    return Vacuumed(paths=sorted(deleted), versions=tuple(versions))


def _check_hidden(table: str, paths: Iterable[str]) -> None:
    """Check that readers who list the folder do not need the files.

    Raises:
        UnsupportedError: They see one of the files.
    """
    if visible := next((path for path in paths if not _is_hidden(path)), None):
        raise UnsupportedError(
            f"{table}: readers of the catalog still need {visible!r}, since they see the version "
            "last published; call zadapter.publish() first"
        )


def _is_hidden(path: str) -> bool:
    return path.startswith(f"{HIDDEN}/")


def _current_time(files: Files) -> int:
    """Return the time in milliseconds since 1970, by the slower of the local and store clocks."""
    path = f"{ASIDE}/{uuid4().hex}"
    files.write(path, b"")
    created = [file.modified // 1_000 for file in files.list_files(ASIDE) if file.path == path]
    files.delete([path])
    return min([commit_entries.current_time(), *created])


def _creation_times(files: Files) -> dict[str, int]:
    """Return when log entries were created, in milliseconds since 1970, by the store's clock.

    The timestamps in the entries are unreliable, since writers' clocks may be behind.
    """
    return {file.path: file.modified // 1_000 for file in files.list_files(FOLDER)}


def _oldest(files: Files, log: Log, cutoff: int) -> int:
    """Return the oldest version that was current at *cutoff* or later."""
    head = log.head()
    creation_times = _creation_times(files)  # listed after reading the head: a missing entry is new

    def creation_time(version: int) -> float:
        return max(log.entry(version).timestamp, creation_times.get(path_of(version), inf))

    low, high = head.oldest, head.version
    while low < high:
        middle = (low + high) // 2
        # a version ceases to be current when the next one is created
        if creation_time(middle + 1) <= cutoff:
            low = middle + 1
        else:
            high = middle
    return low


def _find_unneeded(files: Files, log: Log, table: str, oldest: int, cutoff: int) -> list[str]:
    """Return the files that only versions before *oldest* need.

    They include old files that commits staged without adding them, and old temporary files. The
    stats that list the folder's visible files are excluded.

    Raises:
        ConflictError: Files were moved meanwhile.
        CorruptLogError: The files of readable versions are unknown or missing.
    """
    head = log.head()
    oldest = max(oldest, head.oldest)
    moves = moving.pending(files, head)
    old_paths = moves.names
    modified = {successor(file.path): file.modified // 1_000 for file in files.list_files()}
    needed = _list_needed_paths(files, log.entries_between(oldest - 1, head.version))
    # a file that is being moved is at one of two paths
    current = {path if path in modified else old_paths.get(path, path) for path in needed}
    absent = {path for path in needed if not {path, old_paths.get(path)} & modified.keys()}
    # the listing may have missed a file that moved meanwhile, at both paths
    missing = sorted(path for path in absent if not moving.has_file(files, moves, path))
    needed |= current
    if missing:
        if log.head().version > head.version:
            raise ConflictError(f"{table}: another writer moved files; nothing was deleted. Retry")
        raise CorruptLogError(
            f"{table}: {missing[0]!r} is missing, but a readable version references it; restore it "
            "from a backup. Nothing was deleted, since more files may be missing"
        )
    visible_parts = {
        part.path for version in (0, head.visible) for part in log.entry(version).parts
    }
    needed |= {*old_paths, *old_paths.values()}
    # an interrupted vacuum may have deleted stats of expired versions
    expired_parts = (
        p
        for entry in log.entries_between(-1, oldest - 1)
        for p in entry.parts
        if p.path in modified
    )
    candidates = _list_paths(files, expired_parts)
    old = {path for path, time in modified.items() if time <= cutoff}
    committed = _list_committed_folders(
        log, head
    )  # up to this head: later commits may need their staged files
    candidates |= {path for path in old if _folder(path) in committed or path.startswith(ASIDE)}
    # a visible file that is newer than its log entry belongs to another program
    until = external_changes.find_recording_time(
        log, head, {path: time * 1_000 for path, time in modified.items()}
    )
    owned = {
        path for path, time in modified.items() if path.startswith(HIDDEN) or time * 1_000 <= until
    }
    return sorted((candidates - needed - visible_parts) & owned)


def _list_committed_folders(log: Log, head: Entry) -> set[str | None]:
    """Return the folders of commits up to *head*, even if they added only some of the files."""
    entries = log.entries_between(-1, head.version)
    return {entry.folder for entry in entries if entry.operation is not LogOperation.ABORT}


def _folder(path: str) -> str:
    """Return the folder of the commit that wrote *path*."""
    return "/".join(path.split("/")[:3])


def _list_needed_paths(files: Files, entries: Iterable[Entry]) -> set[str]:
    """Return the paths of all data files and parts that *entries* need.

    Raises:
        CorruptLogError: A part is missing or damaged, so the needed files are unknown.
    """
    return _list_paths(files, (part for entry in entries for part in entry.parts))


def _list_paths(files: Files, parts: Iterable[StatsPart]) -> set[str]:
    """Return the paths of *parts* and of the files that they list."""
    paths: set[str] = set()
    for part in parts:
        if part.path not in paths:
            paths.add(part.path)
            paths.update(stats_table.load(files, [part], {}, {})["path"].to_pylist())
    return paths


def _orphans(files: Files, log: Log, cutoff: int) -> dict[str, list[str]]:
    """Return the files of uncommitted folders without recent files, by folder."""
    committed = _list_committed_folders(log, log.head())
    folders: dict[str, list[str]] = {}
    recent: set[str] = set()
    for file in files.list_files(DATA):
        folder = _folder(file.path)
        if folder not in committed:
            folders.setdefault(folder, []).append(file.path)
            if file.modified // 1_000 > cutoff:
                recent.add(folder)
    return {folder: paths for folder, paths in folders.items() if folder not in recent}


def _abort(log: Log, table: str, folder: str) -> Entry:
    """Abort a commit permanently, and return the entry of the folder: it may have succeeded."""
    return _commit(log, table, LogOperation.ABORT, folder=folder)


def _commit(log: Log, table: str, operation: LogOperation, **fields: Any) -> Entry:
    seen = -1
    for _ in Attempts():
        head = log.head()
        # the folder may have been committed or aborted meanwhile
        for entry in log.entries_between(seen, head.version) if "folder" in fields else ():
            if entry.folder == fields["folder"]:
                return entry
        seen = head.version
        entry_fields = {**fields, "oldest": max(head.oldest, fields.get("oldest", 0))}
        entry = commit_entries.build_next(
            log, head, operation, transaction=uuid4().hex, **entry_fields
        )
        if log.try_claim(entry):
            return entry
    raise ConflictError(
        f"{table}: other writers committed first in all attempts; nothing more was deleted. Retry"
    )
