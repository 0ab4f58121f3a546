"""Commits of rewrites through Iceberg's ``RewriteFiles``, with the operation ``replace``.

New files get the sequence number of their commit. Iceberg rejects the commit if a row-level delete
on a replaced file was added after the rewrite's base snapshot. Its retries repeat that check.

Equality deletes that were added after the read, up to the base snapshot, apply to the new files
only if these get the sequence number of the snapshot that was read. With such a number, Iceberg
neither detects later equality deletes nor keeps these: it drops all that are older than every other
data file. So the commit adds copies of the deletes with their sequence numbers, and the checked
metadata is committed without retries. Copies are needed because Iceberg's expiry of snapshots
deletes each file that a commit removed, even if a commit added it again.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import NoReturn
from uuid import uuid4

import pyarrow as pa

from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import check_present
from zadapter.base.names import join
from zadapter.errors import (
    ConflictError,
    StaleRewriteError,
    UnknownOutcomeError,
    UnsupportedError,
    VerificationError,
)
from zadapter.layout.layout import Layout
from zadapter.table.snapshot import Change, Snapshot, keys
from zadapter_iceberg import bulk_calls
from zadapter_iceberg.bulk_calls import DataFiles
from zadapter_iceberg.commits import position_deletes
from zadapter_iceberg.commits.position_deletes import NewDelete
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.scan_tasks import Tasks
from zadapter_iceberg.table.lookup import Located, ancestors, find_newer
from zadapter_iceberg.table.snapshots import ROW_LINEAGE

COMMIT = "zadapter.commit-id"

_NOT_FOUND = re.compile(r"(File)?NotFoundException|NoSuchKeyException")
_HADOOP = "org.apache.iceberg.hadoop.HadoopTableOperations"


@dataclass(frozen=True, kw_only=True)
class ExchangedFiles:
    """Files that a commit removes and adds.

    Attributes:
        planned: Id of the snapshot that was read; 0: there was none.
        sequence: Sequence number of that snapshot. New files get it if equality deletes were added
            meanwhile: these then apply to the new files, and older ones do not.
        removed: The ``FileScanTask`` objects of that snapshot; None if there are none.
        added: The ``DataFile`` of each written file, by path.
        adopted: The adopted files as a ``java.util.List`` of ``DataFile``; None if there are none.
        layouts: Layout ids of adopted files, by path.
        texts: Adopted files in the JSON of Iceberg's ``ContentFileParser``.
        deletes: Deletes of rows of the written files.
        folder: Folder of the written files; empty if there are none.
    """

    planned: int
    sequence: int
    removed: Tasks | None = field(repr=False)
    added: DataFiles = field(repr=False)
    adopted: JavaObject | None = field(default=None, repr=False)
    layouts: Mapping[str, str] = field(default_factory=dict, repr=False)
    texts: tuple[str, ...] = field(default=(), repr=False)
    deletes: tuple[NewDelete, ...] = field(default=(), repr=False)
    folder: str = ""


def commit(jvm: Jvm, located: Located, change: Change) -> int:
    """Replace files, and set the table's layout properties, in one transaction.

    Raises:
        ConflictError: Another writer committed first; nothing was committed.
        VerificationError: A new file is missing or has another size; nothing was committed.
        UnsupportedError: The catalog rejects the commit.
        UnknownOutcomeError: The commit failed otherwise; only the history shows its outcome.
    """
    try:
        transaction = located.table.newTransaction()
        for layout in change.layouts[:1]:
            _name_layout(transaction, layout)
        late = _exchange(jvm, transaction, located, change)
        check_present(change.sizes, sizes(located, change))
        if late:
            _commit_staged(transaction, located, change, late)
        else:
            transaction.commitTransaction()
    except (ConflictError, VerificationError):
        raise
    except Exception as error:
        raise _outcome(jvm, located, change, error) from error
    try:
        return find_snapshot(
            located, change.base.table, change.id, change.base.handle.snapshot_id or 0
        )
    except Exception as error:  # it was committed, so the new files must not be discarded
        raise UnknownOutcomeError(change.base.table, change.id) from error


def _name_layout(transaction: JavaObject, layout: Layout) -> None:
    request = layout.request
    properties = transaction.table().properties()
    updates = {
        "zadapter.columns": ",".join(join(column) for column in request.columns),
        "zadapter.curve": request.curve.value,
        "zadapter.layout-id": layout.id,
    }
    changed = {key: value for key, value in updates.items() if properties.get(key) != value}
    if changed:
        update = transaction.updateProperties()
        for key, value in changed.items():
            update.set(key, value)
        update.commit()


def _exchange(
    jvm: Jvm, transaction: JavaObject, located: Located, change: Change
) -> dict[str, JavaObject]:
    """Stage the exchange, and return the equality deletes that it replaces by copies, by path."""
    files: ExchangedFiles = change.staged[0].handle
    late: dict[str, JavaObject] = change.base.handle.find_late_deletes(_list_removed(change))
    _check(transaction, located, change, moves=_moves(change))
    update = transaction.newRewrite().validateFromSnapshot(change.base.version)
    if late:
        update.dataSequenceNumber(files.sequence)
    for delete in late.values():
        update.deleteFile(delete)
        update.addFile(_copy_delete_file(jvm, located, delete), delete.dataSequenceNumber())
    update.set(COMMIT, change.id)
    if located.branch is not None:
        update.toBranch(located.branch)
    if files.removed is not None:
        removed = files.removed.files(_list_removed(change))
        bulk_calls.add_all(jvm, update, "RewriteFiles", "deleteFile", removed)
    added = {path for exchange in change.exchanges for path, _ in keys(exchange.added)}
    for each in change.staged:  # a path that none of them has fails in change.sizes
        chosen = each.handle.added.choose(path for path in each.handle.added if path in added)
        bulk_calls.add_all(jvm, update, "RewriteFiles", "addFile", chosen)
    marked = [delete for each in change.staged for delete in each.handle.deletes]
    deletes = [delete for delete in marked if delete.path in added]
    if deletes:
        position_deletes.permit(jvm, update, str(located.table.schema().columns()[0].name()))
    for delete in deletes:
        update.addFile(delete.file)
    update.commit()
    return late


def _copy_delete_file(jvm: Jvm, located: Located, delete: JavaObject) -> JavaObject:
    """Copy an equality delete file to a new path, and return its ``DeleteFile``.

    The copy stays if the commit fails, because the outcome may be unknown. It is small.
    """
    table, root = located.table, jvm.root
    name = str(delete.location()).rpartition("/")[2]
    location = table.locationProvider().newDataLocation(f"{uuid4().hex}-{name}")
    with (
        closing(table.io().newInputFile(delete.location()).newStream()) as source,
        closing(table.io().newOutputFile(location).create()) as target,
    ):
        root.org.apache.hadoop.io.IOUtils.copyBytes(source, target, 1 << 16)
    spec = table.specs().get(delete.specId())
    builder = jvm.iceberg.FileMetadata.deleteFileBuilder(spec).copy(delete)
    columns = jvm.iceberg.util.ArrayUtil.toIntArray(delete.equalityFieldIds())
    return builder.ofEqualityDeletes(columns).withPath(location).build()


def _commit_staged(
    transaction: JavaObject, located: Located, change: Change, late: Mapping[str, JavaObject]
) -> None:
    """Commit the staged metadata of *transaction* on top of its start metadata.

    ``commitTransaction`` would rebase it on newer metadata, and could drop more deletes.

    Raises:
        ConflictError: The commit would drop equality deletes that were added meanwhile.
    """
    operations = located.table.operations()
    metadata = transaction.table().operations().current()
    head = metadata.ref(located.branch or "main")
    dropped = metadata.snapshot(head.snapshotId()).removedDeleteFiles(operations.io())
    sequence = change.base.handle.sequence
    if any(d.location() not in late and d.dataSequenceNumber() > sequence for d in dropped):
        raise ConflictError(
            f"{change.base.table} was changed by another writer: equality deletes were added; "
            "nothing was committed"
        )
    operations.commit(transaction.startMetadata(), metadata)


def sizes(located: Located, change: Change) -> Callable[[str], int | None]:
    """Return a function from a new file's URI to its bytes, or None if it is missing."""
    paths = {uri: path for staged in change.staged for path, uri in staged.paths.items()}

    def size_of(uri: str) -> int | None:
        try:
            return int(located.table.io().newInputFile(paths[uri]).getLength())
        except Exception as error:
            if any(_NOT_FOUND.search(cause) for cause in causes(error)):
                return None
            raise

    return size_of


def _list_removed(change: Change) -> list[str]:
    return [path for exchange in change.exchanges for path, _ in keys(exchange.removed)]


def _check(transaction: JavaObject, located: Located, change: Change, *, moves: bool) -> None:
    """Check for conflicts that Iceberg does not detect.

    Raises:
        StaleRewriteError: The branch was dropped, the table was upgraded to row ids, or equality
            deletes were added for rows that move to a partition spec where these do not apply.
        ConflictError: Snapshots that have to be checked have expired.
    """
    table = change.base.table
    if located.branch is not None and not transaction.table().refs().containsKey(located.branch):
        # Iceberg would create it again, from main
        raise StaleRewriteError(table, [f"branch {located.branch}"])
    format_version = int(located.table.operations().current().formatVersion())
    if (format_version >= ROW_LINEAGE) != change.base.handle.has_row_ids:
        raise StaleRewriteError(table, ["row ids"])
    planned = change.staged[0].handle.planned
    snapshots = find_newer(located.table, change.base.version, planned) if moves else ()
    # Iceberg itself detects later ones
    if any(
        snapshot.summary().get("added-equality-delete-files") is not None for snapshot in snapshots
    ):
        raise StaleRewriteError(table, ["equality deletes"])


def _moves(change: Change) -> bool:
    """Return whether rows move to another partition spec, where other equality deletes apply."""
    files: ExchangedFiles = change.staged[0].handle
    specs = {spec for each in change.staged for spec in each.handle.added.specs()}
    return files.removed is not None and not files.removed.specs(_list_removed(change)) <= specs


def _outcome(jvm: Jvm, located: Located, change: Change, error: Exception) -> Exception:
    table = change.base.table
    if jvm.threw(error, "ValidationException"):
        return ConflictError(f"{table}: {first_line(error)}")
    if jvm.threw(error, "ForbiddenException", "NotAuthorizedException"):
        return UnsupportedError(f"{table}: the catalog rejects the commit: {first_line(error)}")
    # a Hadoop catalog throws it for each failed rename, even for one that took effect
    reliable = not jvm.is_a(located.table.operations(), _HADOOP)
    if reliable and jvm.threw(error, "CommitFailedException"):
        return ConflictError(f"{table}: {first_line(error)}")
    return UnknownOutcomeError(table, change.id)


def find_snapshot(located: Located, table: str, commit_id: str, since: int) -> int:
    """Return the id of the snapshot that a commit created.

    Raises:
        UnknownOutcomeError: No snapshot of the branch since *since* has the commit's id.
    """
    live = located.table
    live.refresh()
    head = live.snapshot(located.branch or "main")
    for snapshot in ancestors(live, head.snapshotId(), since):
        if snapshot.summary().get(COMMIT) == commit_id:
            return int(snapshot.snapshotId())
    raise UnknownOutcomeError(table, commit_id)


def refuse_restating(snapshot: Snapshot, files: pa.Table) -> NoReturn:  # noqa: ARG001
    """Refuse to replace stats: the manifest entry of a live file cannot be replaced alone.

    Raises:
        UnsupportedError: Always.
    """
    raise UnsupportedError(
        f"{snapshot.table}: Iceberg keeps the bounds of a file in its manifest entry, which "
        "changes only if the file is removed and added again; zadapter.optimize(force=True) writes "
        "new files"
    )
