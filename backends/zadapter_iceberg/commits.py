"""Publish a rewrite as Iceberg's own rewrites do: operation ``replace``, checked by Iceberg."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zadapter.errors import ConflictError, StaleRewriteError, UnknownOutcomeError, UnsupportedError
from zadapter.names import join
from zadapter.table import Rewrite, keys
from zadapter.thrown import first_line
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.tables import Located, ancestors
from zadapter_iceberg.versions import ROW_LINEAGE

COMMIT = "zadapter.commit-id"

_HADOOP = "org.apache.iceberg.hadoop.HadoopTableOperations"


@dataclass(frozen=True, kw_only=True)
class Files:
    """What a rewrite exchanges.

    Attributes:
        planned: The snapshot that was read.
        sequence: Its sequence number. New files get it if rows stay in their partitions, so that
            equality deletes that arrive meanwhile apply to them, and older ones do not.
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
        UnsupportedError: The catalog refuses the commit.
        UnknownOutcomeError: It failed otherwise; whether it landed is for the history to say.
    """
    try:
        transaction = located.table.newTransaction()
        _name_layout(transaction, rewrite)
        _exchange(transaction, located, rewrite)
        transaction.commitTransaction()
    except StaleRewriteError:
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


def _exchange(transaction: JavaObject, located: Located, rewrite: Rewrite) -> None:
    files: Files = rewrite.staged.handle
    moves = _moves(rewrite)
    _check(transaction, located, rewrite, moves=moves)
    update = transaction.newRewrite().validateFromSnapshot(rewrite.base.version)
    if not moves:
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
    news = ancestors(located.table, rewrite.base.version, planned) if moves else ()
    # those that come from here on are found by Iceberg
    if any(each.summary().get("added-equality-delete-files") is not None for each in news):
        raise StaleRewriteError(table, ["rows by an equality delete"])


def _moves(rewrite: Rewrite) -> bool:
    """Tell whether rows move to another partition spec, where other equality deletes apply."""
    files: Files = rewrite.staged.handle
    specs = {int(file.specId()) for file in files.added.values()}
    gone = [path for exchange in rewrite.exchanges for path, _ in keys(exchange.removed)]
    return any(int(files.removed[path].file().specId()) not in specs for path in gone)


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
