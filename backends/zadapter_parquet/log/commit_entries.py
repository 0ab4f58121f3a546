"""Construction of log entries for commits."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from zadapter.table.file_stats import total
from zadapter_parquet.format.entries import FORMAT, Entry, LogOperation
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files


def write_first(files: Files, entry: Entry, table: pa.Table) -> Entry:
    """Write the stats of version 0, and return its entry."""
    guard_files.note(files)
    summary = {"files_added": table.num_rows, "rows_added": total(table, "rows")}
    return replace(
        entry,
        version=0,
        timestamp=current_time(),
        parts=stats_table.rewrite_parts(files, (), set(), table),
        summary=summary,
    )


def is_whole(base: Entry, removed: Sequence[pa.Table]) -> bool:
    """Return whether *removed* contains all files of *base*."""
    return bool(sum(files.num_rows for files in removed) == base.files)


def write_exchange(
    files: Files, base: Entry, removed: Sequence[pa.Table], added: Sequence[pa.Table]
) -> dict[str, Any]:
    """Write the stats of a version that replaces files, and return the fields of its entry."""
    removed_files, added_files = pa.concat_tables(removed), pa.concat_tables(added)
    paths = set(removed_files["path"].to_pylist())
    return {
        "parts": stats_table.rewrite_parts(files, base.parts, paths, added_files),
        "files": base.files - removed_files.num_rows + added_files.num_rows,
        "size": base.size - total(removed_files, "size") + total(added_files, "size"),
        "rows": base.rows - total(removed_files, "rows") + total(added_files, "rows"),
        "summary": {
            "files_added": added_files.num_rows,
            "files_removed": removed_files.num_rows,
            "rows_added": total(added_files, "rows"),
            "rows_removed": total(removed_files, "rows"),
        },
    }


def build_next(log: Log, base: Entry, operation: LogOperation, **fields: Any) -> Entry:
    """Return an entry for the version after *base*, with *fields* replaced."""
    fields = {"folder": None, "summary": {}} | fields
    entry = replace(
        base, read_version=base.version, operation=operation, timestamp=current_time(), **fields
    )
    return number_entry(log, base, entry)


def number_entry(log: Log, base: Entry, entry: Entry) -> Entry:
    """Return *entry* with the version, hash and timestamp that follow *base*."""
    return replace(
        entry,
        version=base.version + 1,
        format=FORMAT,
        previous=log.hash_of(base.version),
        # another machine's clock may be ahead
        timestamp=max(entry.timestamp, base.timestamp + 1),
    )


def current_time() -> int:
    """Return the current time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000
