"""Writes and commits through Delta's ``OptimisticTransaction``, as in OPTIMIZE.

Every action of a rewrite has ``dataChange=false`` and the operation is OPTIMIZE, so Delta uses
snapshot isolation: appends never conflict, and streams see no new rows.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from zadapter.base.commit_attempts import before_sending
from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import check_present
from zadapter.base.names import NameParts, join, leaves
from zadapter.errors import ConflictError, ReplacedTableError, UnknownOutcomeError
from zadapter.spark.jvm.gateway import java_rows
from zadapter.spark.jvm.removal import remove_named, removing
from zadapter.table.encoding import KEPT
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Change, Snapshot
from zadapter_delta.jvm import Add, JavaObject, Jvm, new
from zadapter_delta.stats.add_files import FILE_TAG, LAYOUT_TAG, PROVIDER
from zadapter_delta.stats.stats_json import stats_json
from zadapter_delta.table import logs
from zadapter_delta.table.clustering import is_clustered
from zadapter_delta.table.logs import commit_info
from zadapter_delta.table.side_files import prefix_of
from zadapter_delta.table.snapshots import Handle, prefix_length, read_stats_schema
from zadapter_delta.table.specs import CONSTRAINT, GENERATED

COMMIT_TAG = "zadapter.commitId"

_FILE_NAME_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix"
_ADD_FILE = "org.apache.spark.sql.delta.actions.AddFile"
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_PART = re.compile(r".*/?part-(\d{5,})-[^/]*\Z")


def write(jvm: Jvm, planned: Handle, rows: Any, write_id: str, *, checked: bool) -> list[Add]:
    """Write each partition of *rows* as one file and return the AddFile actions.

    The file names start with a prefix unique to this write. It identifies the files of a failed
    write, which Delta does not report.

    Args:
        jvm: The session's JVM.
        planned: The version that the rows are of.
        rows: The rows, in a session of zadapter's own.
        write_id: The write's id.
        checked: Whether Delta checks CHECK constraints and generated columns. Their expressions
            depend on the time zone of the session.
    """
    located, base = planned
    log = located.log
    transaction = log.startTransaction(located.catalog_table, jvm.option(base))
    if int(base.version()) < 0:
        transaction.updateMetadataForNewTable(base.metadata())
    elif not checked and (unchecked := _drop_checks(jvm, base.metadata())) is not None:
        transaction.updateMetadata(unchecked, False)  # noqa: FBT003 - it is never committed
    root, prefix = str(log.dataPath()), prefix_of(write_id)
    # Delta declares it as a static setting, which Spark's public API cannot change
    settings = jvm.session.sessionState().conf()
    settings.setConfString(_FILE_NAME_PREFIX, prefix)
    try:
        with removing(jvm.spark, partial(remove_named, jvm.spark, root, prefix)) as kept:
            found = transaction.writeFiles(java_rows(rows), jvm.option(), True, jvm.seq())  # noqa: FBT003
            written = jvm.to_python(jvm.java_list(found))
            adds = [{**add, "path": _encode_path(add["path"])} for add in written]
            kept.update(add["path"].rpartition("/")[2] for add in adds)
        return adds
    finally:
        settings.unsetConf(_FILE_NAME_PREFIX)


def _drop_checks(jvm: Jvm, metadata: JavaObject) -> JavaObject | None:
    """Return *metadata* without CHECK constraints and generation expressions, if it has any."""
    fields = json.loads(metadata.json())["metaData"]
    schema = json.loads(fields["schemaString"])
    generated = [column["metadata"].pop(GENERATED, None) for column in schema["fields"]]
    properties = fields.get("configuration", {})
    kept = {key: value for key, value in properties.items() if not key.startswith(CONSTRAINT)}
    if not any(generated) and kept == properties:
        return None
    return jvm.action(metaData=fields | {"schemaString": json.dumps(schema), "configuration": kept})


def _encode_path(path: str) -> str:
    """Percent-encode a path to ASCII (RFC 3986, section 2.1).

    Spark leaves non-ASCII characters in paths, while delta-rs encodes them in remove actions. Such
    a remove does not match the added path: the file stays live, and its rows appear twice.
    """
    return _NOT_ASCII.sub(lambda match: quote(match[0]), path)


def tag_with_layout(add: Add, layout_id: str, *, clustered: bool) -> Add:
    """Return *add* without data change, and with the layout's id and file number in its tags.

    Args:
        add: An AddFile action.
        layout_id: The layout's id.
        clustered: Whether the table has the feature ``clustering``; then files name who clustered
            them (PROTOCOL.md, "Writer Requirements for Clustered Table").
    """
    number = int(_PART.match(add["path"]).group(1))  # type: ignore[union-attr]
    tags = (add.get("tags") or {}) | {LAYOUT_TAG: layout_id, FILE_TAG: str(number)}
    provider = {"clusteringProvider": PROVIDER} if clustered else {}
    return {**add, "dataChange": False, "tags": tags, **provider}


def commit(jvm: Jvm, change: Change, removed: JavaObject, added: Sequence[Add]) -> int:
    """Replace *removed* by *added*, based on the snapshot that the rewrite was planned on.

    Args:
        jvm: The session's JVM.
        change: The change.
        removed: AddFile actions of the removed files, as a ``java.util.List``.
        added: AddFile actions of the added files.

    Raises:
        ConflictError: Another writer committed first; nothing was committed.
        ReplacedTableError: The table was dropped and created again; nothing was committed.
        VerificationError: A new file is missing or has another size; nothing was committed.
        UnknownOutcomeError: The commit failed otherwise; only the history shows its outcome.
    """
    located, base = change.base.handle
    with before_sending(change.base.table):
        transaction = begin(jvm, change.base.handle)
        transaction.trackFilesRead(jvm.seq_of(removed))
        actions = jvm.to_java(added)
        actions.addAll(removals(jvm, removed, int(time.time() * 1000)))
        operation = _operation(jvm, change)
        transaction.registerSQLMetrics(jvm.session, _metrics(jvm, change))
        tracking = jvm.module(jvm.delta, "RowTracking")
        tags = tracking.addPreservedRowTrackingTagIfNotSet(base, jvm.map({COMMIT_TAG: change.id}))
        refuse_another(jvm, change.base)
        check_present(change.sizes, sizes(jvm, located.log))
    try:
        return int(transaction.commit(jvm.seq_of(actions), operation, tags))
    except Exception as error:
        if jvm.is_conflict(error):
            raise ConflictError(f"{change.base.table}: {first_line(error)}") from error
        raise UnknownOutcomeError(change.base.table, change.id) from error


def removals(jvm: Jvm, adds: JavaObject, time_: int) -> JavaObject:
    """Return the RemoveFile actions of a ``java.util.List`` of AddFile actions, as such a list."""
    loops = jvm.loops
    remove = loops.method(_ADD_FILE, "removeWithTimestamp", "long", "boolean")
    changes_data = False
    return loops.map_items(adds, loops.bind(remove, 1, time_, changes_data))


def begin(jvm: Jvm, base: Handle) -> JavaObject:
    """Return a transaction on a version, with the lock that all threads' commits have."""
    located, snapshot = base
    log = logs.load_shared(jvm, located.log, located.catalog_table)
    return log.startTransaction(located.catalog_table, jvm.option(snapshot))


def refuse_another(jvm: Jvm, planned: Snapshot) -> None:
    """Check that the log still belongs to the table that *planned* is a version of.

    Delta itself checks only the commits after the base version.

    Raises:
        ReplacedTableError: The table was dropped and created again, or replaced by an older copy.
        ConflictError: The log was replaced by a copy of itself.
    """
    located, base = planned.handle
    if logs.continues(jvm, located.log, base):
        return
    head = logs.open_own(jvm, located.log).unsafeVolatileSnapshot()
    if str(head.metadata().id()) != planned.id or int(head.version()) < (planned.version or 0):
        raise ReplacedTableError(planned.table)
    raise ConflictError(
        f"{planned.table}: its log was written again since version {base.version()}; nothing was "
        "committed. Retry to use the new log"
    )


def sizes(jvm: Jvm, log: JavaObject) -> Callable[[str], int | None]:
    """Return a thread-safe function from a URI to the file's bytes, or None if it is missing."""
    # in other threads, Delta would use the settings of the default session
    conf = log.newDeltaHadoopConf()

    def size_of(uri: str) -> int | None:
        path = jvm.root.org.apache.hadoop.fs.Path(jvm.root.java.net.URI(uri))
        try:
            return int(path.getFileSystem(conf).getFileStatus(path).getLen())
        except Exception as error:
            if any("FileNotFoundException" in cause for cause in causes(error)):
                return None
            raise

    return size_of


def set_property(jvm: Jvm, snapshot: Snapshot, key: str, value: str) -> None:
    """Set one table property, in a commit based on *snapshot*.

    Raises:
        ConflictError: Another writer changed the table's metadata meanwhile.
        ReplacedTableError: The table was dropped and created again.
    """
    base = snapshot.handle.snapshot
    transaction = begin(jvm, snapshot.handle)
    fields = json.loads(base.metadata().json())["metaData"]
    properties = fields.get("configuration", {}) | {key: value}
    changed = jvm.action(metaData=fields | {"configuration": properties})
    operation = new(jvm, "DeltaOperations$SetTableProperties", properties=jvm.map({key: value}))
    refuse_another(jvm, snapshot)
    try:
        transaction.updateMetadata(changed, False)  # noqa: FBT003 - ignore the session's defaults
        transaction.commit(jvm.seq(), operation)
    except Exception as error:
        if jvm.is_conflict(error):
            raise ConflictError(f"{snapshot.table}: {first_line(error)}") from error
        raise


def _operation(jvm: Jvm, change: Change) -> JavaObject:
    keys = [column for layout in change.layouts[:1] for column in layout.request.columns]
    columns = jvm.seq(map(join, keys))
    clustered = is_clustered(jvm, change.base.handle.snapshot)
    cluster_by = jvm.option(columns if clustered else None)
    optimize = "DeltaOperations$Optimize"
    return new(jvm, optimize, predicate=jvm.seq(), zOrderBy=columns, clusterBy=cluster_by)


def _metrics(jvm: Jvm, change: Change) -> JavaObject:
    """Return the ``operationMetrics`` that DESCRIBE HISTORY shows for an OPTIMIZE."""
    removed, added = change.removed, change.added
    sizes = sorted(added["size"].to_pylist()) or [0]
    values = {
        "numAddedFiles": added.num_rows,
        "numAddedBytes": sum(sizes),
        "numRemovedFiles": removed.num_rows,
        "numRemovedBytes": total(removed, "size"),
        "numDeletionVectorsRemoved": removed.num_rows - removed["deletes"].null_count,
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
    }
    create = jvm.module(jvm.root.org.apache.spark.sql.execution.metric, "SQLMetrics").createMetric
    context = jvm.session.sparkContext()
    metrics = {}
    for name, value in values.items():
        metrics[name] = create(context, name)
        if value:  # it is 0 from the beginning
            metrics[name].set(value)
    return jvm.map(metrics)


def commit_ids(jvm: Jvm, log: JavaObject, versions: Iterable[int]) -> frozenset[str]:
    """Return the ids of zadapter's commits among *versions*, from the log's JSON entries."""
    conf = log.newDeltaHadoopConf()
    tags = (commit_info(jvm, log, conf, version).get("tags") or {} for version in versions)
    return frozenset(entry_tags[COMMIT_TAG] for entry_tags in tags if COMMIT_TAG in entry_tags)


def commit_stats(
    jvm: Jvm, snapshot: Snapshot, adds: JavaObject, paths: Sequence[str], texts: Sequence[str]
) -> int:
    """Add live files once more, with other stats, and return the new version.

    A log holds one AddFile action of each path and deletion vector, the last (PROTOCOL.md, "Action
    Reconciliation"), so nothing is removed. A writer that removes one of the files meanwhile is a
    conflict, since the file would be live again.

    Args:
        jvm: The session's JVM.
        snapshot: The version in which the files are live.
        adds: The files' AddFile actions in the log, as a ``java.util.List``.
        paths: The files' paths.
        texts: The new stats of these files, as JSON.

    Raises:
        ConflictError: Another writer changed one of the files; nothing was committed.
        ReplacedTableError: The table was dropped and created again.
    """
    by_path = {add["path"]: add for add in jvm.to_python(adds)}
    stated = [
        {**by_path[path], "dataChange": False, "stats": text}
        for path, text in zip(paths, texts, strict=True)
    ]
    transaction = begin(jvm, snapshot.handle)
    transaction.trackFilesRead(jvm.seq_of(adds))
    operation = getattr(jvm.delta, "DeltaOperations$ComputeStats")(jvm.seq())
    refuse_another(jvm, snapshot)
    try:
        return int(transaction.commit(jvm.seq_of(jvm.to_java(stated)), operation))
    except Exception as error:
        if jvm.is_conflict(error):
            raise ConflictError(f"{snapshot.table}: {first_line(error)}") from error
        raise


def format_stats(
    jvm: Jvm, snapshot: Snapshot, files: pa.Table, keys: Sequence[NameParts]
) -> list[str]:
    """Return the stats of *files* as JSON; texts of the *keys* keep longer prefixes."""
    base = snapshot.handle.snapshot
    columns = {parts: snapshot.physical[parts] for parts, _ in leaves(read_stats_schema(base))}
    prefix = prefix_length(jvm, base)
    prefixes = {parts: max(prefix, KEPT) if parts in keys else prefix for parts in columns}
    return stats_json(jvm, files, columns, prefixes)
