"""Context of a migration, and the steps that all modes share."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.contract import MigrationBackend, is_migratable
from zadapter.base.interrupts import interruptible
from zadapter.base.key_types import is_key, is_text
from zadapter.base.locations import overlap
from zadapter.base.names import NameParts, join, leaves, quote
from zadapter.errors import UnknownTableError, UnsupportedError, UsageError
from zadapter.layout.layout import Layout, Request
from zadapter.migration.copy import Transfer, keys_of
from zadapter.migration.migration_options import MigrationOptions
from zadapter.migration.row_proof import Side, filters_on, prove
from zadapter.planning.file_size import followed_request
from zadapter.planning.options import Options
from zadapter.planning.request import request_of
from zadapter.report.migration_report import Migration, Mode, Proof
from zadapter.spark.clone import refresh, scratch
from zadapter.spark.opening import OpenTable, open_in, session_for
from zadapter.table import file_stats
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Change, Exchange, Operation, Snapshot, Source, Staged, keys
from zadapter.table.spec import Definition, note_carried

_AGAIN = "Repeat the call to finish the migration or to start over"
_UNREPRESENTABLE = re.compile(r"\A\Z|\A__HIVE_DEFAULT_PARTITION__\Z|\\|(\A|/)\.\.(/|\Z)")


@dataclass(frozen=True, kw_only=True)
class MigrationContext:
    """Tables, options and sessions of a migration."""

    table: str
    source: MigrationBackend
    detected: Snapshot | None
    """The version by which the old table's format was detected; None: the caller named it."""
    target_table: str
    target: MigrationBackend
    to: str
    mode: Mode
    options: Options | None
    """Options of the new layout; None: keep the table's layout."""
    spark: SparkSession
    """A clone of the user's session."""
    user_session: SparkSession
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Duration of each phase so far, in seconds."""


@dataclass(frozen=True, kw_only=True)
class SourceTable:
    """The old table at the start of a migration."""

    transfer: Transfer
    before: Definition
    request: Request | None
    """The layout of the new table; None for no layout."""

    @property
    def origin(self) -> Source:
        """The source that the new table records."""
        snapshot = self.transfer.snapshot
        return Source(
            format=snapshot.format,
            id=snapshot.id,
            version=snapshot.version,
            columns=self.before.digest,
        )


@contextmanager
def open_tables(
    options: MigrationOptions, spark: SparkSession | None
) -> Iterator[MigrationContext]:
    """Open both tables in one clone of the user's session."""
    (old, new), to = options.names, options.to
    session = session_for([old], to, spark, new=[new])
    with (
        interruptible(session.sparkContext, _AGAIN),
        scratch(session) as clone,
        open_in(clone, old, options.backend, session) as source,
        open_in(clone, new, to, session) as target,
    ):
        yield MigrationContext(
            table=old,
            source=_migratable(source),
            detected=source.detected,
            target_table=new,
            target=_migratable(target),
            to=target.factory.format.name,
            mode=Mode(options.mode),
            options=options.layout,
            spark=clone,
            user_session=session,
        )


def _migratable(table: OpenTable) -> MigrationBackend:
    backend = table.backend
    if not is_migratable(backend):
        raise UnsupportedError(
            f"the backend of {backend.format.name} does not support migrations; pass another format"
        )
    return backend


def start(context: MigrationContext) -> SourceTable:
    """Read the old table's snapshot, definition and files.

    Raises:
        UsageError: The table already has the new format, or a key column is invalid.
    """
    snapshot = context.detected or context.source.snapshot(context.table)
    if snapshot.format == context.to:
        raise UsageError(
            f"{context.table} is already a {context.to} table; use zadapter.optimize()"
        )
    before = context.source.define(snapshot)
    files = context.source.files(snapshot, with_order(snapshot))
    kept = followed_request(files, snapshot.layouts)
    fields = [f.name for f in before.partition]
    unrepresentable = [
        name for name in fields if _is_unrepresentable(file_stats.partition(files, name))
    ]
    before = replace(before, unrepresentable=frozenset(unrepresentable))
    transfer = Transfer(
        source=context.source,
        target=context.target,
        snapshot=snapshot,
        files=files,
        definition=context.target.accept(before),
        spark=context.spark,
    )
    request = kept if context.options is None else request_of(context.options, snapshot, files)
    return SourceTable(transfer=transfer, before=before, request=request)


def with_order(snapshot: Snapshot) -> list[NameParts]:
    """Return the columns whose stats are carried."""
    return [
        parts
        for parts, type_ in leaves(snapshot.schema)
        if parts[0] not in snapshot.partition and is_key(type_)
    ]


def _is_unrepresentable(values: pa.Array | None) -> bool:
    """Return whether a folder name cannot represent a partition value, or represents null by it."""
    if values is None or not is_text(values.type):
        return False
    return any(_UNREPRESENTABLE.search(text) for text in values.drop_null().unique().to_pylist())


def find_target(context: MigrationContext) -> Snapshot | None:
    """Return the snapshot of the new table, or None if it does not exist."""
    try:
        snapshot = context.target.snapshot(context.target_table)
    except UnknownTableError:
        return None
    return None if snapshot.version is None else snapshot


def read_committed(context: MigrationContext, version: int | None) -> Snapshot:
    """Return the snapshot of a commit; if its version is unknown, the newest snapshot."""
    target = context.target_table
    head = (
        context.target.snapshot(target) if version is None else context.target.at(target, version)
    )
    refresh(context.user_session, head)
    return head


def build_load(
    base: Snapshot, staged: Sequence[Staged], source: Source, layouts: Sequence[Layout] = ()
) -> Change:
    """Return the change that adds all rows of *staged*, and creates the table if it is pending."""
    return Change(
        base=base,
        operation=Operation.MIGRATE,
        exchanges=tuple(Exchange(removed=e.files.slice(0, 0), added=e.files) for e in staged),
        staged=tuple(staged),
        layouts=tuple(layouts),
        source=source,
    )


def check_apart(old: Snapshot, new: Snapshot) -> None:
    """Refuse tables within each other's folder, where clean-ups would delete files.

    Raises:
        UsageError: One table lies in the folder of the other.
    """
    if overlap(old.location, new.location):
        raise UsageError(
            f"the folders of {old.table} and {new.table} overlap, so a clean-up of one table would "
            "delete files of the other; pass another target"
        )


def read_target_files(source_table: SourceTable, new_snapshot: Snapshot) -> pa.Table:
    """Return the files of the new table, with stats of the columns that filters use."""
    transfer = source_table.transfer
    return transfer.target.files(new_snapshot, keys_of(transfer, source_table.request))


def has_same_files(
    context: MigrationContext, source_table: SourceTable, version: int | None
) -> bool:
    """Return whether the old table still has the same files; property changes add versions too."""
    if version == source_table.origin.version or version is None:
        return version == source_table.origin.version
    old_snapshot = context.source.at(context.table, version)
    return keys(context.source.files(old_snapshot)) == keys(source_table.transfer.files)


def marker_text(context: MigrationContext, source_table: SourceTable) -> str:
    """Return the text that the marker in the folder of an unfinished table is derived from."""
    origin = source_table.origin
    return f"{context.to} {origin.format}:{origin.id}"


def proof(
    source_table: SourceTable, new_snapshot: Snapshot, columns: int, old: pa.Table, new: pa.Table
) -> Proof:
    """Read files of both tables, and compare their rows.

    Args:
        source_table: The old table.
        new_snapshot: The new table.
        columns: Number of verified columns.
        old: Files of the old table.
        new: Files of the new table, selected from the result of :func:`read_target_files`.

    Raises:
        VerificationError: The files hold different rows.
    """
    transfer = replace(source_table.transfer, files=old)
    rows = transfer.rows(old)
    before = Side(
        backend=transfer.source,
        snapshot=transfer.snapshot,
        files=old,
        stats=transfer.files_as(new_snapshot),
        rows=rows,
    )
    names = [F.col(quote((field.name,))) for field in rows.schema]
    read = transfer.target.read(new_snapshot, new).select(*names)
    after = Side(backend=transfer.target, snapshot=new_snapshot, files=new, stats=new, rows=read)
    filters = filters_on(before.stats, rows, keys_of(transfer, source_table.request))
    return prove(before, after, filters, columns)


def report(
    context: MigrationContext, source_table: SourceTable, mode: Mode, reason: str, files: pa.Table
) -> Migration:
    """Return the report of a migration before anything is written."""
    snapshot = source_table.transfer.snapshot
    definition = source_table.transfer.definition
    return Migration(
        table=context.table,
        format=snapshot.format,
        source_version=snapshot.version,
        target=context.target_table,
        to=context.to,
        mode=mode,
        why=reason,
        items=(*note_carried(source_table.before, definition), *definition.items),
        layout=_intended_layout(source_table, mode, refit=context.options is not None),
        file_count=files.num_rows,
        files=files,
        size=total(files, "size"),
        seconds=context.seconds,
    )


def _intended_layout(source_table: SourceTable, mode: Mode, *, refit: bool) -> str:
    lost = len(source_table.before.partition) != len(source_table.transfer.definition.partition)
    return _layout_text(source_table.request, refit=refit or (lost and mode is Mode.COPY))


def describe_layout(layouts: tuple[Layout, ...], snapshot: Snapshot) -> str:
    """Return a description of the new table's layout."""
    refit = any(snapshot.layouts.get(layout.id) is None for layout in layouts)
    return _layout_text(layouts[0].request if layouts else None, refit=refit)


def _layout_text(request: Request | None, *, refit: bool) -> str:
    if request is None:
        return "none; the order of rows is kept"
    columns = ", ".join(join(parts) for parts in request.columns)
    return f"{request.curve.value} by {columns}, {'newly fitted' if refit else 'kept'}"
