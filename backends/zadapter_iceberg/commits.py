"""Publish a rewrite as Iceberg's own rewrites do: operation ``replace``, checked by Iceberg."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zadapter.errors import ConflictError, UnknownOutcomeError, UnsupportedError
from zadapter.names import join
from zadapter.table import Rewrite, keys
from zadapter.thrown import first_line
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.tables import Located, ancestors

COMMIT = "zadapter.commit-id"

_HADOOP = "org.apache.iceberg.hadoop.HadoopTableOperations"


@dataclass(frozen=True, kw_only=True)
class Files:
    """What a rewrite exchanges.

    Attributes:
        sequence: Sequence number of the snapshot that was read. The new files get it, so that
            equality deletes that arrive meanwhile apply to them, and older ones do not.
        removed: Every ``FileScanTask`` of the snapshot by the path of its file.
        added: Every ``DataFile`` that was written, by its path.
    """

    sequence: int
    removed: Mapping[str, JavaObject] = field(repr=False)
    added: Mapping[str, JavaObject] = field(repr=False)


def commit(jvm: Jvm, located: Located, rewrite: Rewrite) -> int:
    """Exchange files, and name the layout in the table's properties, in one transaction.

    Raises:
        ConflictError: Another writer was faster; nothing was committed.
        UnsupportedError: The catalog refuses the commit.
        UnknownOutcomeError: It failed otherwise; whether it landed is for the history to say.
    """
    try:
        transaction = located.table.newTransaction()
        _name_layout(transaction, rewrite)
        _exchange(transaction, located, rewrite)
        transaction.commitTransaction()
    except Exception as error:
        raise _outcome(jvm, located, rewrite, error) from error
    try:
        return _made(located, rewrite)
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


def _exchange(transaction: JavaObject, located: Located, rewrite: Rewrite) -> None:
    files: Files = rewrite.staged.handle
    update = transaction.newRewrite().validateFromSnapshot(rewrite.base.version)
    update.dataSequenceNumber(files.sequence)
    update.set(COMMIT, rewrite.id)
    if located.branch is not None:
        update.toBranch(located.branch)
    for exchange in rewrite.exchanges:
        for path, _ in keys(exchange.removed):
            update.deleteFile(files.removed[path].file())
        for path, _ in keys(exchange.added):
            update.addFile(files.added[path])
    update.commit()


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


def _made(located: Located, rewrite: Rewrite) -> int:
    """Return the id of the snapshot that the rewrite has become."""
    table = located.table
    table.refresh()
    head = table.snapshot(located.branch or "main")
    for snapshot in ancestors(table, head.snapshotId(), rewrite.base.version):
        if snapshot.summary().get(COMMIT) == rewrite.id:
            return int(snapshot.snapshotId())
    raise UnknownOutcomeError(rewrite.base.table, rewrite.id)
