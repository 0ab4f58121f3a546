"""Vacuum: what goes, and what has to be known before anything does."""

from collections.abc import Iterable
from datetime import timedelta
from math import inf
from typing import Any
from uuid import uuid4

from zadapter.errors import ConflictError, CorruptLogError
from zadapter_parquet.format.entries import Entry, Operation, Part
from zadapter_parquet.format.legacy_names import successor
from zadapter_parquet.format.paths import ASIDE, HIDDEN
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import FOLDER, TRIES, Log, path_of
from zadapter_parquet.operations import external_changes, move_plan, moving
from zadapter_parquet.rows import shared_files, staging
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files


def vacuum(files: Files, table: str, older_than: timedelta, *, dry_run: bool) -> list[str]:
    """Delete what no version needs that is newer than *older_than*, and return it.

    First the log says which versions expire, so that nobody goes back to them; then their files go.
    What was written and never committed goes after the log has ruled its commit out.

    Raises:
        ConflictError: Other writers were faster; nothing was deleted.
        UnknownOutcomeError: It is not known whether the log has taken it up; nothing was deleted.
        UnsupportedError: Another table has the same files.
    """
    shared_files.refuse(files, table)
    log = Log(files, table)
    if not dry_run:
        moving.settle(log, files, table)
    now = commit_entries.now() if dry_run else _now(files)
    cutoff = now - older_than // timedelta(milliseconds=1)
    oldest = _oldest(files, log, cutoff)
    orphans = _orphans(files, log, cutoff)
    unneeded = _unneeded(files, log, table, oldest, cutoff)
    found = sorted({*unneeded, *(path for paths in orphans.values() for path in paths)})
    if dry_run or not found:
        return found
    _follow(log, table, Operation.VACUUM, oldest=oldest)
    # the stats last: should this stop midway, they say what is left
    gone = sorted(
        _unneeded(files, log, table, oldest, cutoff),
        key=lambda path: path.startswith(stats_table.FOLDER),
    )
    shared_files.refuse(files, table)  # it may be new
    # engines that list the folder must not take what is left for a version
    guard_files.put(files, (path for path in gone if not path.startswith(HIDDEN)), uuid4().hex)
    files.delete(gone)
    for folder, paths in orphans.items():
        if _rule_out(log, table, folder):
            files.delete(paths)
            gone += paths
    return sorted(gone)


def _now(files: Files) -> int:
    """Return milliseconds since 1970 by the store's clock, should ours be ahead of it."""
    path = f"{ASIDE}/{uuid4().hex}"
    files.write(path, b"")
    made = [found.modified // 1_000 for found in files.listed(ASIDE) if found.path == path]
    files.delete([path])
    return min([commit_entries.now(), *made])


def _ages(files: Files) -> dict[str, int]:
    """Return when entries of the log were made by the store's clock: writers' may be behind."""
    return {found.path: found.modified // 1_000 for found in files.listed(FOLDER)}


def _oldest(files: Files, log: Log, cutoff: int) -> int:
    """Return the oldest version that was current at *cutoff* or later."""
    head = log.head()
    ages = _ages(files)  # later than the head: an entry that is not listed is no old one

    def made(version: int) -> float:
        return max(log.entry(version).timestamp, ages.get(path_of(version), inf))

    low, high = head.oldest, head.version
    while low < high:
        middle = (low + high) // 2
        # a version is replaced when the next one is made
        if made(middle + 1) <= cutoff:
            low = middle + 1
        else:
            high = middle
    return low


def _unneeded(files: Files, log: Log, table: str, oldest: int, cutoff: int) -> list[str]:
    """Return what versions before *oldest* need, and neither that one nor a later one.

    So it is with what old commits have staged and not added, and what was never given its name.
    The stats that name the folder's visible files stay.

    Raises:
        ConflictError: Files were moved meanwhile.
        CorruptLogError: What versions need that can still be read is not known, or not there.
    """
    head = log.head()
    oldest = max(oldest, head.oldest)
    moving_ = move_plan.pending(files, head)
    on_the_way = moving_.names
    made = {successor(file.path): file.modified // 1_000 for file in files.listed()}
    needed = _needs(files, log.between(oldest - 1, head.version))
    # a file that is moving lies at one of two places
    lying = {path if path in made else on_the_way.get(path, path) for path in needed}
    absent = {path for path in needed if not {path, on_the_way.get(path)} & made.keys()}
    # a file that moved while they were listed was perhaps seen at neither place
    missing = sorted(path for path in absent if not move_plan.has(files, moving_, path))
    needed |= lying
    if missing:
        if log.head().version > head.version:
            raise ConflictError(f"{table}: files were moved meanwhile; nothing was deleted")
        raise CorruptLogError(
            f"{table}: {missing[0]!r}, a file of a version that can still be read, is missing; "
            "restore it from a backup. Nothing was deleted, since others may be missing, too"
        )
    first = {part.path for version in (0, head.visible) for part in log.entry(version).parts}
    needed |= {*on_the_way, *on_the_way.values()}
    # of versions that have expired the stats may be gone: an earlier clean-up was stopped
    left = (p for entry in log.between(-1, oldest - 1) for p in entry.parts if p.path in made)
    before = _listed_in(files, left)
    old = {path for path, when in made.items() if when <= cutoff}
    committed = _committed(log, head)  # of this head: later ones may need what they staged
    before |= {path for path in old if _folder(path) in committed or path.startswith(ASIDE)}
    # a visible file that is younger than the table is somebody else's, whatever it is called
    until = external_changes.known_until(
        log, head, {path: when * 1_000 for path, when in made.items()}
    )
    found = {
        path for path, when in made.items() if path.startswith(HIDDEN) or when * 1_000 <= until
    }
    return sorted((before - needed - first) & found)


def _committed(log: Log, head: Entry) -> set[str | None]:
    """Return the folders that commits up to *head* speak of, however much of them they added."""
    entries = log.between(-1, head.version)
    return {entry.folder for entry in entries if entry.operation is not Operation.ABORT}


def _folder(path: str) -> str:
    """Return the folder of one commit that *path* lies in."""
    return "/".join(path.split("/")[:3])


def _needs(files: Files, entries: Iterable[Entry]) -> set[str]:
    """Return the files of versions that can be read, and the stats that list them.

    Raises:
        CorruptLogError: Stats are missing or damaged, so that it is not known what is needed.
    """
    return _listed_in(files, (part for entry in entries for part in entry.parts))


def _listed_in(files: Files, parts: Iterable[Part]) -> set[str]:
    """Return the paths of *parts*, and those of the files in them."""
    found: set[str] = set()
    for part in parts:
        if part.path not in found:
            found.add(part.path)
            found.update(stats_table.load(files, [part], {}, {})["path"].to_pylist())
    return found


def _orphans(files: Files, log: Log, cutoff: int) -> dict[str, list[str]]:
    """Return old files of folders that no commit speaks of, by folder."""
    known = _committed(log, log.head())
    folders: dict[str, list[str]] = {}
    young: set[str] = set()
    for file in files.listed(staging.DATA):
        folder = _folder(file.path)
        if folder not in known:
            folders.setdefault(folder, []).append(file.path)
            if file.modified // 1_000 > cutoff:
                young.add(folder)
    return {folder: paths for folder, paths in folders.items() if folder not in young}


def _rule_out(log: Log, table: str, folder: str) -> bool:
    """Rule a commit out for good; tell whether it had not landed before."""
    return _follow(log, table, Operation.ABORT, folder=folder)


def _follow(log: Log, table: str, operation: Operation, **said: Any) -> bool:
    seen = -1
    for _ in range(TRIES):
        head = log.head()
        # whoever has committed this folder was faster than its being ruled out
        for entry in log.between(seen, head.version) if "folder" in said else ():
            if entry.folder == said["folder"]:
                return entry.operation is Operation.ABORT
        seen = head.version
        known = {**said, "oldest": max(head.oldest, said.get("oldest", 0))}
        if log.claimed(
            commit_entries.following(log, head, operation, transaction=uuid4().hex, **known)
        ):
            return True
    raise ConflictError(f"{table}: other writers were faster {TRIES} times; nothing was deleted")
