"""Data files of a version, from Iceberg's metadata table ``files``."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.names import Parts, resolve
from zadapter.spark.jvm.spark_parts import arrow_parts
from zadapter.table.file_stats import joined
from zadapter.table.snapshot import Snapshot
from zadapter_iceberg.columns import Column
from zadapter_iceberg.jvm import Jvm
from zadapter_iceberg.stats import row_deletes, uuid_partitions
from zadapter_iceberg.stats.manifest_stats import Wanted, file_table
from zadapter_iceberg.stats.row_deletes import Deletes
from zadapter_iceberg.table import metadata_tables
from zadapter_iceberg.table.snapshots import Version

_MAPS = ("lower_bounds", "upper_bounds", "null_value_counts", "nan_value_counts")


def listed(jvm: Jvm, version: Version, wanted: Sequence[Wanted]) -> Iterator[pa.Table]:
    """Return the rows of the metadata table ``files`` for data files, in parts.

    Args:
        jvm: The session's JVM.
        version: A version of the table.
        wanted: Columns whose stats are read.
    """
    table = metadata_tables.of_version(version)
    rows = metadata_tables.rows(jvm, table, "FILES")
    if version.snapshot_id is None:  # the metadata may have a later snapshot
        rows = rows.where("false")
    ids = ", ".join(str(column.id) for column in wanted) or "-1"
    chosen = rows.where("content = 0").select(
        "file_path", "spec_id", "record_count", "file_size_in_bytes",
        *metadata_tables.partition(table, version),
        *(F.expr(f"map_filter({name}, (k, v) -> k IN ({ids}))").alias(name) for name in _MAPS),
    )  # fmt: skip
    positions = {field.name: field.position for field in version.fields if field.is_uuid}
    uuids = uuid_partitions.of(jvm, version.pinned, version.snapshot_id, positions)
    for part in arrow_parts(chosen, version.about):
        yield uuid_partitions.added(part, uuids)


def is_in_any_snapshot(version: Version, folder: str) -> bool:
    """Return whether a data file of any snapshot that is kept has *folder* in its path."""
    rows = metadata_tables.rows(version.jvm, metadata_tables.of_all(version), "ALL_DATA_FILES")
    return bool(rows.where(F.col("file_path").contains(folder)).head(1))


def live(jvm: Jvm, snapshot: Snapshot, columns: Sequence[Parts]) -> pa.Table:
    """Return the file table of the live data files, with the manifests' stats of *columns*."""
    version: Version = snapshot.handle
    stats_columns = wanted_of(snapshot, columns)
    deletes: dict[str, Deletes] = {}
    if version.has_deletes:
        deletes = row_deletes.of(jvm, version.tasks.with_deletes(), version.since)
    spec = int(version.pinned.spec().specId())
    return joined(
        file_table(contents, stats_columns, snapshot.partition, deletes, spec)
        for contents in listed(jvm, version, stats_columns)
    )


def wanted_of(snapshot: Snapshot, columns: Sequence[Parts]) -> list[Wanted]:
    """Return those of *columns* that have usable stats in manifests."""
    table_columns: Mapping[Parts, Column] = snapshot.handle.columns
    resolved = [resolve(parts, snapshot.schema) for parts in columns]
    return [
        Wanted(parts, table_columns[parts].id, type_)
        for parts, type_ in resolved
        if parts[0] not in snapshot.partition and parts not in snapshot.without_bounds
    ]
