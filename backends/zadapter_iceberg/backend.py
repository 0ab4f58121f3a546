"""Implementation of the backend contract for Apache Iceberg."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.builds import Build
from zadapter.backend.format import Format, Library
from zadapter.base.commit_attempts import before_sending
from zadapter.base.interrupts import reraise
from zadapter.base.key_types import has_nan
from zadapter.base.locations import hadoop_qualifier, uris
from zadapter.base.names import NameParts, leaves, quote
from zadapter.errors import VersionExpiredError
from zadapter.layout.layout import Layout
from zadapter.layout.store import Layouts
from zadapter.spark.jvm.removal import removing
from zadapter.spark.jvm.scala import java_dict
from zadapter.table.encoding import Encoding
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Change, Snapshot, Source, Staged, Written
from zadapter.table.spec import Definition
from zadapter_iceberg import local_catalog
from zadapter_iceberg.bulk_calls import DataFiles, facts
from zadapter_iceberg.commits import add_files, creations, position_deletes, rewrites
from zadapter_iceberg.commits.position_deletes import ROW_DELETES
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats import content_file_json, scan_tasks
from zadapter_iceberg.stats.manifest_stats import file_table
from zadapter_iceberg.stats.scan_tasks import FILE
from zadapter_iceberg.table import migrated_from, specs
from zadapter_iceberg.table.files_table import (
    read_live_files,
    read_paths,
    select_stats_columns,
)
from zadapter_iceberg.table.lookup import Located, ancestors, locate, reload
from zadapter_iceberg.table.refusals import refuse, refuse_other_branch
from zadapter_iceberg.table.side_files import Store, remove_from, side_files
from zadapter_iceberg.table.snapshots import (
    Version,
    newest,
    older_version,
    partition_types,
    physical_names,
    read_version,
    schema,
    with_properties,
    without_bounds,
    without_stats,
)
from zadapter_iceberg.table.write_properties import (
    collect_full_stats,
    no_rows,
    scan,
    settings,
    split_size,
    with_fields,
)

_UNLIMITED = str(1 << 62)

_RELEASES = (
    ("4.1", "1.12.0", "2.13"),
    ("4.1", "1.11.0", "2.13"),
    ("4.0", "1.11.0", "2.13"),
    ("4.0", "1.10.1", "2.13"),
    ("3.5", "1.10.1", "2.12"),
)
"""Minor version of Spark, release of Iceberg, and version of Scala. Spark 4.2 has none yet."""
_SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"
"""Driver of the local catalog's database."""

FORMAT = Format(
    name="iceberg",
    migrates=True,
    dates_files=True,
    inspects=True,
    rebases=True,
    recovers=True,
    external_files=True,
    field_ids=True,
    rows_show_paths=True,
    library=Library(
        builds=tuple(
            Build(
                spark=spark,
                version=version,
                packages=(
                    f"org.apache.iceberg:iceberg-spark-runtime-{spark}_{scala}:{version}",
                    _SQLITE,
                ),
                local_settings=local_catalog.hadoop_settings if version < "1.11" else None,
            )
            for spark, version, scala in _RELEASES
        ),
        extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        probe="org.apache.iceberg.spark.SparkCatalog",
        version_method="org.apache.iceberg.IcebergBuild.version",
        operators=("org.apache.iceberg.",),
        local_settings=local_catalog.settings,
        python_package="pyiceberg",
    ),
)


class IcebergBackend:
    """Iceberg tables, read, written and committed through Iceberg's own classes."""

    format = FORMAT

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm = Jvm(spark)
        self._held: list[tuple[str, JavaObject]] = []

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*: a path, or an identifier with or without a branch.

        Raises:
            UnknownTableError: There is no such table or branch, or it is no Iceberg table.
            UnsupportedError: The table is encrypted, does not write Parquet, or has an unsupported
                format version; or ``spark.wap.branch`` redirects Spark to another branch.
        """
        # the table of a pending creation holds staged metadata, so it is looked up by name
        previous = None if since is None or since.handle.creation else since.handle.located
        located = previous or locate(self._jvm, table)
        refuse_other_branch(self._jvm, table, located)
        version = self._newest(table, located, since)
        refuse(table, version)
        applied = frozenset[str]() if since is None else self._find_applied(version, since)
        return self._snapshot(table, version, applied)

    def _newest(self, table: str, located: Located, since: Snapshot | None) -> Version:
        if since is None:
            return newest(self._jvm, located, None)
        try:
            return newest(self._jvm, located, since.handle)
        except Exception as error:  # noqa: BLE001 - Iceberg never refreshes to another uuid
            reraise(error)
            return newest(self._jvm, reload(self._jvm, table, located), since.handle)

    def _snapshot(
        self, table: str, version: Version, applied: frozenset[str] = frozenset()
    ) -> Snapshot:
        columns = schema(self._jvm, version.pinned.schema())
        located, uuid = version.located, str(version.pinned.uuid())
        return Snapshot(
            table=table,
            format=self.format.name,
            version=None if version.creation else version.snapshot_id or 0,
            location=str(version.pinned.location()),
            identifier=None if located.name is None else quote(located.name),
            schema=columns,
            partition=partition_types(self._jvm, version),
            # files refer to column ids and their spec; rows get ids by an upgrade to version 3
            id=uuid,
            definition=f"{uuid} {version.has_row_ids}",
            physical=physical_names(self._jvm, version.columns),
            field_ids={parts: column.id for parts, column in version.columns.items()},
            without_stats=without_stats(self._jvm, version, columns),
            without_bounds=without_bounds(version, columns),
            stored_types=version.stored_types,
            target_file_size=version.target_file_size,
            sort_order=version.sort_order,
            sort_columns=version.sort_columns,
            applied=applied,
            layouts=Layouts(Store(version.pinned)),
            source=lambda: migrated_from.source(version),
            properties=lambda: java_dict(self._jvm.root, version.pinned.properties()),
            rewritten=lambda since: migrated_from.find_rewrites(version, since),
            handle=version,
        )

    def _find_applied(self, version: Version, since: Snapshot) -> frozenset[str]:
        snapshots = ancestors(version.pinned, version.snapshot_id, since.handle.snapshot_id)
        ids = [snapshot.summary().get(rewrites.COMMIT) for snapshot in snapshots]
        return frozenset(str(commit_id) for commit_id in ids if commit_id is not None)

    def files(self, snapshot: Snapshot, columns: Sequence[NameParts] = ()) -> pa.Table:
        """Return the file table of the live data files, with the manifests' stats of *columns*."""
        return add_files.fill_layouts(
            snapshot.handle.pinned, read_live_files(self._jvm, snapshot, columns)
        )

    def older(self, snapshot: Snapshot, time: datetime) -> pa.ChunkedArray:
        """Return the paths of the live files of the newest snapshot before *time*."""
        return read_paths(older_version(snapshot.handle, time))

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:  # noqa: ARG002 - paths are locations
        """Return the URIs of *paths* in the manifests."""
        return uris(paths, hadoop_qualifier(self._jvm.root, self._jvm.session))

    def collect_stats(self, snapshot: Snapshot, columns: Sequence[NameParts]) -> Snapshot:
        """Set ``write.metadata.metrics.column.<name>`` of *columns* to ``full``, in one commit."""
        collect_full_stats(snapshot, columns)
        return self.snapshot(snapshot.table)

    def read(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the live rows of *files*: deletes are applied, row lineage is kept."""
        version: Version = snapshot.handle
        if not files.num_rows:
            return no_rows(self._jvm, version)
        tasks = version.tasks.find_tasks(files["path"].to_pylist())
        return with_fields(self._spark, self._rows(version, files, tasks), snapshot)

    def _rows(self, version: Version, files: pa.Table, tasks: JavaObject) -> DataFrame:
        """Return the rows of *files*; *tasks* is a list of their ``FileScanTask`` objects."""
        group = self._hold(version.pinned)
        self._jvm.scans.stageTasks(version.pinned, group, tasks)
        # Iceberg's module for Spark 4.1 needs the name alone, those before it need the option
        options = {"scan-task-set-id": group, "split-size": str(split_size(self._spark, files))}
        return self._spark.read.format("iceberg").options(**options).load(group)

    def write(
        self, snapshot: Snapshot, rows: DataFrame, layout: Layout | None, encoding: Encoding
    ) -> Written:
        """Write *rows* with Iceberg's writer into a new folder, named after the layout."""
        version: Version = snapshot.handle
        properties = settings(snapshot, layout, encoding)
        pinned, folder = version.pinned, properties["write.data.path"]
        group = self._hold(with_properties(self._jvm, pinned, properties))
        # rows are sorted by partition, except that Spark's sort does not separate 0.0 and -0.0
        has_floats = any(map(has_nan, snapshot.partition.values()))
        options = {
            "rewritten-file-scan-task-set-id": group,
            "use-table-distribution-and-ordering": "false",
            "fanout-enabled": str(has_floats).lower(),
            # readers may declare a required column as nullable; the writer still fails on a null
            "check-nullability": "false",
            "target-file-size-bytes": _UNLIMITED,
        }
        with removing(self._spark, partial(remove_from, pinned.io(), folder)) as kept:
            rows.write.format("iceberg").mode("append").options(**options).save(group)
            files = self._jvm.rewrites.fetchNewFiles(pinned, group)
            added = DataFiles(self._jvm, self._jvm.root.java.util.ArrayList(files))
            kept.update(location.rpartition("/")[2] for location in added)
        return Written(
            paths=dict(zip(added, self.uris(snapshot, list(added)), strict=True)),
            handle=rewrites.ExchangedFiles(
                planned=version.snapshot_id or 0,
                sequence=0 if version.snapshot_id is None else version.sequence,
                removed=version.tasks,
                added=added,
                folder=folder,
            ),
        )

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return *written* with the stats that Iceberg's writer has collected."""
        files = self._staged_files(snapshot, written.handle)
        return Staged(files=files, paths=written.paths, handle=written.handle)

    def _staged_files(self, snapshot: Snapshot, handle: rewrites.ExchangedFiles) -> pa.Table:
        """Return the file table of written files, with the deletes of their rows."""
        spec = snapshot.handle.pinned.spec()
        texts = handle.texts or handle.added.texts(spec)
        types = schema(self._jvm, spec.partitionType().asSchema())
        ids = content_file_json.field_ids(spec)
        contents = content_file_json.contents(texts, {each.name: each.type for each in types}, ids)
        known = [p for p, _ in leaves(snapshot.schema) if p not in snapshot.without_stats]
        wanted, spec_id = select_stats_columns(snapshot, known), int(spec.specId())
        deletes = position_deletes.of_files(handle.deletes, handle.added)
        return file_table(contents, wanted, snapshot.partition, deletes, spec_id)

    def read_staged(self, snapshot: Snapshot, staged: Staged) -> DataFrame:
        """Return the rows of staged files, which have no row-level deletes yet."""
        version: Version = snapshot.handle
        if not staged.files.num_rows:
            return no_rows(self._jvm, version)
        added = staged.handle.added.choose(staged.files["path"].to_pylist())
        new = scan_tasks.plan_files(self._jvm, version.pinned, added)
        return self._rows(version, staged.files, new)

    def marks_deletes(self, snapshot: Snapshot, removed: pa.Table, added: pa.Table) -> bool:
        """Return whether the table has row-level deletes, and the new files no more rows.

        Iceberg refuses to replace files by others with more rows, whether they are deleted or not.
        """
        version: Version = snapshot.handle
        if version.format_version < ROW_DELETES or not position_deletes.can_permit(self._jvm):
            return False
        replaced = version.tasks.files(removed["path"].to_pylist())
        count = self._jvm.loops.method(FILE, "recordCount")
        rows: list[int] = facts(self._jvm, replaced, {"rows": count})["rows"]
        return sum(rows) >= total(added, "rows")

    def read_places(self, snapshot: Snapshot, files: pa.Table) -> DataFrame:
        """Return the live rows of *files* with their places, and their ids if they have some."""
        version: Version = snapshot.handle
        tasks = version.tasks.find_tasks(files["path"].to_pylist())
        return position_deletes.with_places(self._jvm, self._rows(version, files, tasks))

    def read_staged_places(self, snapshot: Snapshot, staged: Staged) -> DataFrame:
        """Return the rows of staged files with their places, and their ids if they have some."""
        version: Version = snapshot.handle
        added = [staged.handle.added[path] for path in staged.files["path"].to_pylist()]
        numbered = position_deletes.with_first_ids(self._jvm, version, added)
        new = scan_tasks.plan_files(self._jvm, version.pinned, self._jvm.list(numbered))
        rows = self._rows(version, staged.files, new)
        return position_deletes.with_places(self._jvm, rows)

    def mark_deletes(self, snapshot: Snapshot, staged: Staged, places: DataFrame) -> Staged:
        """Return *staged* with position deletes, or with deletion vectors from version 3 on."""
        handle: rewrites.ExchangedFiles = staged.handle
        deletes = position_deletes.write(
            self._jvm, snapshot.handle, handle.folder, handle.added, places
        )
        locations = list({str(delete.file.location()): None for delete in deletes})
        written = dict(zip(locations, self.uris(snapshot, locations), strict=True))
        marked = replace(handle, deletes=tuple(deletes))
        files = self._staged_files(snapshot, marked)
        return Staged(files=files, paths={**staged.paths, **written}, handle=marked)

    def commit(self, change: Change) -> int:
        """Store the layouts, then exchange the files in one commit, a ``replace`` or an append.

        Raises:
            ConflictError: Another writer committed first; nothing was committed.
            UnsupportedError: The catalog rejects the commit.
            UnknownOutcomeError: The commit may or may not have succeeded.
        """
        with before_sending(change.base.table):
            store = Store(change.base.handle.pinned)
            for layout in change.layouts:
                Layouts(store).keep(layout)
            adopted = None if change.source is None else add_files.store_layouts(store, change)
        if change.source is not None:
            return creations.load(self._jvm, change, change.source, adopted)
        return rewrites.commit(self._jvm, change.base.handle.located, change)

    def scan(self, snapshot: Snapshot) -> DataFrame:
        """Return the rows of the table, read as queries on it are."""
        return scan(self._jvm, snapshot)

    def list_scanned_files(self, rows: DataFrame) -> list[str]:
        """Return the URIs of the data files in the tasks that Iceberg plans."""
        return uris(
            scan_tasks.list_planned_files(rows), hadoop_qualifier(self._jvm.root, self._jvm.session)
        )

    restate = staticmethod(rewrites.refuse_restating)
    side_files = staticmethod(side_files)

    def at(self, table: str, version: int) -> Snapshot:
        """Return the version of a snapshot, 0 for none, with the current schema and spec.

        Raises:
            UnknownTableError: There is no such table.
            VersionExpiredError: The snapshot has expired.
        """
        located = locate(self._jvm, table)
        if version and located.table.snapshot(version) is None:
            raise VersionExpiredError(table, version, 0)
        return self._snapshot(table, read_version(self._jvm, located, version or None))

    def define(self, snapshot: Snapshot) -> Definition:
        """Return the definition of the table: columns, partitioning and properties."""
        return specs.define(self._jvm, snapshot)

    def accept(self, definition: Definition) -> Definition:
        """Adapt *definition* to what an Iceberg table supports."""
        return specs.adapt_definition(definition)

    def pending(self, table: str, definition: Definition, source: Source) -> Snapshot:  # noqa: ARG002 - recorded when it is loaded
        """Return a pending table, which its catalog does not list yet.

        Raises:
            UsageError: The table exists, or no Iceberg catalog and namespace fit its name.
        """
        return self._snapshot(table, creations.pending(self._jvm, table, definition))

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
        """Return ``DataFile`` objects for files at any location."""
        return add_files.adopt_files(self._jvm, snapshot, files, uris)

    def protect(self, snapshot: Snapshot) -> str:
        """Set ``gc.enabled`` to false, and return a description."""
        return creations.protect(self._jvm, snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a newly created table, and its data files unless it adopted them.

        Raises:
            ConflictError: The table has changed since.
        """
        creations.drop(self._jvm, snapshot)

    def _hold(self, table: JavaObject) -> str:
        """Register *table* with Spark under a new name, and return the name."""
        group = uuid4().hex
        self._jvm.tables.add(group, table)
        self._held.append((group, table))
        return group

    def close(self) -> None:
        """Remove the registered tables from Spark's caches."""
        while self._held:
            group, table = self._held.pop()
            self._jvm.tables.remove(group)
            self._jvm.scans.removeTasks(table, group)
            self._jvm.rewrites.clearRewrite(table, group)
