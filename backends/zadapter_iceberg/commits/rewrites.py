"""Publish a rewrite as Iceberg's own rewrites do: operation ``replace``, checked by Iceberg.

New files get the sequence number of their commit, and Iceberg refuses the commit if a row-level
delete on a replaced file has arrived since the snapshot that the rewrite is based on.  Its own
retries repeat that check.

Equality deletes that had arrived before that snapshot apply to the new files only if these get the
sequence number of the snapshot that was read.  Then Iceberg neither checks for later ones nor keeps
them: it drops all that are older than every other data file.  So copies are added with the sequence
numbers they have, and what is committed is what was looked at, without any retry.  Copies, since
Iceberg's own expiry of snapshots deletes whatever a commit has dropped, even if it is live again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import check_present, unescaped
from zadapter.base.names import join
from zadapter.errors import (
    ConflictError,
    StaleRewriteError,
    UnknownOutcomeError,
    UnsupportedError,
    VerificationError,
)
from zadapter.table.snapshot import Rewrite, keys
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.table.lookup import Located, ancestors, news
from zadapter_iceberg.table.snapshots import ROW_LINEAGE

COMMIT = "zadapter.commit-id"

_GONE = re.compile(r"(File)?NotFoundException|NoSuchKeyException")
_HADOOP = "org.apache.iceberg.hadoop.HadoopTableOperations"


@dataclass(frozen=True, kw_only=True)
class Files:
    """What a rewrite exchanges.

    Attributes:
        planned: The snapshot that was read.
        sequence: Its sequence number. New files get it if equality deletes have arrived meanwhile,
            so that these apply to them, and older ones do not.
        removed: Every ``FileScanTask`` of the snapshot by the path of its file.
        added: Every ``DataFile`` that was written, by its path.
        adopted: A Java list of each ``DataFile`` that was not written here; None: all were.
        layouts: The layout's id of those, by path.
        said: What is said of them, in Iceberg's JSON.
    """

    planned: int
    sequence: int
    removed: Mapping[str, JavaObject] = field(repr=False)
    added: Mapping[str, JavaObject] = field(repr=False)
    adopted: JavaObject | None = field(default=None, repr=False)
    layouts: Mapping[str, str] = field(default_factory=dict, repr=False)
    said: tuple[str, ...] = field(default=(), repr=False)


def commit(jvm: Jvm, located: Located, rewrite: Rewrite) -> int:
    """Exchange files, and name the layout in the table's properties, in one transaction.

    Raises:
        ConflictError: Another writer was faster; nothing was committed.
        VerificationError: A new file is gone; nothing was committed.
        UnsupportedError: The catalog refuses the commit.
        UnknownOutcomeError: It failed otherwise; whether it landed is for the history to say.
    """
    try:
        transaction = located.table.newTransaction()
        _name_layout(transaction, rewrite)
        late = _exchange(jvm, transaction, located, rewrite)
        check_present(rewrite.sizes, lambda uri: size_of(located, uri))
        if late:
            _swap(transaction, located, rewrite, late)
        else:
            transaction.commitTransaction()
    except (ConflictError, VerificationError):
        raise
    except Exception as error:
        raise _outcome(jvm, located, rewrite, error) from error
    try:
        return made(located, rewrite.base.table, rewrite.id, rewrite.base.version)
    except Exception as error:  # it has landed: whatever goes wrong now is no reason to discard
        raise UnknownOutcomeError(rewrite.base.table, rewrite.id) from error


def _name_layout(transaction: JavaObject, rewrite: Rewrite) -> None:
    request = rewrite.layout.request
    said = dict(transaction.table().properties())
    wanted = {
        "zadapter.columns": ",".join(join(column) for column in request.columns),
        "zadapter.curve": request.curve.value,
        "zadapter.layout-id": rewrite.layout.id,
    }
    changed = {key: value for key, value in wanted.items() if said.get(key) != value}
    if changed:
        update = transaction.updateProperties()
        for key, value in changed.items():
            update.set(key, value)
        update.commit()


def _exchange(
    jvm: Jvm, transaction: JavaObject, located: Located, rewrite: Rewrite
) -> dict[str, JavaObject]:
    """Stage the exchange, and return the equality deletes that are kept by it, by their paths."""
    files: Files = rewrite.staged.handle
    late: dict[str, JavaObject] = rewrite.base.handle.late(_removed(rewrite))
    _check(transaction, located, rewrite, moves=_moves(rewrite))
    update = transaction.newRewrite().validateFromSnapshot(rewrite.base.version)
    if late:
        update.dataSequenceNumber(files.sequence)
    for delete in late.values():
        update.deleteFile(delete)
        update.addFile(_copied(jvm, located, delete), delete.dataSequenceNumber())
    update.set(COMMIT, rewrite.id)
    if located.branch is not None:
        update.toBranch(located.branch)
    for path in _removed(rewrite):
        update.deleteFile(files.removed[path].file())
    for exchange in rewrite.exchanges:
        for path, _ in keys(exchange.added):
            update.addFile(files.added[path])
    update.commit()
    return late


def _copied(jvm: Jvm, located: Located, delete: JavaObject) -> JavaObject:
    """Return a delete file as a new file that holds the same.

    It is not removed if the commit fails, whose outcome may be unknown: it is small.
    """
    table, root = located.table, jvm.root
    name = str(delete.location()).rpartition("/")[2]
    place = table.locationProvider().newDataLocation(f"{uuid4().hex}-{name}")
    source = table.io().newInputFile(delete.location()).newStream()
    target = table.io().newOutputFile(place).create()
    root.org.apache.hadoop.io.IOUtils.copyBytes(source, target, 1 << 16, True)  # noqa: FBT003
    spec = table.specs().get(delete.specId())
    made = jvm.iceberg.FileMetadata.deleteFileBuilder(spec).copy(delete)
    columns = jvm.iceberg.util.ArrayUtil.toIntArray(delete.equalityFieldIds())
    return made.ofEqualityDeletes(columns).withPath(place).build()


def _swap(
    transaction: JavaObject, located: Located, rewrite: Rewrite, late: Mapping[str, JavaObject]
) -> None:
    """Commit what *transaction* holds now, on top of the metadata that it began with.

    ``commitTransaction`` would put it on top of newer metadata, where more deletes may be dropped.

    Raises:
        ConflictError: It drops equality deletes that nobody has looked at.
    """
    operations = located.table.operations()
    made = transaction.table().operations().current()
    head = made.ref(located.branch or "main")
    dropped = made.snapshot(head.snapshotId()).removedDeleteFiles(operations.io())
    seen = rewrite.base.handle.sequence
    if any(d.location() not in late and d.dataSequenceNumber() > seen for d in dropped):
        raise ConflictError(f"{rewrite.base.table}: equality deletes have arrived meanwhile")
    operations.commit(transaction.startMetadata(), made)


def size_of(located: Located, uri: str) -> int | None:
    """Return the bytes of a file; None: it is not there."""
    try:
        return int(located.table.io().newInputFile(unescaped(uri)).getLength())
    except Exception as error:
        if any(_GONE.search(cause) for cause in causes(error)):
            return None
        raise


def _removed(rewrite: Rewrite) -> list[str]:
    return [path for exchange in rewrite.exchanges for path, _ in keys(exchange.removed)]


def _check(transaction: JavaObject, located: Located, rewrite: Rewrite, *, moves: bool) -> None:
    """Refuse what Iceberg would let pass.

    Raises:
        StaleRewriteError: The branch is gone, rows have got ids, or equality deletes came for rows
            that move to another partition spec, where these do not apply.
    """
    table = rewrite.base.table
    if located.branch is not None and located.branch not in dict(transaction.table().refs()):
        # Iceberg would make it anew, from main
        raise StaleRewriteError(table, [f"branch {located.branch}"])
    now = int(located.table.operations().current().formatVersion())
    if (now >= ROW_LINEAGE) != rewrite.base.handle.has_row_ids:
        raise StaleRewriteError(table, ["rows without an id"])
    planned = rewrite.staged.handle.planned
    found = news(located.table, rewrite.base.version, planned) if moves else ()
    # those that come from here on are found by Iceberg
    if any(each.summary().get("added-equality-delete-files") is not None for each in found):
        raise StaleRewriteError(table, ["rows by an equality delete"])


def _moves(rewrite: Rewrite) -> bool:
    """Tell whether rows move to another partition spec, where other equality deletes apply."""
    files: Files = rewrite.staged.handle
    specs = {int(file.specId()) for file in files.added.values()}
    return any(int(files.removed[path].file().specId()) not in specs for path in _removed(rewrite))


def _outcome(jvm: Jvm, located: Located, rewrite: Rewrite, error: Exception) -> Exception:
    table = rewrite.base.table
    if jvm.threw(error, "ValidationException"):
        return ConflictError(f"{table}: {first_line(error)}")
    if jvm.threw(error, "ForbiddenException", "NotAuthorizedException"):
        return UnsupportedError(f"{table}: the catalog refuses the commit: {first_line(error)}")
    # a Hadoop catalog says so of every failed rename, be it one that has happened
    believed = not jvm.is_a(located.table.operations(), _HADOOP)
    if believed and jvm.threw(error, "CommitFailedException"):
        return ConflictError(f"{table}: {first_line(error)}")
    return UnknownOutcomeError(table, rewrite.id)


def made(located: Located, table: str, commit_id: str, since: int) -> int:
    """Return the id of the snapshot that a commit has become."""
    live = located.table
    live.refresh()
    head = live.snapshot(located.branch or "main")
    for snapshot in ancestors(live, head.snapshotId(), since):
        if snapshot.summary().get(COMMIT) == commit_id:
            return int(snapshot.snapshotId())
    raise UnknownOutcomeError(table, commit_id)
