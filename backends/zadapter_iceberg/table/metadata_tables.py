"""Iceberg's metadata tables of a pinned version.

They are loaded from the pinned metadata and not by name, because ``db.t.files`` may be a table of
the namespace ``db.t``.

The column ``partition`` of Iceberg's own has the fields of all partition specs. It cannot be built
where two of them have one name, and Spark cannot read a uuid in it. The metadata is therefore
changed, in memory, where a table has such fields: all specs become the current one, without uuids,
and its fields get names of their own. Manifests are read by field ids, so the files keep their
values, and files of other specs have none.
"""

import json
from collections.abc import Iterator

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.table.snapshots import Version, pinned_to


def of_version(version: Version) -> JavaObject:
    """Return the table at the snapshot of *version*, for its metadata tables."""
    metadata = version.pinned.operations().current()
    if version.snapshot_id is not None:
        builder = version.jvm.iceberg.TableMetadata.buildFrom(metadata)
        metadata = builder.setBranchSnapshot(version.snapshot_id, "main").discardChanges().build()
    return _of(version, metadata)


def of_all(version: Version) -> JavaObject:
    """Return the newest metadata of the table of *version*, for tables of all snapshots."""
    live = version.located.table
    live.refresh()
    return _of(version, live.operations().current())


def _of(version: Version, metadata: JavaObject) -> JavaObject:
    table = pinned_to(version.jvm, version.pinned, metadata)
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
    return pinned_to(version.jvm, version.pinned, parser.fromJson(json.dumps(state)))


def _are_renamed(version: Version) -> bool:
    names = {field.name.lower() for field in version.fields}
    return len(names) < len(version.fields) or any(field.is_uuid for field in version.fields)


def rows(jvm: Jvm, table: JavaObject, kind: str) -> DataFrame:
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


def partition(table: JavaObject, version: Version) -> Iterator[SparkColumn]:
    """Yield the column ``partition`` with the fields of the current spec but uuids, if any."""
    fields = table.spec().partitionType().fields()
    names = {int(field.fieldId()): str(field.name()) for field in fields}
    values = [
        F.col("partition").getField(names[field.id]).alias(field.name)
        for field in version.fields
        if not field.is_uuid
    ]
    if values:
        yield F.struct(*values).alias("partition")
