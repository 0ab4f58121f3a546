"""Implementation of the backend contract for plain Parquet files with zadapter's own log."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from zadapter.backend.format import Format
from zadapter.base.commit_attempts import before_sending
from zadapter.base.locations import check_present
from zadapter.base.names import NameParts, resolve
from zadapter.errors import ReplacedTableError, StaleRewriteError, UsageError
from zadapter.layout.layout import Layout
from zadapter.layout.store import Layouts
from zadapter.spark.jvm.spark_classes import list_scanned_files
from zadapter.table import file_stats
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import (
    Change,
    Commit,
    Published,
    Snapshot,
    Source,
    Staged,
    Vacuumed,
    Written,
)
from zadapter.table.spec import Definition
from zadapter_parquet.format.entries import Entry, LogOperation
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version, snapshot, with_partition
from zadapter_parquet.operations import (
    catalog,
    external_changes,
    history,
    loading,
    moving,
    registration,
    stats_repair,
)
from zadapter_parquet.operations.side_files import data_folder, side_files
from zadapter_parquet.rows import missing_stats, shared_files, staging
from zadapter_parquet.rows import rows as data
from zadapter_parquet.store.contract import Files, check_writable
from zadapter_parquet.store.open import open_files

FORMAT = Format(
    name="parquet",
    log="_zadapter/log",
    migrates=True,
    own_versions=True,
    dates_files=True,
    inspects=True,
    recovers=True,
    renames=True,
)


class ParquetBackend:
    """Folders of Parquet files, each with a log of versions and a stats table.

    A table is a path, or a Parquet table of the session's catalog.
    """

    format = FORMAT

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version, which is None for a folder without a log.

        Raises:
            UnknownTableError: The folder has no Parquet files.
            UnsupportedError: Its files do not form one table.
            CorruptLogError: The log is damaged.
            ForeignChangeError: Visible files were added, changed or removed outside the log.
        """
        if since is None:
            return catalog.current(self._spark, table)
        files = since.handle.files
        log = Log(files, table)
        if not log.exists():
            return catalog.current(self._spark, table)
        entry = log.head()
        entries = list(log.entries_between(since.handle.version.entry.version, entry.version))
        aborted = (e.folder for e in entries if e.operation is LogOperation.ABORT and e.folder)
        version = Version(entry=entry, aborted=frozenset(aborted))
        changed = (e.transaction for e in entries if e.operation is not LogOperation.REGISTER)
        return snapshot(table, files, version, frozenset(changed))

    def at(self, table: str, version: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: The version's files may have been deleted.
        """
        files = open_files(self._spark, table)
        log = Log(files, table)
        head = log.head()
        entry = history.find(log, head, table, version)
        return snapshot(table, files, Version(entry=entry, newer=head))

    def version_at(self, table: str, time: datetime) -> int:
        """Return the number of the newest version at a time.

        Raises:
            UnknownTableError: There is no such table, or it is younger.
        """
        return history.version_at(Log(open_files(self._spark, table), table), table, time)

    def files(self, snapshot: Snapshot, columns: Sequence[NameParts] = ()) -> pa.Table:
        """Return the file table of the live files, with stats of *columns*."""
        version: Version = snapshot.handle.version
        resolved = dict(resolve(parts, snapshot.schema) for parts in columns)
        types = {parts: t for parts, t in resolved.items() if parts[0] not in snapshot.partition}
        if version.file_table is not None:
            return file_stats.select_stats(
                version.file_table, file_stats.schema(types, snapshot.partition)
            )
        return stats_table.load(
            snapshot.handle.files, version.entry.parts, types, snapshot.partition
        )

    def older(self, snapshot: Snapshot, time: datetime) -> pa.ChunkedArray:
        """Return the paths of the live files that were in the log before *time*."""
        return history.older(snapshot.handle.files, snapshot.handle.version, snapshot.table, time)

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return the current URIs of *paths* in the log."""
        store: Files = snapshot.handle.files
        current_paths = moving.current_paths(store, snapshot.handle.version.head, paths)
        return data.uris(self._spark, map(store.location, current_paths))

    def collect_stats(self, snapshot: Snapshot, columns: Sequence[NameParts]) -> Snapshot:  # noqa: ARG002
        """Return *snapshot* unchanged: the stats table covers all columns."""
        return snapshot

    def read(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the rows of *files*.

        Raises:
            ForeignChangeError: A file is missing, or its size differs from the log.
            VersionExpiredError: The folder was published or vacuumed since.
        """
        store: Files = snapshot.handle.files
        entry, head = snapshot.handle.version.entry, snapshot.handle.version.head
        external_changes.check_readable(store, snapshot.table, entry.version, head, files)
        columns = T.StructType.fromJson(json.loads(entry.schema))
        values = {name: file_stats.partition(files, name) for name in snapshot.partition}
        return data.read(
            self._spark,
            columns,
            list(map(store.location, moving.current_paths(store, head, files["path"].to_pylist()))),
            values,
        )

    def write(
        self, snapshot: Snapshot, rows: DataFrame, layout: Layout | None, encoding: Encoding
    ) -> Written:
        """Write *rows* into a hidden folder, which readers ignore."""
        store: Files = snapshot.handle.files
        entry = snapshot.handle.version.entry
        check_writable(store)
        # a pending table may take several writes, which share a folder and one commit
        pending = entry.operation is LogOperation.MIGRATE and entry.version < 0
        folder = str(entry.folder) if pending else data_folder(encoding.write)
        int96 = entry.int96 and not encoding.whole
        partition = snapshot.handle.folders
        paths = staging.write(store, rows, folder, partition, encoding, int96=int96)
        uris = data.uris(self._spark, map(store.location, paths))
        return Written(
            paths=dict(zip(paths, uris, strict=True)),
            handle=(folder, None if layout is None else layout.id, int96),
        )

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return *written* with the stats of the footers; INT96 columns are aggregated."""
        files = files.filter(pc.greater(files["rows"], 0))
        _, layout, int96 = written.handle
        stats = with_partition(files, dict(snapshot.partition), layout)
        if int96:
            stats = missing_stats.fill_missing_stats(self._spark, snapshot, stats)
        return Staged(files=stats, paths=written.paths, handle=written.handle)

    def read_staged(self, snapshot: Snapshot, staged: Staged) -> DataFrame:
        """Return the rows of staged files, which are already in the table's folder."""
        return self.read(snapshot, staged.files)

    def commit(self, change: Change) -> int:
        """Store the layouts, then exchange the files in one log entry.

        Raises:
            ConflictError: Another writer committed first; nothing was committed.
            UnknownOutcomeError: The commit may or may not have succeeded.
        """
        with before_sending(change.base.table):
            for layout in change.layouts:
                Layouts(change.base.handle.files).keep(layout)
            exchange = None if change.source is not None else self._exchange(change)
        if exchange is None:
            return loading.load(change)
        Log(change.base.handle.files, change.base.table).claim(exchange)
        return exchange.version

    def _exchange(self, change: Change) -> Entry:
        """Return the log entry that makes the change."""
        table, store = change.base.table, change.base.handle.files
        version: Version = change.base.handle.version
        (staged,) = change.staged
        folder, _, int96 = staged.handle
        if folder in version.aborted:
            raise StaleRewriteError(table, [folder])
        log, base = Log(store, table), version.entry
        if version.file_table is None and not log.has(base):
            raise ReplacedTableError(table)
        if version.file_table is not None:
            registered = stats_repair.complete_stats(self._spark, change, version.file_table)
            base = registration.register(log, store, version, registered)
        base = moving.finish_moves(log, store, table, base)
        try:
            for exchange in change.exchanges:
                store.sync(exchange.added["path"].to_pylist())
        except FileNotFoundError as error:  # vacuum has aborted this commit
            raise StaleRewriteError(table, [folder]) from error
        by_uri = {uri: path for path, uri in staged.paths.items()}
        check_present(change.sizes, lambda uri: store.size(by_uri[uri]))
        removed = [exchange.removed for exchange in change.exchanges]
        added = [exchange.added for exchange in change.exchanges]
        # engines shift timestamps if some files store INT96 and others do not
        if int96 != base.int96 and not commit_entries.is_whole(base, removed):
            raise StaleRewriteError(table, ["timestamp encoding"])
        fields = commit_entries.write_exchange(store, base, removed, added) | {
            "int96": int96,
            "folder": folder,
        }
        return commit_entries.build_next(
            log, base, LogOperation(change.operation.value), transaction=change.id, **fields
        )

    def scan(self, snapshot: Snapshot) -> DataFrame:
        """Return the rows of all files."""
        return self.read(snapshot, self.files(snapshot))

    list_scanned_files = staticmethod(list_scanned_files)
    restate = staticmethod(stats_repair.restate)
    side_files = staticmethod(side_files)

    def history(self, table: str) -> list[Commit]:
        """Return the commits of all versions, newest first, after verifying the log."""
        return history.history(Log(open_files(self._spark, table), table))

    def restore(self, table: str, version: int) -> Commit:
        """Commit a new version with the files of an older one."""
        return history.restore(open_files(self._spark, table), table, version)

    def vacuum(self, table: str, older_than: timedelta, *, dry_run: bool) -> Vacuumed:
        """Delete files needed only by versions older than *older_than*."""
        return catalog.vacuum(self._spark, table, older_than, dry_run=dry_run)

    def publish_folder(self, table: str, *, dry_run: bool) -> Published:
        """Make the folder's visible files those of the newest version."""
        return catalog.publish(self._spark, table, dry_run=dry_run)

    def define(self, snapshot: Snapshot) -> Definition:
        """Return the definition of the table: columns, partitioning and properties."""
        return loading.define(snapshot)

    def accept(self, definition: Definition) -> Definition:
        """Adapt *definition* to what a folder of Parquet files supports."""
        return loading.adapt_definition(definition)

    def pending(self, table: str, definition: Definition, source: Source) -> Snapshot:
        """Return a pending table without log entries, in an empty folder.

        Raises:
            UsageError: The folder holds visible files or a table, or cannot be created.
        """
        try:
            files = open_files(self._spark, table, make=True)
        except OSError as error:
            raise UsageError(f"cannot create {table}: {error.strerror}; pass another") from error
        return loading.pending(table, files, definition, source)

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:  # noqa: ARG002 - refused
        """Refuse to adopt files: a log that names files of other folders could expose any file."""
        loading.refuse_adoption(snapshot)

    def protect(self, snapshot: Snapshot) -> str:
        """Write a note that stops vacuum from deleting files, and return a description."""
        return shared_files.share(snapshot.handle.files)

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a newly created table.

        Raises:
            ConflictError: The table has more versions, or another table replaced it.
        """
        loading.drop(snapshot.handle.files, snapshot.table, snapshot.id)

    def close(self) -> None:
        """Do nothing: the backend holds no resources."""
