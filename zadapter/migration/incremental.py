"""Incremental migration: rows appended to the old table since its migration."""

from dataclasses import replace
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts
from zadapter.base.locations import map_files
from zadapter.base.phases import phase
from zadapter.errors import UnsupportedError, UsageError, VerificationError
from zadapter.migration.appended_files import MIGRATE_AGAIN, find_appended
from zadapter.migration.context import (
    MigrationContext,
    SourceTable,
    build_load,
    find_target,
    proof,
    read_committed,
    read_target_files,
    report,
    start,
    with_order,
)
from zadapter.migration.copy import Lot, check_rows, write_unclustered
from zadapter.report.migration_report import Migration, Mode
from zadapter.rewrite.self_test import before_writing
from zadapter.rewrite.verify import stage_and_check
from zadapter.spark.files import discarding
from zadapter.spark.jvm.gateway import hadoop_conf
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.table.file_stats import total, totals
from zadapter.table.snapshot import Snapshot, Source, Staged
from zadapter.table.spec import check


def follow(context: MigrationContext, *, dry_run: bool) -> Migration:
    """Copy the rows appended since the migration, in one commit.

    Raises:
        UsageError: The new table was not migrated from the old one.
        UnsupportedError: The old table has changes other than appends.
        VerificationError: The written rows differ from the rows read.
    """
    with phase("plan", context.table, context.seconds) as step:
        new_snapshot = find_target(context)
        source_table = start(context)
        *earlier, newest = _find_appended(context, source_table, new_snapshot)
        files = pa.concat_tables([*(lot.files for lot in earlier), newest.files])
        step.note(version=source_table.transfer.snapshot.version, **totals([files]))
    plan = report(context, source_table, Mode.COPY, "", files)
    plan = replace(plan, layout="none; the order of rows is kept until the next optimize")
    if dry_run or not files.num_rows or new_snapshot is None:
        return plan
    check(source_table.transfer.definition, context.table, context.to)
    before_writing(context.target.format, context.user_session)
    transfer = replace(source_table.transfer, files=files, earlier=tuple(earlier))
    source_table = replace(source_table, transfer=transfer)
    staged_files, version = _copy_appended(context, source_table, new_snapshot)
    # other writers may have rewritten the files since
    head = read_committed(context, version)
    added = read_target_files(source_table, head)
    added = added.filter(pc.is_in(added["path"], staged_files.files["path"].combine_chunks()))
    try:
        with phase("verify", context.target_table, context.seconds) as step:
            step.note(version=head.version, **totals([added]))
            proven = proof(source_table, head, len(transfer.definition.columns), files, added)
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
        versions=(version,),
        files_added=staged_files.files.num_rows,
        rows_added=total(staged_files.files, "rows"),
        target_version=head.version,
        proof=proven,
    )


def _copy_appended(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot
) -> tuple[Staged, int | None]:
    """Write and commit the rows; return the new files, and the version if known."""
    transfer = source_table.transfer
    target, size = context.target_table, total(transfer.files, "size")
    with phase("write", target, context.seconds, expected=size) as step:
        written = write_unclustered(transfer, new_snapshot, transfer.files)
        step.note(files=len(written.paths))
    attempts = Attempts()
    with discarding(context.spark, [written], attempts):
        with phase("verify", target, context.seconds) as step:
            staged_files = stage_and_check(context.target, new_snapshot, written, context.spark)
            check_rows(transfer, [staged_files], transfer.files)
            facts = totals([staged_files.files])
            step.note(**facts)
        with phase("commit", target, context.seconds) as step:
            change = build_load(new_snapshot, [staged_files], source_table.origin)
            outcome = commit_change(context.target, change, attempts)
            step.note(version=outcome.version, **facts)
    return staged_files, outcome.version


def _find_appended(
    context: MigrationContext, source_table: SourceTable, new_snapshot: Snapshot | None
) -> list[Lot]:
    """Return the files with the rows appended since the version that the new table contains.

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
            f"unknown; {MIGRATE_AGAIN}"
        )
    since = _at(context, recorded, recorded.version)
    _check_columns(context, source_table, new_snapshot, recorded)
    transfer = source_table.transfer
    head = Lot(transfer.snapshot, transfer.files)
    lots = find_appended(since, head, lambda version: _at(context, recorded, version))
    for lot in lots[:-1]:
        _check_present(context, lot)
    return lots


def _at(context: MigrationContext, recorded: Source, version: int) -> Lot:
    """Return an older version of the old table, and its files.

    Raises:
        UnsupportedError: It has other columns than the version that was carried.
    """
    snapshot = context.source.at(context.table, version)
    if version != recorded.version and context.source.define(snapshot).digest != recorded.columns:
        raise UnsupportedError(
            f"the columns of {context.table} differ from version {version}; {MIGRATE_AGAIN}"
        )
    return Lot(snapshot, context.source.files(snapshot, with_order(snapshot)))


def _check_present(context: MigrationContext, lot: Lot) -> None:
    """Check that the files of an older version exist.

    Raises:
        UnsupportedError: Some were deleted.
    """
    jvm = java_classes(context.spark)
    conf = hadoop_conf(context.spark)

    def is_missing(uri: str) -> bool:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        return not path.getFileSystem(conf).exists(path)

    uris = context.source.uris(lot.snapshot, lot.files["path"].to_pylist())
    missing = list(compress(uris, list(map_files(is_missing, uris))))
    if missing:
        raise UnsupportedError(
            f"rows that were appended to {context.table} were rewritten together with others after "
            f"version {lot.snapshot.version}, and the file that they were in was deleted since: "
            f"{missing[0]}; follow before old files are deleted, or {MIGRATE_AGAIN}"
        )


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
            f"the columns of {context.table} have changed since the migration; {MIGRATE_AGAIN}"
        )
    expected_partition = [
        (f.source, f.transform) for f in source_table.transfer.definition.partition
    ]
    if expected_partition != [(f.source, f.transform) for f in definition.partition]:
        raise UnsupportedError(
            f"the partition spec of {context.table} or {context.target_table} has changed since "
            f"the migration; {MIGRATE_AGAIN}"
        )
