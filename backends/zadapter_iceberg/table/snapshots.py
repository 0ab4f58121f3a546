"""Versions of Iceberg tables, pinned against later commits."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import pyarrow as pa

from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import first_line
from zadapter.base.names import NameParts, join, leaves
from zadapter.base.printable import abridge
from zadapter.errors import UnsupportedError
from zadapter.spark.jvm.scala import each, java_map
from zadapter.table.spark_schema import arrow_schema
from zadapter_iceberg.columns import Column, Field, check_names, columns, fields
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.key_types import AS_SPARK_READS, WITHOUT_BOUNDS
from zadapter_iceberg.stats import scan_tasks
from zadapter_iceberg.table.lookup import Located

METRICS = "write.metadata.metrics.column."
"""Prefix of the properties that set a column's metrics mode."""
_AS_SPARK = re.compile("|".join(AS_SPARK_READS))

TARGET_FILE_SIZE = "write.target-file-size-bytes"
"""Property for the size of written files."""

ROW_LINEAGE = 3
"""First format version with row ids."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """Version of a table."""

    jvm: Jvm
    located: Located
    pinned: JavaObject
    """Iceberg's ``Table`` with fixed metadata, which never refreshes."""
    snapshot_id: int | None
    """None: the table has no snapshot yet."""
    columns: Mapping[NameParts, Column] = field(repr=False)
    fields: Sequence[Field] = field(repr=False)
    """Fields of the current partition spec."""
    creation: JavaObject = None
    """Iceberg's ``Transaction`` that creates the table; None: the table exists."""
    since: scan_tasks.Since | None = None
    """Plan of the rewrite that this version is compared with, if any."""

    @property
    def computed_fields(self) -> list[Field]:
        """Partition fields that are not table columns."""
        return [spec_field for spec_field in self.fields if (spec_field.name,) not in self.columns]

    @property
    def stored_types(self) -> dict[NameParts, str]:
        """Types that Spark reads as another one, by column."""
        types = {parts: column.type for parts, column in self.columns.items()}
        return {parts: type_ for parts, type_ in types.items() if _AS_SPARK.match(type_)}

    @cached_property
    def sequence(self) -> int:
        """Sequence number of the snapshot."""
        return int(self.pinned.snapshot(self.snapshot_id).sequenceNumber())

    @property
    def still(self) -> scan_tasks.Since | None:
        """Plan of a rewrite of this version; None if there is no snapshot."""
        if self.snapshot_id is None:
            return None
        return scan_tasks.Since(sequence=self.sequence, spec=int(self.pinned.spec().specId()))

    @cached_property
    def tasks(self) -> scan_tasks.Tasks:
        """The ``FileScanTask`` objects of the live data files."""
        return scan_tasks.Tasks(self.jvm, self.pinned, self.snapshot_id, self.estimated_files)

    def find_late_deletes(self, paths: Iterable[str]) -> dict[str, JavaObject]:
        """Return the equality deletes that were added since ``since``, by path.

        Args:
            paths: Data files that are live in both versions.
        """
        since = self.since
        if since is None or not self.has_deletes:
            return {}
        tasks = self.tasks.with_deletes(self.tasks.find_tasks(paths))
        root = self.jvm.root
        of_specs = ((int(task.file().specId()), task.deletes()) for task in each(root, tasks))
        return {
            str(delete.location()): delete
            for spec, deletes in of_specs
            for delete in each(root, deletes)
            if since.covers(delete.dataSequenceNumber(), spec)
            and delete.content().name() != scan_tasks.POSITIONS
        }

    @cached_property
    def estimated_files(self) -> int:
        """About how many data files there are; 0: unknown, or none."""
        if self.snapshot_id is None:
            return 0
        summary = self.pinned.snapshot(self.snapshot_id).summary()
        count = None if summary is None else summary.get("total-data-files")
        return int(count) if count is not None and str(count).isdecimal() else 0

    @property
    def target_file_size(self) -> int | None:
        """Size of written files that the table's properties state, in bytes; None for none."""
        size = self.pinned.properties().getOrDefault(TARGET_FILE_SIZE, "")
        return int(size) if size.isdecimal() else None

    @property
    def sort_order(self) -> str:
        """The order in which the table asks for rows to be written, as text; empty if unsorted."""
        schema = self.pinned.schema()
        fields = each(self.jvm.root, self.pinned.sortOrder().fields())
        named = [(str(schema.findColumnName(field.sourceId())), field) for field in fields]
        return ", ".join(
            f"{name if field.transform().isIdentity() else f'{field.transform()}({name})'} "
            f"{field.direction()}"
            for name, field in named
        )

    @property
    def sort_columns(self) -> tuple[NameParts, ...]:
        """Columns of this order, without those of transforms such as ``bucket``."""
        names = {column.id: parts for parts, column in self.columns.items()}
        fields = each(self.jvm.root, self.pinned.sortOrder().fields())
        ordered = [int(f.sourceId()) for f in fields if f.transform().preservesOrder()]
        return tuple(dict.fromkeys(names[id_] for id_ in ordered))

    @cached_property
    def has_row_ids(self) -> bool:
        """Whether rows have ids (row lineage)."""
        return self.format_version >= ROW_LINEAGE

    @cached_property
    def format_version(self) -> int:
        """Version of Iceberg's format."""
        return int(self.metadata.formatVersion())

    @cached_property
    def metadata(self) -> JavaObject:
        """Iceberg's ``TableMetadata``."""
        return self.pinned.operations().current()

    @cached_property
    def has_deletes(self) -> bool:
        """Whether there are row-level deletes."""
        if self.snapshot_id is None:
            return False
        snapshot = self.pinned.snapshot(self.snapshot_id)
        return not snapshot.deleteManifests(self.pinned.io()).isEmpty()


def newest(jvm: Jvm, located: Located, since: Version | None) -> Version:
    """Return the table's newest version, compared with *since*.

    Args:
        jvm: The session's JVM.
        located: The table.
        since: An older version that a rewrite was planned on; None if there is none.

    Raises:
        UnsupportedError: A partition field is unsupported, or its name equals a column's name
            except for case.
    """
    live = located.table
    live.refresh()
    head = live.snapshot(located.branch or "main")
    version = read_version(jvm, located, None if head is None else int(head.snapshotId()))
    return replace(version, since=None if since is None else since.still)


def read_version(jvm: Jvm, located: Located, snapshot_id: int | None) -> Version:
    """Return a version of the loaded table, with its current schema and partition spec.

    Raises:
        UnsupportedError: A partition field is unsupported, or a name is empty, the name of a
            metadata column, or differs from another one only in case.
    """
    pinned = with_properties(jvm, located.table, {})
    schema_json = json.loads(jvm.iceberg.SchemaParser.toJson(pinned.schema()))
    check_names(schema_json)
    table_columns = columns(schema_json)
    _refuse_metadata(jvm, table_columns)
    spec = json.loads(jvm.iceberg.PartitionSpecParser.toJson(pinned.spec()))
    spec_fields = fields(spec, table_columns)
    _refuse_twins(spec_fields, table_columns)
    return Version(
        jvm=jvm,
        located=located,
        pinned=pinned,
        snapshot_id=snapshot_id,
        columns=table_columns,
        fields=spec_fields,
    )


def _refuse_metadata(jvm: Jvm, table_columns: Mapping[NameParts, Column]) -> None:
    is_metadata = jvm.iceberg.MetadataColumns.isMetadataColumn
    for name, *below in table_columns:
        if not below and name.startswith("_") and is_metadata(name):
            raise UnsupportedError(
                f"column {name} has the name of a metadata column of Iceberg, so Spark cannot read "
                "it; rename it"
            )


def _refuse_twins(spec_fields: Sequence[Field], table_columns: Mapping[NameParts, Column]) -> None:
    columns = {parts[0].lower(): parts[0] for parts in table_columns}
    for spec_field in spec_fields:
        twin = columns.get(spec_field.name.lower(), spec_field.name)
        if twin != spec_field.name:
            raise UnsupportedError(
                f"partition field {spec_field.name!r} and column {twin!r} differ only in case; "
                "rename one"
            )


def with_properties(jvm: Jvm, table: JavaObject, properties: Mapping[str, str]) -> JavaObject:
    """Return a copy of *table*, fixed to its current metadata, with additional properties."""
    metadata = table.operations().current()
    if properties:
        merged = jvm.root.java.util.HashMap(metadata.properties())
        merged.putAll(java_map(jvm.root, properties))
        metadata = metadata.replaceProperties(merged)
    return pin_metadata(jvm, table, metadata)


def pin_metadata(jvm: Jvm, table: JavaObject, metadata: JavaObject) -> JavaObject:
    """Return a copy of *table*, fixed to other metadata of it."""
    locations = jvm.iceberg.LocationProviders.locationsFor(
        metadata.location(), metadata.properties()
    )
    operations = jvm.iceberg.StaticTableOperations(metadata, table.io(), locations)
    return jvm.iceberg.BaseTable(operations, table.name())


def schema(jvm: Jvm, iceberg_schema: JavaObject) -> pa.Schema:
    """Convert an Iceberg schema to Arrow by way of Spark's types.

    Raises:
        UnsupportedError: Spark has no matching type for a column.
    """
    try:
        converted = jvm.iceberg.spark.SparkSchemaUtil.convert(iceberg_schema)
    except Exception as error:
        names = abridge(list(_find_unreadable_columns(jvm, iceberg_schema)))
        raise UnsupportedError(f"Spark cannot read column {names}: {first_line(error)}") from error
    return arrow_schema(json.loads(converted.json()))


def _find_unreadable_columns(jvm: Jvm, iceberg_schema: JavaObject) -> Iterator[str]:
    for column in iceberg_schema.columns():
        try:
            jvm.iceberg.spark.SparkSchemaUtil.convert(column.type())
        except Exception as error:  # noqa: BLE001, PERF203 - finds the columns that fail
            reraise(error)
            yield join((str(column.name()),))


def partition_types(jvm: Jvm, version: Version) -> dict[str, pa.DataType]:
    """Return the value type of each partition field."""
    types = schema(jvm, version.pinned.spec().partitionType().asSchema())
    return {spec_field.name: types.field(spec_field.name).type for spec_field in version.fields}


def physical_names(
    jvm: Jvm, table_columns: Mapping[NameParts, Column]
) -> dict[NameParts, NameParts]:
    """Return the name of each column in Parquet files, where Iceberg follows Avro's rules."""
    compatible = jvm.iceberg.avro.AvroSchemaUtil.makeCompatibleName
    names = {part: str(compatible(part)) for parts in table_columns for part in parts}
    return {parts: tuple(names[part] for part in parts) for parts in table_columns}


def without_bounds(version: Version, table: pa.Schema) -> frozenset[NameParts]:
    """Return the leaf columns of types without usable bounds."""
    types = {parts: version.columns[parts].type for parts, _ in leaves(table)}
    type_names = {parts: type_.partition("[")[0] for parts, type_ in types.items()}
    return frozenset(parts for parts, name in type_names.items() if name in WITHOUT_BOUNDS)


def without_stats(jvm: Jvm, version: Version, table: pa.Schema) -> frozenset[NameParts]:
    """Return the leaf columns whose metrics mode stores no bounds."""
    config = jvm.iceberg.MetricsConfig.forTable(version.pinned)
    modes = {
        parts: str(config.columnMode(".".join(parts)).toString()) for parts, _ in leaves(table)
    }
    return frozenset(parts for parts, mode in modes.items() if mode in {"none", "counts"})


def older_version(version: Version, time: datetime) -> Version:
    """Return the newest ancestor committed before *time*; if none is known, one without files."""
    before, table = int(time.timestamp() * 1_000), version.pinned
    snapshot = None if version.snapshot_id is None else table.snapshot(version.snapshot_id)
    while snapshot is not None and int(snapshot.timestampMillis()) >= before:
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)
    return replace(version, snapshot_id=None if snapshot is None else int(snapshot.snapshotId()))
