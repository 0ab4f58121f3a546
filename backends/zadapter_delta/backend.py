"""Implementation of the backend contract for Delta Lake."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.builds import Build
from zadapter.backend.format import Format, Library, Settings
from zadapter.backend.row_files import row_files
from zadapter.base.commit_attempts import before_sending
from zadapter.base.locations import is_relative
from zadapter.base.names import NameParts, leaves, quote, split
from zadapter.errors import VerificationError
from zadapter.layout.layout import Layout
from zadapter.layout.store import Layouts
from zadapter.spark.jvm.spark_classes import activate, list_scanned_files
from zadapter.spark.jvm.spark_parts import arrow_parts
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Snapshot, Source, Staged, Written
from zadapter.table.spec import Definition
from zadapter_delta.commits import creations, deletion_vectors, rewrites
from zadapter_delta.jvm import Add, JavaObject, Jvm
from zadapter_delta.stats.add_files import by_spark
from zadapter_delta.table import snapshots, specs, zones
from zadapter_delta.table.clustering import check, is_clustered
from zadapter_delta.table.live_files import LiveFiles
from zadapter_delta.table.lookup import Located, current, locate, reload
from zadapter_delta.table.side_files import Store
from zadapter_delta.table.snapshots import Handle

_NO_STATS = {"spark.databricks.delta.stats.collect": "false"}
"""Disables stats collection during writes: it takes a fifth of the write time, and the footers hold
the same stats."""
_ABSOLUTE_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:/")
_STATS_COLUMNS = "delta.dataSkippingStatsColumns"

_RELEASES = (
    ("4.1", "4.4.0", "4.1_2.13"),
    ("4.1", "4.2.0", "4.1_2.13"),
    ("4.2", "4.4.0", "4.2_2.13"),
    ("4.0", "4.4.0", "4.0_2.13"),
    ("4.0", "4.0.0", "2.13"),
    ("3.5", "3.3.2", "2.12"),
)
"""Minor version of Spark, release of Delta, and the end of its artifact's name."""


def _local_settings(_: Settings, cores: int) -> Settings:
    """Return one partition per core for a table's state, where Delta's default is 50."""
    return {"spark.databricks.delta.snapshotPartitions": str(cores)}


FORMAT = Format(
    name="delta",
    log="_delta_log",
    migrates=True,
    dates_files=True,
    inspects=True,
    rebases=True,
    recovers=True,
    external_files=True,
    library=Library(
        builds=tuple(
            Build(spark=spark, version=version, packages=(f"io.delta:delta-spark_{end}:{version}",))
            for spark, version, end in _RELEASES
        ),
        excludes=(
            "com.fasterxml.jackson.core:jackson-annotations",
            "com.fasterxml.jackson.core:jackson-core",
            "com.fasterxml.jackson.core:jackson-databind",
            "org.apache.hadoop:hadoop-client-api",
            "org.apache.hadoop:hadoop-client-runtime",
            "org.apache.logging.log4j:log4j-api",
            "org.apache.logging.log4j:log4j-core",
            "org.apache.logging.log4j:log4j-slf4j2-impl",
            "org.apache.parquet:parquet-hadoop",
            "org.roaringbitmap:RoaringBitmap",
            "org.slf4j:slf4j-api",
        ),
        extension="io.delta.sql.DeltaSparkSessionExtension",
        catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
        probe="org.apache.spark.sql.delta.DeltaLog",
        version_method="io.delta.package.VERSION",
        operators=("org.apache.spark.sql.delta.", "io.delta."),
        local_settings=_local_settings,
        client="delta-spark",
    ),
)


class DeltaBackend:
    """Delta tables, read and committed through Delta's own classes."""

    format = FORMAT

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        self._live = LiveFiles(self._jvm)
        self._texts = zones.Texts(self._jvm, self._live)

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*: a path, ``delta.`path``` or an identifier.

        Raises:
            UnknownTableError: There is no such table, or it is not a Delta table.
            UnsupportedError: A catalog-managed table, a protocol that this Delta version cannot
                write, a clustering column whose stats zadapter cannot write, or a partition column
                by which Delta finds no rows.
        """
        located = locate(self._jvm, table) if since is None else self._reload(since)
        snapshot = current(self._jvm, table, located)
        applied = frozenset[str]()
        if since is not None:
            versions = range(
                0 if since.version is None else since.version + 1, int(snapshot.version()) + 1
            )
            applied = rewrites.commit_ids(self._jvm, located.log, versions)
        found = snapshots.read_snapshot(self._jvm, table, Handle(located, snapshot), applied)
        return check(specs.check_names(found))

    def _reload(self, since: Snapshot) -> Located:
        """Return the table of *since*, or the table that has its name now."""
        previous: Located = since.handle.located
        if since.version is None:
            return previous
        located = reload(self._jvm, previous)
        return located if located.log.tableExists() else locate(self._jvm, since.table)

    def files(self, snapshot: Snapshot, columns: Sequence[NameParts] = ()) -> pa.Table:
        """Return the file table of the live files, with the log's stats of *columns*."""
        base = snapshot.handle.snapshot
        self._texts.read_texts(snapshot)
        return self._live.to_table(base, lambda read: snapshots.file_table(snapshot, read, columns))

    def older(self, snapshot: Snapshot, time: datetime) -> pa.ChunkedArray:
        """Return the paths of the live files that were written before *time*."""
        adds = self._live.frame(snapshot.handle.snapshot)
        written = F.col("modificationTime") < int(time.timestamp() * 1_000)
        parts = arrow_parts(
            adds.where(written).select("path"), self._live.estimate_count(snapshot.handle.snapshot)
        )
        return pa.concat_tables(parts)["path"]

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return the URIs of *paths* in the log, which may lie outside the table's folder."""
        folder: Store = snapshot.handle.located.side_files
        operations = self._jvm.delta.util.DeltaFileOperations
        return [
            f"{folder.uri}/{path}"
            if is_relative(path)
            # paths in the log are escaped (PROTOCOL.md, "Add File"), so an absolute one is a URI
            else path
            if _ABSOLUTE_URI.match(path)
            else str(operations.absolutePath(folder.root, path).toUri())
            for path in paths
        ]

    def collect_stats(self, snapshot: Snapshot, columns: Sequence[NameParts]) -> Snapshot:
        """Add *columns* to the table's ``delta.dataSkippingStatsColumns``, in one commit.

        Raises:
            ConflictError: Another writer changed the table's properties meanwhile.
        """
        with_stats = [
            parts
            for parts, _ in leaves(snapshot.schema)
            if parts not in snapshot.without_stats and parts[0] not in snapshot.partition
        ]
        names = ",".join(map(quote, (*with_stats, *columns)))
        rewrites.set_property(self._jvm, snapshot, _STATS_COLUMNS, names)
        return self.snapshot(snapshot.table)

    def read(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the live rows of *files*: deletion vectors are applied, row ids are kept."""
        _, base = snapshot.handle
        adds = self._texts.add_zones(snapshot, self._live.find_actions(base, files))
        tracking = self._jvm.module(self._jvm.delta, "RowTracking")
        with activate(self._spark):
            rows = self._rows(snapshot, self._jvm.seq_of(adds))
            return DataFrame(tracking.preserveRowTrackingColumns(rows, base), self._spark)

    def _rows(self, snapshot: Snapshot, adds: JavaObject) -> JavaObject:
        """Return the rows of a Scala ``Seq`` of AddFile actions as a Spark ``Dataset``.

        The session is to be the active one.
        """
        located, base = snapshot.handle
        return located.log.createDataFrame(base, adds, False, self._jvm.option("Optimize"))  # noqa: FBT003

    def write(
        self, snapshot: Snapshot, rows: DataFrame, layout: Layout | None, encoding: Encoding
    ) -> Written:
        """Write *rows* with Delta's writer, which applies constraints and column mapping."""
        base = snapshot.handle.snapshot
        columns = () if layout is None else layout.request.columns
        local = not zones.find_zoned_columns(snapshot)
        settings = _NO_STATS | encoding.settings(snapshot.physical)
        with self._set(settings if local else settings | zones.IN_UTC):
            written = rewrites.write(
                self._jvm, snapshot.handle, rows, encoding.write, checked=local
            )
        written = self._texts.restore_texts(snapshot, written)
        if layout is not None:
            clustered = is_clustered(self._jvm, base)
            written = [
                rewrites.tag_with_layout(add, layout.id, clustered=clustered) for add in written
            ]
        adds = {add["path"]: add for add in written}
        return Written(
            paths=dict(zip(adds, self.uris(snapshot, list(adds)), strict=True)),
            handle=(columns, adds),
        )

    @contextmanager
    def _set(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Change settings of the session temporarily."""
        previous = {key: self._spark.conf.get(key, None) for key in settings}
        try:
            for key, value in settings.items():
                self._spark.conf.set(key, value)
            yield
        finally:
            for key, old in previous.items():
                if old is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, old)

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return *written* with stats as JSON, and a file table parsed from that JSON."""
        files = files.filter(pc.greater(files["rows"], 0))
        keys, written_adds = written.handle
        texts = rewrites.format_stats(self._jvm, snapshot, files, keys)
        adds = {
            path: {**written_adds[path], "dataChange": False, "stats": text}
            for path, text in zip(files["path"].to_pylist(), texts, strict=True)
        }
        return Staged(files=self._staged_files(snapshot, adds), paths=written.paths, handle=adds)

    def _staged_files(self, snapshot: Snapshot, adds: Mapping[str, Add]) -> pa.Table:
        """Return the file table of AddFile actions, parsed from the lines that the log gets."""
        with_stats = [p for p, _ in leaves(snapshot.schema) if p not in snapshot.without_stats]
        rows = self._jvm.action_frame(self._jvm.to_java(adds.values()))
        return snapshots.file_table(snapshot, by_spark(rows), with_stats)

    def read_staged(self, snapshot: Snapshot, staged: Staged) -> DataFrame:
        """Return the rows of staged files without row ids."""
        adds = [staged.handle[path] for path in staged.files["path"].to_pylist()]
        with activate(self._spark):
            return DataFrame(self._rows(snapshot, self._seq(adds)), self._spark)

    def _seq(self, adds: Iterable[Add]) -> JavaObject:
        return self._jvm.seq_of(self._jvm.to_java(adds))

    def marks_deletes(self, snapshot: Snapshot, removed: pa.Table, added: pa.Table) -> bool:  # noqa: ARG002 - a matter of the table
        """Return whether the table has deletion vectors enabled."""
        return deletion_vectors.are_enabled(snapshot.handle.snapshot)

    def read_places(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the live rows of *files* with their places, and their ids if they have some."""
        base = snapshot.handle.snapshot
        adds = self._live.find_actions(base, files)
        return self._places(snapshot, self._jvm.seq_of(self._texts.add_zones(snapshot, adds)))

    def read_staged_places(self, snapshot: Snapshot, staged: Staged) -> DataFrame:
        """Return the rows of staged files with their places, and their ids if they have some."""
        adds = (staged.handle[path] for path in staged.files["path"].to_pylist())
        return self._places(snapshot, self._seq(map(deletion_vectors.with_first_ids, adds)))

    def _places(self, snapshot: Snapshot, adds: JavaObject) -> DataFrame:
        with activate(self._spark):
            rows = DataFrame(self._rows(snapshot, adds), self._spark)
            return deletion_vectors.with_places(self._jvm, rows, snapshot.handle.snapshot)

    def mark_deletes(self, snapshot: Snapshot, staged: Staged, places: DataFrame) -> Staged:
        """Return *staged* with deletion vectors."""
        log = snapshot.handle.located.log
        with activate(self._spark):
            vectors = deletion_vectors.write(self._jvm, snapshot.handle, places)
        names = row_files(self, snapshot, list(staged.handle))
        paths, adds = list(staged.handle), dict(staged.handle)
        for name, vector in vectors.items():
            number = names.number(name)
            if number is None:
                raise VerificationError(f"{name} is no new file; please report this")
            path = paths[number]
            adds[path] = deletion_vectors.attach(adds[path], vector)
        files = self._staged_files(snapshot, adds)
        located = deletion_vectors.locations(log, vectors.values())
        return Staged(files=files, paths={**staged.paths, **located}, handle=adds)

    def commit(self, change: Change) -> int:
        """Store the layouts, then exchange the files in one commit: an OPTIMIZE, or a WRITE.

        Raises:
            ConflictError: Another writer committed first; nothing was committed.
            ReplacedTableError: The table was dropped and created again.
            UnknownOutcomeError: The commit may or may not have succeeded.
        """
        with before_sending(change.base.table):
            for layout in change.layouts:
                Layouts(self.side_files(change.base)).keep(layout)
            staged = {path: add for part in change.staged for path, add in part.handle.items()}
            adds = [staged[path] for path in change.added["path"].to_pylist()]
            removes = self._removes(change) if change.source is None else None
        if change.source is not None:
            return creations.load(self._jvm, change, change.source, adds)
        return rewrites.commit(self._jvm, change, removes, adds)

    def _removes(self, change: Change) -> JavaObject:
        """Return the AddFile actions of the files that it removes as a ``java.util.List``."""
        try:
            return self._live.find_actions(change.base.handle.snapshot, change.removed)
        except Exception:  # Delta reads the log lazily, and it may now be another table's
            rewrites.refuse_another(self._jvm, change.base)
            raise

    def side_files(self, snapshot: Snapshot) -> Store:
        """Return the files beside the table."""
        store: Store = snapshot.handle.located.side_files
        return store

    def scan(self, snapshot: Snapshot) -> DataFrame:
        """Return the rows of this version, read as Delta's own queries are."""
        reader = self._spark.read.format("delta").option("versionAsOf", str(snapshot.version))
        return reader.load(snapshot.location)

    list_scanned_files = staticmethod(list_scanned_files)

    def restate(self, snapshot: Snapshot, files: pa.Table) -> int:
        """Commit the same AddFile actions with new stats, without data change."""
        adds = self._live.find_actions(snapshot.handle.snapshot, files)
        columns = [split(each.name) for each in files.schema.field("stats").type]
        texts = rewrites.format_stats(self._jvm, snapshot, files, columns)
        return rewrites.commit_stats(self._jvm, snapshot, adds, files["path"].to_pylist(), texts)

    def at(self, table: str, version: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table.
            VersionExpiredError: The log entries of this version are gone.
        """
        return snapshots.read_older(self._jvm, table, version)

    def define(self, snapshot: Snapshot) -> Definition:
        """Return the definition of the table: columns, partitioning and properties."""
        return specs.define(self._jvm, snapshot)

    def accept(self, definition: Definition) -> Definition:
        """Adapt *definition* to what a Delta table supports."""
        return specs.adapt_definition(definition)

    def pending(self, table: str, definition: Definition, source: Source) -> Snapshot:
        """Return a pending table, whose log does not exist yet.

        Raises:
            UsageError: The table exists, *table* is no path, or Delta rejects the definition.
        """
        handle = creations.pending(self._jvm, table, definition, source)
        return snapshots.read_snapshot(self._jvm, table, handle)

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
        """Return AddFile actions for files outside the table's folder, with their URIs as paths."""
        names = [snapshot.physical[name,][0] for name in snapshot.partition]
        clustered = is_clustered(self._jvm, snapshot.handle.snapshot)
        adds = creations.actions(files, uris, names, clustered=clustered)
        paths = dict(zip(uris, uris, strict=True))
        return Written(paths=paths, handle=((), dict(zip(uris, adds, strict=True))))

    def protect(self, snapshot: Snapshot) -> str:
        """Set the retention of removed files to a hundred years, and return a description."""
        return creations.protect(self._jvm, snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        """Delete the log of a newly created table.

        Raises:
            ConflictError: The table has more than one version, or another table replaced it.
        """
        creations.drop(self._jvm, snapshot)

    def close(self) -> None:
        """Do nothing: Delta caches nothing for a backend."""
