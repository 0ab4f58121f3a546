"""Lookup, history and restore of versions."""

from datetime import datetime, timezone
from uuid import uuid4

import pyarrow as pa

from zadapter.base.commit_attempts import Attempts
from zadapter.errors import (
    ConflictError,
    ForeignChangeError,
    UnknownTableError,
    VersionExpiredError,
)
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Commit
from zadapter_parquet.format.entries import Entry, LogOperation
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version
from zadapter_parquet.operations import external_changes, moving
from zadapter_parquet.store.contract import Files


def find(log: Log, head: Entry, table: str, version: int) -> Entry:
    """Return the entry of a version.

    Raises:
        UnknownTableError: There is no such version.
        VersionExpiredError: The version's files may have been deleted.
    """
    entry = log.entry(version)
    if entry.version < head.oldest:
        raise VersionExpiredError(table, entry.version, head.oldest)
    return entry


def version_at(log: Log, table: str, time: datetime) -> int:
    """Return the number of the newest version at a time.

    Raises:
        UnknownTableError: The first version is younger.
    """
    milliseconds = int(time.timestamp() * 1_000)
    if log.entry(0).timestamp > milliseconds:
        raise UnknownTableError(
            f"{table} has no version at {time}; the first one is newer, and zadapter.history() "
            "lists all versions"
        )
    low, high = 0, log.head().version + 1  # timestamps rise from version to version
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log.entry(middle).timestamp <= milliseconds else (low, middle)
    return low


def older(files: Files, version: Version, table: str, time: datetime) -> pa.ChunkedArray:
    """Return the paths of the files of the newest version at a time; none if it is unknown.

    Files that are not registered have no known age, and count as old.
    """
    if version.file_table is not None:
        return version.file_table["path"]
    log = Log(files, table)
    try:
        entry = find(log, version.head, table, version_at(log, table, time))
    except (UnknownTableError, VersionExpiredError):
        return pa.chunked_array([], pa.string())
    return stats_table.load(files, entry.parts, {}, {})["path"]


def history(log: Log) -> list[Commit]:
    """Return the commits of all versions, newest first, after verifying the chain of entries."""
    return [*map(_commit, reversed(list(log.entries_between(-1, log.head().version))))]


def _commit(entry: Entry) -> Commit:
    return Commit(
        version=entry.version,
        timestamp=datetime.fromtimestamp(entry.timestamp / 1_000, timezone.utc),
        operation=entry.operation.value,
        id=entry.transaction,
        **entry.summary,
    )


def restore(files: Files, table: str, version: int) -> Commit:
    """Commit a new version with the files of *version*.

    Raises:
        VersionExpiredError: The version's files may have been deleted.
        ForeignChangeError: Files of the version are missing or were changed.
        ConflictError: Other writers committed first in all attempts.
    """
    log = Log(files, table)
    for _ in Attempts():
        # read the head once: with a newer head, *version* may have expired
        head = moving.settle(log, files, table)
        target = find(log, head, table, version)
        old, now = _live(files, target), _live(files, head)
        try:
            external_changes.check_live(files, table, head, old)
        except ForeignChangeError:
            if log.head().version == head.version:
                raise
            continue
        entry = commit_entries.build_next(
            log,
            head,
            LogOperation.RESTORE,
            transaction=uuid4().hex,
            **{name: getattr(target, name) for name in _CONTENT_FIELDS},
            summary=_difference(old, now),
        )
        if log.try_claim(entry):
            return _commit(entry)
    raise ConflictError(f"{table}: other writers committed first in all attempts; retry")


_CONTENT_FIELDS = ("schema", "partition", "parts", "files", "size", "rows", "source", "int96")


def _difference(new: pa.Table, old: pa.Table) -> dict[str, int]:
    added = new.join(old, "path", join_type="left anti")
    removed = old.join(new, "path", join_type="left anti")
    return {
        "files_added": added.num_rows,
        "files_removed": removed.num_rows,
        "rows_added": total(added, "rows"),
        "rows_removed": total(removed, "rows"),
    }


def _live(files: Files, entry: Entry) -> pa.Table:
    return stats_table.load(files, entry.parts, {}, {}).select(["path", "size", "rows"])
