"""Creation of Iceberg tables: the commit of the first files registers the table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from zadapter.base.commit_attempts import before_sending
from zadapter.base.java_errors import first_line
from zadapter.base.locations import check_present, reachable
from zadapter.base.names import NameParts, join, quote
from zadapter.errors import (
    ConflictError,
    StaleRewriteError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
    VerificationError,
)
from zadapter.spark.jvm import spark_names
from zadapter.table.snapshot import Change, Snapshot, Source
from zadapter.table.spec import COMMENT, Definition
from zadapter_iceberg import bulk_calls
from zadapter_iceberg.commits.rewrites import COMMIT, ExchangedFiles, find_snapshot, sizes
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.table import migrated_from, snapshots
from zadapter_iceberg.table.lookup import Located, by_path, catalogs
from zadapter_iceberg.table.snapshots import Version

_NAME_MAPPING = "schema.name-mapping.default"
_GC_ENABLED = "gc.enabled"


def pending(jvm: Jvm, table: str, definition: Definition) -> Version:
    """Return a pending table, which its catalog does not list yet.

    Raises:
        UsageError: The table exists, or no Iceberg catalog and namespace fit its name.
    """
    schema = jvm.iceberg.spark.SparkSchemaUtil.convert(_struct(jvm, definition))
    spec = jvm.iceberg.PartitionSpec.builderFor(schema)
    for field in definition.partition:
        spec = spec.identity(".".join(field.source))
    comment = {} if definition.comment is None else {COMMENT: definition.comment}
    name, builder = _builder(jvm, table, schema)
    builder = builder.withPartitionSpec(spec.build())
    builder = builder.withProperties(_to_java(jvm, {**definition.properties, **comment}))
    try:
        transaction = builder.createTransaction()
    except Exception as error:
        if jvm.threw(error, "AlreadyExistsException"):
            raise UsageError(f"{table} already exists; pass another target") from error
        raise
    located = Located(table=transaction.table(), name=name)
    return replace(snapshots.read_version(jvm, located, None), creation=transaction)


def _struct(jvm: Jvm, definition: Definition) -> JavaObject:
    text = json.dumps({"type": "struct", "fields": list(definition.columns)})
    return jvm.root.org.apache.spark.sql.types.DataType.fromJson(text)


def _to_java(jvm: Jvm, values: Mapping[str, str]) -> JavaObject:
    java = jvm.root.java.util.HashMap()
    for key, value in values.items():
        java.put(key, value)
    return java


def _builder(jvm: Jvm, table: str, schema: JavaObject) -> tuple[NameParts | None, JavaObject]:
    parts = spark_names.table_name(jvm.spark, table)
    path = by_path(table, parts)
    if path is not None:
        conf = jvm.session.sessionState().newHadoopConf()
        if "#" in path:
            raise UsageError(
                f"{table}: Spark cannot read Iceberg tables at paths with a #; pass another path"
            )
        location = reachable(jvm.root, jvm.session, path)
        return None, jvm.iceberg.hadoop.HadoopTables(conf).buildTable(location, schema)
    name = _qualify_name(jvm, table, parts)
    *namespace, _ = name[1:]
    catalog = jvm.session.sessionState().catalogManager().catalog(name[0])
    jvm.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quote((name[0], *namespace))}")
    return name, catalog.icebergCatalog().buildTable(jvm.table_identifier(name[1:]), schema)


def _qualify_name(jvm: Jvm, table: str, parts: NameParts | None) -> NameParts:
    """Return the name of *table* with its catalog.

    Raises:
        UsageError: There is no Iceberg catalog, the catalog is ambiguous, or the name has no
            namespace, or is the name of another table.
    """
    names = catalogs(jvm)
    if parts is None:
        raise UsageError(
            f"{table} is not a table name; quote its parts in backticks, as in db.`my-table`"
        )
    if not names:
        raise UsageError(
            f"{table}: the session has no Iceberg catalog; set spark.sql.catalog.<name>"
        )
    if spark_names.is_temporary_view(jvm.spark, parts):
        raise UsageError(f"{table} is a view of this session; pass another target")
    read = spark_names.resolve(jvm.spark, parts)
    name = (read.catalog, *read.parts)
    if read.catalog not in names:
        name = _in_only_catalog(jvm, table, parts, names)
        _refuse_other(jvm, table, read, name)
    if len(name) == len(("catalog", "table")):
        raise UsageError(f"{table}: specify a namespace, as in {names[0]}.db.{parts[-1]}")
    return name


def _in_only_catalog(jvm: Jvm, table: str, parts: NameParts, names: Sequence[str]) -> NameParts:
    if spark_names.has_catalog(jvm.spark, parts):
        raise UsageError(f"{table}: {parts[0]} is not an Iceberg catalog")
    if len(names) > 1:
        raise UsageError(f"{table}: specify one of the catalogs {', '.join(names)}")
    return (names[0], *parts)


def _refuse_other(jvm: Jvm, table: str, read: spark_names.Name, name: NameParts) -> None:
    provider = spark_names.provider(jvm.spark, read)
    if provider is not None:
        raise UsageError(
            f"Spark reads {spark_names.describe(provider, read.catalog)} by the name {table}; "
            f"add the Iceberg catalog to the name, as in {join(name)}"
        )


def load(jvm: Jvm, change: Change, source: Source, adopted: str | None) -> int:
    """Add files in one commit, which creates the table if it does not exist.

    Args:
        jvm: The session's JVM.
        change: The files to add.
        source: The version whose rows they hold.
        adopted: Path of the side file with layouts of adopted files; None if no file is adopted.

    Raises:
        ConflictError: Another writer committed first; nothing was committed.
        VerificationError: A new file is missing or has another size; nothing was committed.
        UnsupportedError: The catalog rejects the commit.
        UnknownOutcomeError: The commit may or may not have succeeded.
    """
    version: Version = change.base.handle
    table = change.base.table
    with before_sending(table):
        added = [_files(staged.handle, staged.files) for staged in change.staged]
    try:
        transaction = version.creation or version.located.table.newTransaction()
        _set_properties(jvm, transaction, change, source, adopted)
        _append(jvm, transaction, change, source, added)
        if version.creation is None:
            check_present(change.sizes, sizes(version.located, change))
        transaction.commitTransaction()
    except (StaleRewriteError, VerificationError):
        raise
    except Exception as error:
        if jvm.threw(error, "ValidationException", "AlreadyExistsException"):
            raise ConflictError(f"{table}: {first_line(error)}") from error
        if jvm.threw(error, "ForbiddenException", "NotAuthorizedException"):
            message = f"{table}: the catalog rejects the commit: {first_line(error)}"
            raise UnsupportedError(message) from error
        raise UnknownOutcomeError(table, change.id) from error
    try:
        return find_snapshot(version.located, table, change.id, version.snapshot_id or 0)
    except Exception as error:  # it was committed, so the new files must not be discarded
        raise UnknownOutcomeError(table, change.id) from error


def _set_properties(
    jvm: Jvm, transaction: JavaObject, change: Change, source: Source, adopted: str | None
) -> None:
    properties: dict[str, Any] = {migrated_from.PROPERTY: migrated_from.text(source)}
    for layout in change.layouts[:1]:
        properties["zadapter.columns"] = ",".join(map(join, layout.request.columns))
        properties["zadapter.curve"] = layout.request.curve.value
        properties["zadapter.layout-id"] = layout.id
    if adopted is not None:
        mapping = jvm.iceberg.mapping
        names = mapping.MappingUtil.create(transaction.table().schema())
        # adopted files have no field ids, and belong to the source table
        properties[_NAME_MAPPING] = mapping.NameMappingParser.toJson(names)
        properties |= {_GC_ENABLED: "false", "zadapter.adopted": adopted}
    update = transaction.updateProperties()
    for key, value in properties.items():
        update.set(key, value)
    update.commit()


def _append(
    jvm: Jvm,
    transaction: JavaObject,
    change: Change,
    source: Source,
    added: Sequence[JavaObject],
) -> None:
    """Stage the files; a concurrent write is a conflict, because it may load the same rows."""
    if change.base.handle.creation is not None:
        update = transaction.newAppend()
        for files in added:
            bulk_calls.add_all(jvm, update, "AppendFiles", "appendFile", files)
    else:
        update = transaction.newOverwrite()
        if change.base.version:
            update = update.validateFromSnapshot(change.base.version)
        always_true = jvm.iceberg.expressions.Expressions.alwaysTrue()
        update = update.conflictDetectionFilter(always_true).validateNoConflictingData()
        for files in added:
            bulk_calls.add_all(jvm, update, "OverwriteFiles", "addFile", files)
    update.set(COMMIT, change.id)
    update.set(migrated_from.PROPERTY, migrated_from.text(source))
    update.commit()


def _files(files: ExchangedFiles, staged: pa.Table) -> JavaObject:
    """Return the ``DataFile`` of each staged file in a ``java.util.List``."""
    if files.adopted is not None:
        return files.adopted
    return files.added.choose(staged["path"].to_pylist())


def drop(jvm: Jvm, snapshot: Snapshot) -> None:
    """Drop a table, and its data files unless ``gc.enabled`` is false.

    Raises:
        ConflictError: The table has changed since, including its properties and other branches.
    """
    located: Located = snapshot.handle.located
    located.table.refresh()
    metadata = located.table.operations().current()
    head = snapshots.newest(jvm, located, None).snapshot_id
    if head != snapshot.handle.snapshot_id or not metadata.previousFiles().isEmpty():
        raise ConflictError(f"{snapshot.table} was changed by another writer; it was not dropped")
    purge = located.table.properties().get(_GC_ENABLED) != "false"
    if located.name is not None:
        catalog = jvm.session.sessionState().catalogManager().catalog(located.name[0])
        catalog.icebergCatalog().dropTable(jvm.table_identifier(located.name[1:]), purge)
        return
    # HadoopTables.dropTable would delete the folder with all files in it
    root = jvm.root.org.apache.hadoop.fs.Path(located.table.location())
    file_system = root.getFileSystem(jvm.session.sessionState().newHadoopConf())
    jvm.iceberg.CatalogUtil.dropTableData(located.table.io(), metadata)
    file_system.delete(jvm.root.org.apache.hadoop.fs.Path(root, "metadata"), True)  # noqa: FBT003


def protect(jvm: Jvm, snapshot: Snapshot) -> str:
    """Set ``gc.enabled`` to false, so Iceberg deletes no files, and return a description."""
    located: Located = snapshot.handle.located
    located.table.updateProperties().set(_GC_ENABLED, "false").commit()
    catalog_type = ""
    if located.name is not None:
        catalog_type = str(jvm.session.conf().get(f"spark.sql.catalog.{located.name[0]}.type", ""))
    dropped = "; DROP TABLE still deletes them, since the catalog is a Hadoop catalog"
    message = (
        f"{_GC_ENABLED}=false prevents expire_snapshots and DROP ... PURGE from deleting the files "
        f"of {snapshot.table}"
    )
    return message + dropped * (catalog_type == "hadoop")
