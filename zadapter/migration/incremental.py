"""Incremental migration: rows appended to the old table since its migration."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.commit import publish
from zadapter.base.commit_attempts import Attempts
from zadapter.errors import UnsupportedError, UsageError, VerificationError
from zadapter.migration.context import (
    MigrationContext,
    SourceTable,
    existing,
    landed,
    listing,
    loading,
    proof,
    report,
    start,
)
from zadapter.migration.copy import Transfer, check_rows, plainly
from zadapter.reports.migration import Migration, Mode
from zadapter.reports.phases import phase
from zadapter.rewrite.self_test import before_writing
from zadapter.rewrite.verify import staged
from zadapter.spark.files import discarding
from zadapter.table.file_stats import total, totals
from zadapter.table.snapshot import Snapshot, Source, Staged
from zadapter.table.spec import check

_MIGRATE_AGAIN = "migrate to another target, and drop this one"


def follow(context: MigrationContext, *, dry_run: bool) -> Migration:
    """Copy the rows appended since the migration, in one commit.

    Raises:
        UsageError: The new table was not migrated from the old one.
        UnsupportedError: The old table has changes other than appends.
        VerificationError: The written rows differ from the rows read.
    """
    with phase("plan", context.table, context.seconds) as step:
        new_snapshot = existing(context)
        source_table = start(context)
        appended = _appended(context, source_table, new_snapshot)
        step.note(version=source_table.transfer.snapshot.version, **totals([appended]))
    plan = report(context, source_table, Mode.COPY, "", appended)
    plan = replace(plan, layout="none; the order of rows is kept until the next optimize")
    if dry_run or not appended.num_rows or new_snapshot is None:
        return plan
    check(source_table.transfer.definition, context.table, context.to)
    before_writing(context.target.format, context.user_session)
    transfer = replace(source_table.transfer, files=appended)
    staged_files, version = _carried(context, source_table, new_snapshot, transfer)
    # other writers may have rewritten the files since
    head = landed(context, version)
    added = listing(source_table, head)
    added = added.filter(pc.is_in(added["path"], staged_files.files["path"].combine_chunks()))
    try:
        with phase("verify", context.target_table, context.seconds) as step:
            step.note(version=head.version, **totals([added]))
            proven = proof(source_table, head, len(transfer.definition.columns), appended, added)
    except VerificationError as error:
        raise VerificationError(
            f"{error}. The rows are in version {head.version} of {context.target_table}; restore "
            "the version before"
        ) from error
    return replace(
        plan,
        file_count=staged_files.files.num_rows,
        files=staged_files.files,
        size=total(staged_files.files, "size"),
        target_version=head.version,
        proof=proven,
    )


def _carried(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot, transfer: Transfer
) -> tuple[Staged, int | None]:
    """Write and commit the files of *transfer*; return the new files, and the version if known."""
    target, size = context.target_table, total(transfer.files, "size")
    with phase("write", target, context.seconds, expected=size) as step:
        written = plainly(transfer, new_snapshot, transfer.files)
        step.note(files=len(written.paths))
    attempts = Attempts()
    with discarding(context.spark, [written], attempts):
        with phase("verify", target, context.seconds) as step:
            staged_files = staged(context.target, new_snapshot, written, context.spark)
            check_rows(transfer, [staged_files], transfer.files)
            facts = totals([staged_files.files])
            step.note(**facts)
        with phase("commit", target, context.seconds) as step:
            change = loading(new_snapshot, [staged_files], source_table.origin)
            outcome = publish(context.target, change, attempts)
            step.note(version=outcome.version, **facts)
    return staged_files, outcome.version


def _appended(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot | None
) -> pa.Table:
    """Return the files added since the version that the new table contains.

    Raises:
        UsageError: The new table was not migrated from the old one.
        UnsupportedError: The old table has changes other than appends.
    """
    origin = source_table.origin
    recorded = None if new_snapshot is None else new_snapshot.source()
    if (
        new_snapshot is None
        or recorded is None
        or (recorded.format, recorded.id) != (origin.format, origin.id)
    ):
        raise UsageError(
            f"{context.target_table} has no record of its rows from {context.table}: it was not "
            "migrated from that table, was created again, or its history has expired; migrate to "
            "another target first"
        )
    if recorded.version is None:
        raise UnsupportedError(
            f"{context.table} had no versions when it was migrated, so the rows appended since are "
            f"unknown; {_MIGRATE_AGAIN}"
        )
    old_files = context.source.files(context.source.at(context.table, recorded.version))
    _check_columns(context, source_table, new_snapshot, recorded)
    new_files = source_table.transfer.files
    counted = [_counted(old_files), _counted(new_files)]
    if removed := counted[0] - counted[1]:
        raise UnsupportedError(
            f"{context.table} has changes other than appends since version {recorded.version}: "
            f"{len(removed)} files were removed or lost rows, first: {min(removed)[0]}; "
            f"{_MIGRATE_AGAIN}"
        )
    return new_files.filter(
        pc.invert(pc.is_in(new_files["path"], old_files["path"].combine_chunks()))
    )


def _counted(files: pa.Table) -> set[tuple[str, str | None, int | None]]:
    rows = files["rows"].to_pylist()
    entries = zip(files["path"].to_pylist(), files["deletes"].to_pylist(), rows, strict=True)
    return {(path, deletes, count) for path, deletes, count in entries}


def _check_columns(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot, recorded: Source
) -> None:
    expected = [
        (column["name"], column["type"]) for column in source_table.transfer.definition.columns
    ]
    definition = context.target.define(new_snapshot)
    actual = [(column["name"], column["type"]) for column in definition.columns]
    if expected != actual or recorded.columns != source_table.origin.columns:
        raise UnsupportedError(
            f"the columns of {context.table} have changed since the migration; {_MIGRATE_AGAIN}"
        )
    expected_partition = [
        (f.source, f.transform) for f in source_table.transfer.definition.partition
    ]
    if expected_partition != [(f.source, f.transform) for f in definition.partition]:
        raise UnsupportedError(
            f"the partition spec of {context.table} or {context.target_table} has changed since "
            f"the migration; {_MIGRATE_AGAIN}"
        )
