"""Data files of a version: from its manifests in bulk, or from Iceberg's metadata table ``files``.

The second is asked where the first is not possible. Metadata tables are loaded from the pinned
metadata and not by name, because ``db.t.files`` may be a table of the namespace ``db.t``.

The column ``partition`` of Iceberg's own has the fields of all partition specs. It cannot be built
where two of them have one name, and Spark cannot read a uuid in it. The metadata is therefore
changed, in memory, where a table has such fields: all specs become the current one, without uuids,
and its fields get names of their own. Manifests are read by field ids, so the files keep their
values, and files of other specs have none.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.names import NameParts, resolve
from zadapter.spark.jvm.scala import each
from zadapter.spark.jvm.spark_classes import select_texts
from zadapter.spark.jvm.spark_parts import arrow_parts
from zadapter.table.file_stats import concat_files
from zadapter.table.snapshot import Snapshot
from zadapter_iceberg.columns import Column
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats import row_deletes, uuid_partitions
from zadapter_iceberg.stats.manifest_columns import (
    STATS,
    LiveFiles,
    Manifests,
    PartitionField,
    UnreadManifestsError,
)
from zadapter_iceberg.stats.manifest_stats import Wanted, add_no_deletes, file_table
from zadapter_iceberg.stats.row_deletes import Deletes
from zadapter_iceberg.stats.scan_tasks import FilePlaces
from zadapter_iceberg.table.snapshots import Version, pin_metadata


def read_data_files(jvm: Jvm, version: Version, wanted: Sequence[Wanted]) -> Iterator[pa.Table]:
    """Return the rows of the metadata table ``files`` for data files, in parts.

    Args:
        jvm: The session's JVM.
        version: A version of the table.
        wanted: Columns whose stats are read.
    """
    table = pin_version(version)
    rows = read_metadata_rows(jvm, table, "FILES")
    if version.snapshot_id is None:  # the metadata may have a later snapshot
        rows = rows.where("false")
    ids = ", ".join(str(column.id) for column in wanted) or "-1"
    values = partition(table, version)
    facts = ["file_path", "spec_id", "record_count", "file_size_in_bytes"]
    maps = [f"map_filter({name}, (k, v) -> k IN ({ids})) AS {name}" for name in STATS]
    chosen = select_texts(rows.where("content = 0"), [*facts, *maps, *values])
    if values:
        chosen = chosen.withColumns(values)
    positions = {field.name: field.position for field in version.fields if field.is_uuid}
    uuids = uuid_partitions.read_uuids(jvm, version.pinned, version.snapshot_id, positions)
    for part in arrow_parts(chosen, version.estimated_files):
        yield uuid_partitions.add_to_partition(part, uuids)


def is_in_any_snapshot(version: Version, folder: str) -> bool:
    """Return whether a data file of any snapshot that is kept has *folder* in its path."""
    rows = read_metadata_rows(version.jvm, pin_all(version), "ALL_DATA_FILES")
    return bool(rows.where(F.col("file_path").contains(folder)).head(1))


def read_live_files(jvm: Jvm, snapshot: Snapshot, columns: Sequence[NameParts]) -> pa.Table:
    """Return the file table of the live data files, with the manifests' stats of *columns*."""
    version: Version = snapshot.handle
    stats_columns = select_stats_columns(snapshot, columns)
    deletes: dict[str, Deletes] | None = None
    if version.has_deletes:
        deletes = row_deletes.read_row_deletes(jvm, version.tasks.with_deletes(), version.since)
    spec = int(version.pinned.spec().specId())

    def convert(contents: pa.Table) -> pa.Table:
        return file_table(contents, stats_columns, snapshot.partition, deletes, spec)

    read = read_manifests(version, stats_columns, snapshot.partition)
    files = _collect(version, stats_columns, read, convert)
    if deletes is not None:
        return files
    if read.counts:
        places = FilePlaces(files["path"], read.manifests.items, read.counts)
        version.tasks.set_places(places)
    return add_no_deletes(files)


def read_paths(version: Version) -> pa.ChunkedArray:
    """Return the paths of the live data files."""
    read = read_manifests(version, (), {})
    return _collect(version, (), read, lambda part: part.select(["file_path"]))["file_path"]


def _collect(
    version: Version,
    wanted: Sequence[Wanted],
    read: LiveFiles,
    convert: Callable[[pa.Table], pa.Table],
) -> pa.Table:
    """Return what *convert* makes of the data files, part by part."""
    try:
        return concat_files(map(convert, read))
    except UnreadManifestsError:
        return concat_files(map(convert, read_data_files(version.jvm, version, wanted)))


def read_manifests(
    version: Version, wanted: Sequence[Wanted], partition: Mapping[str, pa.DataType]
) -> LiveFiles:
    """Return the live data files, to be read from the manifests.

    Args:
        version: A version of the table.
        wanted: Columns whose stats are read.
        partition: Fields of the current partition spec that are read, with the types of their
            values.
    """
    manifests = find_manifests(version, partition)
    return LiveFiles(version.jvm, manifests, [column.id for column in wanted])


def find_manifests(version: Version, partition: Mapping[str, pa.DataType]) -> Manifests:
    """Return the manifests of data files; *partition* has the fields of the spec to read."""
    table, fields = version.pinned, [each for each in version.fields if each.name in partition]
    io, items = table.io(), version.jvm.list(())
    if version.snapshot_id is not None:
        items = table.snapshot(version.snapshot_id).dataManifests(io)
    return Manifests(
        items=items,
        io=io,
        spec=int(table.spec().specId()),
        fields=[PartitionField(f.name, f.id, partition[f.name], f.is_uuid) for f in fields],
    )


def select_stats_columns(snapshot: Snapshot, columns: Sequence[NameParts]) -> list[Wanted]:
    """Return those of *columns* that have usable stats in manifests."""
    table_columns: Mapping[NameParts, Column] = snapshot.handle.columns
    resolved = [resolve(parts, snapshot.schema) for parts in columns]
    return [
        Wanted(parts, table_columns[parts].id, type_)
        for parts, type_ in resolved
        if parts[0] not in snapshot.partition and parts not in snapshot.without_bounds
    ]


def pin_version(version: Version) -> JavaObject:
    """Return the table at the snapshot of *version*, for its metadata tables."""
    metadata = version.metadata
    if version.snapshot_id is not None:
        builder = version.jvm.iceberg.TableMetadata.buildFrom(metadata)
        metadata = builder.setBranchSnapshot(version.snapshot_id, "main").discardChanges().build()
    return _pin(version, metadata)


def pin_all(version: Version) -> JavaObject:
    """Return the newest metadata of the table of *version*, for tables of all snapshots."""
    live = version.located.table
    live.refresh()
    return _pin(version, live.operations().current())


def _pin(version: Version, metadata: JavaObject) -> JavaObject:
    table = pin_metadata(version.jvm, version.pinned, metadata)
    if table.specs().size() == 1 and not _are_renamed(version):
        return table
    parser = version.jvm.iceberg.TableMetadataParser
    state = json.loads(parser.toJson(metadata))
    longest = max((parts[0] for parts in version.columns), key=len)
    (current,) = (
        spec["fields"]
        for spec in state["partition-specs"]
        if spec["spec-id"] == state["default-spec-id"]
    )
    kept = {field.id for field in version.fields if not field.is_uuid}
    fields = [
        field | {"name": f"{longest}{field['field-id']}"}
        for field in current
        if field["field-id"] in kept
    ]
    for spec in state["partition-specs"]:
        spec["fields"] = fields
    return pin_metadata(version.jvm, version.pinned, parser.fromJson(json.dumps(state)))


def _are_renamed(version: Version) -> bool:
    names = {field.name.lower() for field in version.fields}
    return len(names) < len(version.fields) or any(field.is_uuid for field in version.fields)


def read_metadata_rows(jvm: Jvm, table: JavaObject, kind: str) -> DataFrame:
    """Return the rows of a metadata table.

    Args:
        jvm: The session's JVM.
        table: A table of this module.
        kind: Name of a ``MetadataTableType``.
    """
    type_ = getattr(jvm.iceberg.MetadataTableType, kind)
    return DataFrame(
        jvm.iceberg.spark.SparkTableUtil.loadMetadataTable(jvm.session, table, type_), jvm.spark
    )


def partition(table: JavaObject, version: Version) -> dict[str, SparkColumn]:
    """Return the column ``partition`` with the fields of the current spec but uuids, if any."""
    if all(field.is_uuid for field in version.fields):
        return {}
    fields = each(version.jvm.root, table.spec().partitionType().fields())
    names = {int(field.fieldId()): str(field.name()) for field in fields}
    values = [
        F.col("partition").getField(names[field.id]).alias(field.name)
        for field in version.fields
        if not field.is_uuid
    ]
    return {"partition": F.struct(*values)}
