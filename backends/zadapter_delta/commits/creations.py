"""Creation of Delta tables: the first log entry adds all files."""

import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from zadapter.base.commit_attempts import before_sending
from zadapter.base.java_errors import first_line
from zadapter.base.key_types import TIMESTAMP, has_zone, kind_of, texts
from zadapter.base.locations import check_present
from zadapter.errors import ConflictError, UnknownOutcomeError, UnsupportedError, UsageError
from zadapter.table.file_stats import partition
from zadapter.table.snapshot import Change, Snapshot, Source
from zadapter.table.spec import Definition
from zadapter_delta.commits.rewrites import (
    COMMIT_TAG,
    begin,
    refuse_another,
    set_property,
    sizes,
)
from zadapter_delta.jvm import Add, JavaObject, Jvm, new
from zadapter_delta.stats.add_files import FILE_TAG, LAYOUT_TAG, PROVIDER
from zadapter_delta.table import logs
from zadapter_delta.table.lookup import Located, by_path, log_of
from zadapter_delta.table.migrated_from import PROPERTY, application, tag, text
from zadapter_delta.table.side_files import Store
from zadapter_delta.table.snapshots import Handle
from zadapter_delta.table.specs import KEPT
from zadapter_delta.table.specs import metadata as new_metadata

_FOREVER = "interval 36500 days"


def pending(jvm: Jvm, table: str, definition: Definition, source: Source) -> Handle:
    """Return a table that does not exist yet.

    Raises:
        UsageError: The table exists, *table* is no path, or Delta rejects the definition.
    """
    path = by_path(table)
    if path is None:
        raise UsageError(
            f"{table}: the target must be a folder, such as ./{table}; register it in a catalog "
            "with CREATE TABLE ... USING delta LOCATION"
        )
    log = logs.refresh(jvm, log_of(jvm, path), jvm.option())
    if log.tableExists():
        raise UsageError(f"{table} already exists; pass another target")
    properties = {**definition.properties, PROPERTY: text(source)}
    metadata = new_metadata(jvm, log, replace(definition, properties=properties))
    base = new(jvm, "DummySnapshot", logPath=log.logPath(), deltaLog=log, metadata=metadata)
    located = Located(log=log, catalog_table=jvm.option(), side_files=Store(jvm, log))
    return Handle(located, base)


def actions(
    files: pa.Table, uris: Sequence[str], names: Sequence[str], *, clustered: bool
) -> list[Add]:
    """Return AddFile actions, in the log's JSON, for files at any location.

    Args:
        files: File table with size, layout and partition.
        uris: Location of each file.
        names: Physical names of the partition columns.
        clustered: Whether the table has the feature ``clustering``.

    Raises:
        UnsupportedError: A partition value is the empty string, which Delta reads as null.
    """
    values = [_format_partition_values(partition(files, name)) for name in names]
    if any("" in column for column in values):
        raise UnsupportedError(
            "a partition value is an empty string, which Delta reads as null; replace the value in "
            "these rows first, for example by '-'"
        )
    now = int(time.time() * 1_000)
    adds = []
    for number, (uri, size, layout) in enumerate(
        zip(uris, files["size"].to_pylist(), files["layout"].to_pylist(), strict=True)
    ):
        add: Add = {
            "path": uri,
            "partitionValues": dict(zip(names, (c[number] for c in values), strict=True)),
            "size": size,
            "modificationTime": now,
            "dataChange": True,
        }
        if layout is not None:
            add["tags"] = {LAYOUT_TAG: layout, FILE_TAG: str(number)}
            if clustered:
                add["clusteringProvider"] = PROVIDER
        adds.append(add)
    return adds


def _format_partition_values(values: pa.Array) -> list[str | None]:
    """Return partition values as the log writes them: a blank separates date and time."""
    strings = texts(values)
    if kind_of(values.type) is not TIMESTAMP or has_zone(values.type):
        return strings
    return [text and text.replace("T", " ") for text in strings]


def load(jvm: Jvm, change: Change, source: Source, added: Sequence[Add]) -> int:
    """Add files in one commit, which creates the table if it does not exist.

    Args:
        jvm: The session's JVM.
        change: The files to add.
        source: The version whose rows they hold.
        added: AddFile actions.

    Raises:
        ConflictError: Another writer committed first; nothing was committed.
        ReplacedTableError: The table was dropped and created again; nothing was committed.
        VerificationError: A new file is missing or has another size; nothing was committed.
        UnknownOutcomeError: The commit may or may not have succeeded.
    """
    located, base = change.base.handle
    is_new = change.base.version is None
    with before_sending(change.base.table):
        transaction = begin(jvm, change.base.handle)
        modes = jvm.root.org.apache.spark.sql.SaveMode
        mode = modes.ErrorIfExists if is_new else modes.Append
        operation = new(jvm, "DeltaOperations$Write", mode=mode)
        if not is_new:
            refuse_another(jvm, change.base)
            check_present(change.sizes, sizes(jvm, located.log))
        actions = _actions(jvm, source, added)
        tags = jvm.map({COMMIT_TAG: change.id, **tag(source)})
        if is_new:
            transaction.updateMetadataForNewTable(base.metadata())
        else:  # a concurrent RESTORE may remove rows that this commit's source version includes
            transaction.readWholeTable()
        # reading it makes a concurrent load from the same source a conflict
        transaction.txnVersion(application(source))
    try:
        return int(transaction.commit(jvm.seq_of(actions), operation, tags))
    except Exception as error:
        if jvm.is_conflict(error):
            raise ConflictError(f"{change.base.table}: {first_line(error)}") from error
        raise UnknownOutcomeError(change.base.table, change.id) from error


def _actions(jvm: Jvm, source: Source, added: Sequence[Add]) -> JavaObject:
    """Return the actions of a load as a ``java.util.List``."""
    actions = jvm.to_java({**add, "dataChange": True} for add in added)
    now = int(time.time() * 1e3)
    txn = {"appId": application(source), "version": source.number, "lastUpdated": now}
    actions.add(jvm.action(txn=txn))
    return actions


def protect(jvm: Jvm, snapshot: Snapshot) -> str:
    """Set the retention of removed files to a hundred years, and return a description."""
    set_property(jvm, snapshot, KEPT, _FOREVER)
    catalog_table = snapshot.handle.located.catalog_table
    managed = catalog_table.isDefined() and str(catalog_table.get().tableType().name()) == "MANAGED"
    dropped = "; DROP TABLE still deletes them, since the table is managed"
    message = f"{KEPT}='{_FOREVER}' prevents VACUUM from deleting the files of {snapshot.table}"
    return message + dropped * managed


def drop(jvm: Jvm, snapshot: Snapshot) -> None:
    """Delete the log of a table that has one version.

    Raises:
        ConflictError: The table has more versions, or another table replaced it.
    """
    log = logs.refresh(jvm, snapshot.handle.located.log, jvm.option())
    head = log.unsafeVolatileSnapshot()
    # another table may have been created at the same location
    if int(head.version()) > 0 or str(head.metadata().id()) != snapshot.id:
        raise ConflictError(f"{snapshot.table} was changed by another writer; it was not dropped")
    file_system = log.dataPath().getFileSystem(log.newDeltaHadoopConf())
    file_system.delete(log.logPath(), True)  # noqa: FBT003 - recursively
    shared = logs.load_shared(jvm, log, jvm.option())
    shared.update(False, jvm.option(), jvm.option())  # noqa: FBT003
