"""Stats of files that stay: completed as they are registered, and corrected in commits."""

from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from zadapter.errors import ReplacedTableError, UnsupportedError
from zadapter.table.snapshot import Change, Snapshot
from zadapter_parquet.format.entries import LogOperation
from zadapter_parquet.log import commit_entries
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version
from zadapter_parquet.operations import moving
from zadapter_parquet.rows import missing_stats
from zadapter_parquet.store.contract import Files, check_writable


def restate(snapshot: Snapshot, files: pa.Table) -> int:
    """Replace the stats of *files*, and return the new version.

    Args:
        snapshot: The head of the log; a newer version is a conflict.
        files: File table with complete stats, partition values and layouts.

    Raises:
        UnsupportedError: The folder has no log yet, so that no stats are recorded.
        ConflictError: Another writer committed first; nothing was committed.
        ReplacedTableError: The table was dropped and created again; nothing was committed.
    """
    version: Version = snapshot.handle.version
    store: Files = snapshot.handle.files
    if version.file_table is not None:
        raise UnsupportedError(
            f"{snapshot.table} has no log, so no stats are recorded that could be wrong; "
            "zadapter.optimize() creates the log"
        )
    check_writable(store)
    log, base = Log(store, snapshot.table), version.entry
    if not log.has(base):
        raise ReplacedTableError(snapshot.table)
    base = moving.finish_moves(log, store, snapshot.table, base)
    fields = commit_entries.write_exchange(store, base, [files], [files])
    fields |= {"rows": base.rows, "size": base.size, "summary": {}}
    entry = commit_entries.build_next(
        log, base, LogOperation.OPTIMIZE, transaction=uuid4().hex, **fields
    )
    log.claim(entry)
    return entry.version


def complete_stats(spark: SparkSession, change: Change, files: pa.Table) -> pa.Table:
    """Return the registered file table, with complete stats of the files that stay."""
    removed = pc.is_in(files["path"], change.removed["path"])
    kept = missing_stats.fill_missing_stats(spark, change.base, files.filter(pc.invert(removed)))
    return pa.concat_tables([files.filter(removed), kept])
