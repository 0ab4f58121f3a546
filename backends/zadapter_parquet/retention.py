"""History, restore and vacuum of a table."""

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from math import inf
from typing import Any
from uuid import uuid4

import pyarrow as pa

from zadapter.errors import (
    ConflictError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    VersionExpiredError,
)
from zadapter.filestats import total
from zadapter.table import Commit
from zadapter_parquet import changes, foreign, stats
from zadapter_parquet.entries import Entry, Operation
from zadapter_parquet.log import FOLDER, Log, path_of
from zadapter_parquet.paths import ASIDE, HIDDEN
from zadapter_parquet.stores import Files

DATA = f"{HIDDEN}/data"
SHARED = f"{HIDDEN}/shared"
"""Notes of tables that have the same files."""
_TRIES = 20


def find(log: Log, head: Entry, table: str, when: int | datetime) -> Entry:
    """Return the version of this number, or the newest one at this time, as of *head*.

    Raises:
        UsageError: It is neither.
        UnknownTableError: There is no such version.
        VersionExpiredError: Its files may be gone.
    """
    if isinstance(when, bool) or not isinstance(when, (int, datetime)):
        raise UsageError(f"version= takes a whole number or a datetime, not {when!r}")
    entry = log.entry(when) if isinstance(when, int) else _at(log, head, table, when)
    if entry.version < head.oldest:
        raise VersionExpiredError(table, entry.version, head.oldest)
    return entry


def _at(log: Log, head: Entry, table: str, when: datetime) -> Entry:
    wanted = int(when.timestamp() * 1_000)
    if log.entry(0).timestamp > wanted:
        raise UnknownTableError(f"{table}: its first version is younger than {when}")
    low, high = 0, head.version + 1  # timestamps rise from version to version
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log.entry(middle).timestamp <= wanted else (low, middle)
    return log.entry(low)


def history(log: Log) -> list[Commit]:
    """Return what each version's commit has done, newest first, after a look at the whole chain."""
    entries = [log.entry(version) for version in range(log.head().version, -1, -1)]
    return [
        Commit(
            version=entry.version,
            timestamp=datetime.fromtimestamp(entry.timestamp / 1_000, timezone.utc),
            operation=entry.operation.value,
            id=entry.transaction,
            **entry.summary,
        )
        for entry in entries
    ]


def restore(files: Files, table: str, version: int) -> int:
    """Make the files of *version* those of a new one.

    Raises:
        VersionExpiredError: Its files may be gone.
        ForeignChangeError: Some are gone, or were changed.
        ConflictError: Other writers were faster.
    """
    log = Log(files, table)
    for _ in range(_TRIES):
        # one look: after another one, the version may have expired that the first one found
        head = log.head()
        wanted = find(log, head, table, version)
        old, now = _live(files, wanted), _live(files, head)
        foreign.check_live(files, table, old)
        entry = changes.following(
            log,
            head,
            Operation.RESTORE,
            transaction=uuid4().hex,
            **{name: getattr(wanted, name) for name in _CONTENT},
            summary=_difference(old, now),
        )
        if _claimed(log, entry):
            return entry.version
    raise ConflictError(f"{table}: other writers were faster {_TRIES} times; try again")


_CONTENT = ("schema", "partition", "parts", "files", "size", "rows", "source")


def _difference(now: pa.Table, before: pa.Table) -> dict[str, int]:
    come = now.join(before, "path", join_type="left anti")
    gone = before.join(now, "path", join_type="left anti")
    return {
        "files_added": come.num_rows,
        "files_removed": gone.num_rows,
        "rows_added": total(come, "rows"),
        "rows_removed": total(gone, "rows"),
    }


def _live(files: Files, entry: Entry) -> pa.Table:
    return stats.load(files, entry.parts, {}, {}).select(["path", "size", "rows"])


def _claimed(log: Log, entry: Entry) -> bool:
    try:
        log.claim(entry)
    except ConflictError:
        return False
    return True


def share(files: Files) -> str:
    """Have vacuum leave this table alone: another one has its files, too. Say how."""
    path = f"{SHARED}/{uuid4().hex}"
    files.write(path, b"")
    return f"{path} keeps zadapter.vacuum() from deleting its files"


def vacuum(files: Files, table: str, older_than: timedelta, *, dry_run: bool) -> list[str]:
    """Delete what no version needs that is newer than *older_than*, and return it.

    First the log says which versions expire, so that nobody goes back to them; then their files go.
    What was written and never committed goes after the log has ruled its commit out.

    Raises:
        ConflictError: Other writers were faster; nothing was deleted.
        UnknownOutcomeError: It is not known whether the log has taken it up; nothing was deleted.
        UnsupportedError: Another table has the same files.
    """
    if shared := [file.path for file in files.listed(SHARED)]:
        raise UnsupportedError(
            f"{table}: a table that was migrated in place has the same files; delete {shared[0]} "
            "when that table is gone"
        )
    log = Log(files, table)
    now = changes.now() if dry_run else _now(files)
    cutoff = now - older_than // timedelta(milliseconds=1)
    oldest = _oldest(files, log, cutoff)
    orphans = _orphans(files, log, cutoff)
    unneeded = _unneeded(files, log, oldest, cutoff)
    found = sorted({*unneeded, *(path for paths in orphans.values() for path in paths)})
    if dry_run or not found:
        return found
    _follow(log, table, Operation.VACUUM, oldest=oldest)
    # the stats last: should this stop midway, they say what is left
    gone = sorted(
        _unneeded(files, log, oldest, cutoff), key=lambda path: path.startswith(stats.FOLDER)
    )
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
    return min([changes.now(), *made])


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


def _unneeded(files: Files, log: Log, oldest: int, cutoff: int) -> list[str]:
    """Return what versions before *oldest* need, and neither that one nor a later one.

    So it is with what old commits have staged and not added, and what was never given its name.
    Version 0's stats stay: they say which files were there before the table was.
    """
    head = log.head()
    every = list(files.listed())
    needed = _needs(files, (log.entry(version) for version in range(oldest, head.version + 1)))
    first = {part.path for part in log.entry(0).parts}
    before = _needs(files, (log.entry(version) for version in range(oldest)))
    made = {file.path: file.modified // 1_000 for file in every}
    old = {path for path, when in made.items() if when <= cutoff}
    committed = _committed(log, head)  # of this head: later ones may need what they staged
    before |= {path for path in old if _folder(path) in committed or path.startswith(ASIDE)}
    # a visible file that is younger than the table is somebody else's, whatever it is called
    registered = min(log.entry(0).timestamp, made.get(path_of(0), 0))
    found = {
        file.path
        for file in every
        if file.path.startswith(HIDDEN) or file.modified <= registered * 1_000
    }
    return sorted((before - needed - first) & found)


def _committed(log: Log, head: Entry) -> set[str | None]:
    """Return the folders that commits up to *head* speak of, however much of them they added."""
    entries = map(log.entry, range(head.version + 1))
    return {entry.folder for entry in entries if entry.operation is not Operation.ABORT}


def _folder(path: str) -> str:
    """Return the folder of one commit that *path* lies in."""
    return "/".join(path.split("/")[:3])


def _needs(files: Files, entries: Iterable[Entry]) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        for part in entry.parts:
            if part.path not in found and files.has(part.path):
                found.add(part.path)
                found.update(stats.load(files, [part], {}, {})["path"].to_pylist())
    return found


def _orphans(files: Files, log: Log, cutoff: int) -> dict[str, list[str]]:
    """Return old files of folders that no commit speaks of, by folder."""
    known = _committed(log, log.head())
    folders: dict[str, list[str]] = {}
    young: set[str] = set()
    for file in files.listed(DATA):
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
    for _ in range(_TRIES):
        head = log.head()
        # whoever has committed this folder was faster than its being ruled out
        for entry in log.between(seen, head.version) if "folder" in said else ():
            if entry.folder == said["folder"]:
                return entry.operation is Operation.ABORT
        seen = head.version
        known = {**said, "oldest": max(head.oldest, said.get("oldest", 0))}
        if _claimed(log, changes.following(log, head, operation, transaction=uuid4().hex, **known)):
            return True
    raise ConflictError(f"{table}: other writers were faster {_TRIES} times; nothing was deleted")
