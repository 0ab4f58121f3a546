"""Construction of log entries for commits."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from zadapter.table.file_stats import total
from zadapter_parquet.format.entries import FORMAT, Entry, Operation
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files


def first(files: Files, found: Entry, table: pa.Table) -> Entry:
    """Write the stats of version 0, and return its entry."""
    guard_files.note(files)
    summary = {"files_added": table.num_rows, "rows_added": total(table, "rows")}
    return replace(
        found,
        version=0,
        timestamp=now(),
        parts=stats_table.rewritten(files, (), set(), table),
        summary=summary,
    )


def is_whole(base: Entry, removed: Sequence[pa.Table]) -> bool:
    """Return whether *removed* contains all files of *base*."""
    return bool(sum(files.num_rows for files in removed) == base.files)


def exchanged(
    files: Files, base: Entry, removed: Sequence[pa.Table], added: Sequence[pa.Table]
) -> dict[str, Any]:
    """Write the stats of a version that replaces files, and return the fields of its entry."""
    gone, come = pa.concat_tables(removed), pa.concat_tables(added)
    paths = set(gone["path"].to_pylist())
    return {
        "parts": stats_table.rewritten(files, base.parts, paths, come),
        "files": base.files - gone.num_rows + come.num_rows,
        "size": base.size - total(gone, "size") + total(come, "size"),
        "rows": base.rows - total(gone, "rows") + total(come, "rows"),
        "summary": {
            "files_added": come.num_rows,
            "files_removed": gone.num_rows,
            "rows_added": total(come, "rows"),
            "rows_removed": total(gone, "rows"),
        },
    }


def following(log: Log, base: Entry, operation: Operation, **said: Any) -> Entry:
    """Return an entry for the version after *base*, with the fields *said* replaced."""
    said = {"folder": None, "summary": {}} | said
    entry = replace(base, read_version=base.version, operation=operation, timestamp=now(), **said)
    return placed(log, base, entry)


def placed(log: Log, base: Entry, entry: Entry) -> Entry:
    """Return *entry* with the version, hash and timestamp that follow *base*."""
    return replace(
        entry,
        version=base.version + 1,
        format=FORMAT,
        previous=log.hash_of(base.version),
        # another machine's clock may be ahead
        timestamp=max(entry.timestamp, base.timestamp + 1),
    )


def now() -> int:
    """Return the current time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
