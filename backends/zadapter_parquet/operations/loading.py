"""Tables that are migrated from another format: definitions, creation and loads."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any, NoReturn
from uuid import uuid4

import pyarrow as pa

from zadapter.base.commit_attempts import before_sending
from zadapter.base.key_types import is_key
from zadapter.base.names import NameParts, leaves
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    StaleRewriteError,
    UnsupportedError,
    UsageError,
)
from zadapter.table import file_stats
from zadapter.table.snapshot import Change, Snapshot, Source
from zadapter.table.spec import (
    COMMENT,
    Definition,
    Note,
    PartitionField,
    Status,
    adapt_to_folders,
    convert_types,
    optional,
    owner_of,
    plain,
    storage_type,
    with_users_properties,
    without_partition,
)
from zadapter_parquet.format.entries import UNREGISTERED, Entry, LogOperation
from zadapter_parquet.format.paths import DATA, HIDDEN
from zadapter_parquet.log import commit_entries
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version, snapshot
from zadapter_parquet.operations import moving
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files, probe
from zadapter_parquet.store.hive_names import is_folder_type


def define(snapshot: Snapshot) -> Definition:
    """Return the definition of a table."""
    entry: Entry = snapshot.handle.version.entry
    properties = dict(entry.properties)
    return Definition(
        columns=plain(json.loads(entry.schema)["fields"]),
        partition=tuple(PartitionField(name, (name,)) for name in entry.partition),
        comment=properties.pop(COMMENT, None),
        properties=properties,
    )


def adapt_definition(definition: Definition) -> Definition:
    """Adapt *definition* to what plain Parquet files support, with a note on each change."""
    accepted = with_users_properties(convert_types(definition, storage_type), _owner)
    columns = tuple(
        column | {"nullable": True, "type": optional(column["type"], deep=True)}
        for column in accepted.columns
    )
    if columns != accepted.columns:
        detail = "readers of Parquet files treat all columns as nullable"
        accepted = accepted.with_items(Note("NOT NULL", Status.LOST, detail))
    names = Counter(column["name"].lower() for column in columns)
    twins = [column["name"] for column in columns if names[column["name"].lower()] > 1]
    if twins:
        detail = "another column differs only in case, which Parquet readers may ignore"
        accepted = accepted.with_items(Note(f"column {twins[0]}", Status.REFUSED, detail))
    types: dict[NameParts, Any] = {(column["name"],): column["type"] for column in columns}
    kept = {
        field.name
        for field in accepted.partition
        if field.transform == "identity" and is_folder_type(types.get(field.source))
    }
    dropped = {field.name for field in accepted.partition} - kept
    reason = "folder names cannot represent its values; min and max of its column still prune files"
    return adapt_to_folders(without_partition(replace(accepted, columns=columns), dropped, reason))


def _owner(key: str) -> str | None:
    """Return whose name a property has in the log, which has the table's comment among them."""
    return "zadapter" if key == COMMENT or owner_of(key) == "zadapter" else None


def pending(table: str, files: Files, definition: Definition, source: Source) -> Snapshot:
    """Return a pending table without log entries.

    Raises:
        UsageError: The folder holds a table or visible files.
    """
    if _is_table(Log(files, table).newest()):
        raise UsageError(f"{table} already exists; pass another target")
    others = (f.path for f in files.list_files() if not f.path.startswith(f"{HIDDEN}/"))
    visible = next((path for path in others if not guard_files.stands_for(path)), None)
    if visible is not None:
        raise UsageError(f"{table} contains {visible}; pass an empty or new folder")
    comment = {} if definition.comment is None else {COMMENT: definition.comment}
    entry = Entry(
        version=UNREGISTERED,
        previous="",
        transaction="",
        operation=LogOperation.MIGRATE,
        read_version=UNREGISTERED,
        timestamp=0,
        table=uuid4().hex,
        schema=json.dumps({"type": "struct", "fields": list(definition.columns)}),
        partition=tuple(field.source[0] for field in definition.partition),
        parts=(),
        files=0,
        size=0,
        rows=0,
        oldest=0,
        folder=f"{DATA}/{uuid4().hex}",
        source=source,
        properties={**definition.properties, **comment},
    )
    empty = snapshot(table, files, Version(entry=entry))
    return snapshot(table, files, Version(entry=entry, file_table=_no_files(empty)))


def load(change: Change) -> int:
    """Add files in one commit, which creates the table if it does not exist.

    Raises:
        ConflictError: Another writer committed first; nothing was committed.
        UnknownOutcomeError: The commit may or may not have succeeded.
    """
    base, table = change.base, change.base.table
    log = Log(base.handle.files, table)
    files = change.added if change.exchanges else _no_files(base)
    with before_sending(table):
        _sync(change, files)
        if base.handle.version.entry.version == UNREGISTERED:
            entry, guards = _beginning(log, change, files)
        else:
            entry, guards = _build_next(log, change, files), []
    try:
        log.claim(entry)
    except ConflictError:
        guard_files.remove(base.handle.files, guards)
        raise
    return entry.version


def _sync(change: Change, files: pa.Table) -> None:
    """Flush the new files to disk.

    Raises:
        StaleRewriteError: A vacuum has aborted the commit.
    """
    version: Version = change.base.handle.version
    folders = {staged.handle[0] for staged in change.staged}
    if folders & version.aborted:
        raise StaleRewriteError(change.base.table, sorted(folders))
    try:
        change.base.handle.files.sync(files["path"].to_pylist())
    except FileNotFoundError as error:  # vacuum has aborted this commit
        raise StaleRewriteError(change.base.table, sorted(folders)) from error


def _build_next(log: Log, change: Change, files: pa.Table) -> Entry:
    """Return the entry that adds files to an existing table.

    Raises:
        ReplacedTableError: Another table is in the folder.
    """
    base, table = change.base, change.base.table
    store: Files = base.handle.files
    if not log.has(base.handle.version.entry):
        raise ReplacedTableError(table)
    current = moving.finish_moves(log, store, table, base.handle.version.entry)
    fields = commit_entries.write_exchange(store, current, [_no_files(base)], [files])
    (folder,) = {staged.handle[0] for staged in change.staged}
    return commit_entries.build_next(
        log, current, LogOperation.MIGRATE,
        transaction=change.id, folder=folder, source=change.source, **fields,
    )  # fmt: skip


def _beginning(log: Log, change: Change, files: pa.Table) -> tuple[Entry, list[str]]:
    """Return the first entry of the table, and the guards that were put into its folder.

    Raises:
        ConflictError: Another writer has created the table.
    """
    table, store = change.base.table, change.base.handle.files
    probe(store)
    last = log.newest()
    if _is_table(last):
        raise ConflictError(f"{table} was created by another writer; nothing was committed")
    entry = _build_first(store, change, files)
    if last is not None:
        # versions of the dropped table must not be restored
        entry = replace(commit_entries.number_entry(log, last, entry), oldest=last.version + 1)
    # without a guard, engines that skip hidden files would read an empty table
    return entry, guard_files.put(store, [guard_files.INCOMPLETE], change.id)


def _is_table(last: Entry | None) -> bool:
    """Return whether a log with this last entry belongs to a table that was not dropped."""
    return last is not None and last.operation is not LogOperation.DROP


def _no_files(base: Snapshot) -> pa.Table:
    kept = {p: t for p, t in leaves(base.schema) if p[0] not in base.partition and is_key(t)}
    return file_stats.empty(kept, base.partition)


def _build_first(store: Files, change: Change, files: pa.Table) -> Entry:
    entry = commit_entries.write_first(store, change.base.handle.version.entry, files)
    return replace(
        entry,
        transaction=change.id,
        files=files.num_rows,
        size=file_stats.total(files, "size"),
        rows=file_stats.total(files, "rows"),
    )


def drop(files: Files, table: str, id_: str) -> None:
    """Drop a table that has one version, by an entry that marks it as dropped.

    The log stays: otherwise a writer that has read it could add a version to a missing or another
    table. Files that other writers have staged in the folder stay, too.

    Raises:
        ConflictError: The table has more versions, or another table replaced it.
        UnknownOutcomeError: The commit may or may not have succeeded.
    """
    log = Log(files, table)
    head = log.head()
    if head.version > head.oldest or head.moves is not None or head.table != id_:
        raise ConflictError(f"{table} was changed by another writer; it was not dropped")
    no_content = {"parts": (), "files": 0, "size": 0, "rows": 0, "source": None}
    log.claim(
        commit_entries.build_next(
            log, head, LogOperation.DROP, transaction=uuid4().hex, **no_content
        )
    )
    parts = [part.path for part in head.parts]
    guards = [file.path for file in files.list_files() if guard_files.stands_for(file.path)]
    files.delete([file.path for file in files.list_files(str(head.folder))] + parts + guards)


def refuse_adoption(snapshot: Snapshot) -> NoReturn:
    """Refuse to adopt files.

    Raises:
        UnsupportedError: Always.
    """
    raise UnsupportedError(
        f"{snapshot.table}: a Parquet table cannot reference files outside its own folder; "
        "pass mode='copy'"
    )
