"""``migrate``: create a table of another format from an existing table."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from os import PathLike

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.backend.commit import commit_change
from zadapter.backend.contract import Factory
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.base.locations import within
from zadapter.base.outcome import withdrawn
from zadapter.base.phases import phase
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import (
    ConflictError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
    VerificationError,
)
from zadapter.migration.context import (
    MigrationContext,
    SourceTable,
    build_load,
    check_apart,
    describe_layout,
    find_target,
    has_same_files,
    marker_text,
    open_tables,
    proof,
    read_committed,
    read_target_files,
    report,
    start,
)
from zadapter.migration.copy import Carried, copy_rows
from zadapter.migration.in_place import Shared, adopt_files, find_shareable
from zadapter.migration.incremental import follow as carried_since
from zadapter.migration.migration_options import MigrationOptions
from zadapter.migration.row_proof import check_columns
from zadapter.planning.options import AUTO, By
from zadapter.report.migration_report import Migration, Mode, Proof
from zadapter.rewrite.self_test import before_writing
from zadapter.spark.clone import refresh
from zadapter.spark.files import begin, discard, discarding, end, refuse_others
from zadapter.spark.jobs import call
from zadapter.table.file_stats import total, totals
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import check

_LEFT_OUT = (
    "maintain leaves out the clean-up of a table that has such a setting, until you drop one of "
    "the two tables and take back the setting of the other"
)


@translates_errors
def migrate(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    to: str | Factory,
    target: str | PathLike[str],
    backend: str | Factory | None = None,
    mode: str = "copy",
    by: By | None = None,
    curve: str = "adaptive",
    target_file_size: str | int = AUTO,
    row_groups: int = 16,
    follow: bool = False,
    dry_run: bool = False,
    spark: SparkSession | None = None,
) -> Migration:
    """Create a table of another format with the rows, schema and layout of *table*.

    One commit creates the new table with all rows. Then both tables are read and compared: the
    result has the proof. If the call is interrupted, repeat it: it finishes or starts over.

    Example:
        ``zadapter.migrate("lake/events", to="parquet", target="lake/as_files")``

    Args:
        table: The old table: a path, or an identifier in the session's catalog.
        to: Format of the new table: ``"delta"``, ``"iceberg"``, ``"parquet"`` or a backend's class.
        target: The new table: an empty or missing folder, or for Iceberg a name like ``db.moved``.
        backend: Format of the old table. Detected by default; required for a folder without a log.
        mode: ``"copy"`` rewrites all rows. ``"in_place"`` shares the files and protects them from
            clean-ups; it raises an error if a row could be lost. ``"auto"`` chooses between them.
        by: Key columns of a new layout, see ``optimize``. Defaults to the table's layout and cuts.
        curve: Curve of a new layout, see ``optimize``.
        target_file_size: File size of a new layout, see ``optimize``.
        row_groups: Row groups of a new layout, see ``optimize``.
        follow: Copy the rows appended to *table* since its migration, in one commit.
        dry_run: Report the effect on each part of the table, and write nothing.
        spark: A classic Spark session. Defaults to the active session, or a new local one.

    Raises:
        UsageError: An argument is invalid, or *target* is in use.
        UnsupportedError: The new format cannot represent the table; the message lists reasons.
        VerificationError: The tables differ; if this call created the new one, it was removed.
        ConflictError: Another writer created the new table, which was not changed.
        UnknownOutcomeError: It is unknown whether the commit landed; repeat the call.
    """
    options = MigrationOptions(
        table=table,
        to=to,
        target=target,
        backend=backend,
        mode=mode,
        by=by,
        curve=curve,
        target_file_size=target_file_size,
        row_groups=row_groups,
        follow=follow,
        dry_run=dry_run,
    )
    with open_tables(options, spark) as context:
        return _run(context, carried_since if follow else _migrate, dry_run=dry_run)


def _run(
    context: MigrationContext, migration: Callable[..., Migration], *, dry_run: bool
) -> Migration:
    with call("migrate", context.table, context.spark, context.seconds) as whole:
        migrated = migration(context, dry_run=dry_run)
        whole.note(version=migrated.target_version, files=migrated.file_count, bytes=migrated.size)
    return migrated


def _migrate(context: MigrationContext, *, dry_run: bool) -> Migration:
    with phase("plan", context.table, context.seconds) as step:
        source_table = start(context)
        found = _find_target_or_mode(context, source_table)
        old_files = totals([source_table.transfer.files])
        step.note(version=source_table.transfer.snapshot.version, **old_files)
    if isinstance(found, Snapshot):
        return _prove_existing(context, source_table, found, dry_run=dry_run)
    mode, reason, adoptable = found
    plan = report(context, source_table, mode, reason, source_table.transfer.files)
    if dry_run:
        return plan
    check(source_table.transfer.definition, context.table, context.to)
    before_writing(context.target.format, context.user_session)
    carried, notes, version = _create(context, source_table, adoptable)
    # the committed version if known, since other writers may have added newer ones
    head = read_committed(context, version)
    refresh(context.user_session, source_table.transfer.snapshot)
    files = read_target_files(source_table, head)
    try:
        proven = _prove_target(context, source_table, head, files)
    except VerificationError:
        _undo(context, head, carried, shared_files=adoptable is not None)
        raise
    layouts = tuple(layout for part in carried for layout in part.layouts)
    return replace(
        plan,
        layout=describe_layout(layouts, source_table.transfer.snapshot),
        file_count=files.num_rows,
        files=files,
        size=total(files, "size"),
        versions=(version,),
        files_added=files.num_rows,
        rows_added=total(files, "rows"),
        target_version=head.version,
        proof=proven,
        notes=notes,
    )


def _prove_target(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot, files: pa.Table
) -> Proof:
    """Compare the new table with the old one, and remove the marker from its folder."""
    transfer = source_table.transfer
    with phase("verify", context.target_table, context.seconds) as step:
        columns = check_columns(
            transfer.definition.columns, transfer.target.define(new_snapshot).columns
        )
        proven = proof(source_table, new_snapshot, columns, transfer.files, files)
        step.note(version=new_snapshot.version, **totals([files]))
    if new_snapshot.identifier is None:
        end(context.spark, new_snapshot.location, marker_text(context, source_table))
    return proven


def _prove_existing(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot, *, dry_run: bool
) -> Migration:
    """Compare a table that an earlier call created, which may have stopped before its proof.

    Raises:
        UsageError: The target was migrated from another table, or from another version.
        VerificationError: The two tables differ; nothing was removed.
    """
    origin, recorded = source_table.origin, new_snapshot.source()
    if recorded is None or (recorded.format, recorded.id) != (origin.format, origin.id):
        raise UsageError(f"{context.target_table} already exists; pass another target")
    if not has_same_files(context, source_table, recorded.version):
        raise UsageError(
            f"{context.target_table} has {context.table} up to version {recorded.version}, but "
            f"that table is at version {origin.version}; pass follow=True to copy the appended rows"
        )
    files = read_target_files(source_table, new_snapshot)
    uris = context.target.uris(new_snapshot, files["path"].to_pylist())
    own = all(within(uri, new_snapshot.location) for uri in uris)
    mode = Mode.COPY if own else Mode.IN_PLACE
    plan = report(context, source_table, mode, "created by an earlier call", files)
    if dry_run:
        return plan
    try:
        proven = _prove_target(context, source_table, new_snapshot, files)
    except VerificationError as error:
        raise VerificationError(
            f"{error}. {context.target_table} was created by an earlier call, and other writers "
            "may have changed it since; nothing was removed"
        ) from error
    return replace(plan, proof=proven, target_version=new_snapshot.version)


def _find_target_or_mode(
    context: MigrationContext, source_table: SourceTable
) -> Snapshot | tuple[Mode, str, Shared | None]:
    """Return the new table if it exists, or else how to create it, see :func:`_choose_mode`."""
    with suppress(UnsupportedError):  # ``pending`` rejects a location in use
        if (new_snapshot := find_target(context)) is not None:
            return new_snapshot
    return _choose_mode(context, source_table)


def _choose_mode(
    context: MigrationContext, source_table: SourceTable
) -> tuple[Mode, str, Shared | None]:
    """Return the mode, the reason unless it was requested, and the files to share.

    Raises:
        UnsupportedError: A migration in place was requested and is not safe.
    """
    if context.mode is Mode.COPY:
        return Mode.COPY, "", None
    if context.options is not None:
        return Mode.COPY, "since a new layout requires a rewrite", None
    try:
        adoptable = find_shareable(source_table.transfer, source_table.before)
    except UnsupportedError as error:
        if context.mode is Mode.AUTO:
            return Mode.COPY, f"since {error}", None
        raise UnsupportedError(f"{error}; pass mode='copy'") from error
    return Mode.IN_PLACE, "since it is safe" if context.mode is Mode.AUTO else "", adoptable


def _create(
    context: MigrationContext, source_table: SourceTable, adoptable: Shared | None
) -> tuple[tuple[Carried, ...], tuple[str, ...], int | None]:
    """Create the new table; return its files, notes on them, and its version if known."""
    transfer = source_table.transfer
    pending = context.target.pending(context.target_table, transfer.definition, source_table.origin)
    check_apart(transfer.snapshot, pending)
    if pending.identifier is None:
        begin(context.spark, pending.location, marker_text(context, source_table))
    else:
        refuse_others(context.spark, pending.location)
    size = total(transfer.files, "size") if adoptable is None else None
    with phase("write", context.target_table, context.seconds, expected=size) as step:
        if adoptable is None:
            carried = copy_rows(transfer, pending, source_table.request)
        else:
            carried = adopt_files(transfer, pending, adoptable)
        facts = totals(part.staged.files for part in carried)
        step.note(**facts)
    notes = () if adoptable is None else (context.source.protect(transfer.snapshot), _LEFT_OUT)
    change = build_load(
        pending,
        [part.staged for part in carried],
        source_table.origin,
        [layout for part in carried for layout in part.layouts],
    )
    discardable = [] if adoptable is not None else [part.staged for part in carried]
    attempts = Attempts(Backoff(attempts=1))
    with (
        discarding(context.spark, discardable, attempts),
        phase("commit", context.target_table, context.seconds) as step,
    ):
        outcome = commit_change(context.target, change, attempts)
        step.note(version=outcome.version, **facts)
    return carried, notes, outcome.version


def _undo(
    context: MigrationContext, head: Snapshot, carried: tuple[Carried, ...], *, shared_files: bool
) -> None:
    """Drop the new table unless another writer has changed it, and then discard its own files."""
    with suppress(ConflictError, UnknownOutcomeError):
        context.target.drop(head)
        withdrawn()
        for part in () if shared_files else carried:
            discard(context.spark, part.staged)
