"""Incremental migration: rows appended to the old table since its migration."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.backend.commit import Backoff, publish
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
from zadapter.migration.copy import check_rows, plainly
from zadapter.reports.migration import Migration, Mode
from zadapter.reports.optimize import timing
from zadapter.rewrite.verify import staged
from zadapter.spark.files import discarding
from zadapter.table.file_stats import total
from zadapter.table.snapshot import Snapshot, Source
from zadapter.table.spec import check

_ANEW = "migrate to another target, and drop this one"


def follow(context: MigrationContext, *, dry_run: bool) -> Migration:
    """Copy the rows appended since the migration, in one commit.

    Raises:
        UsageError: The new table was not migrated from the old one.
        UnsupportedError: The old table has changes other than appends.
        VerificationError: The written rows differ from the rows read.
    """
    with timing(context.seconds, "plan"):
        made = existing(context)
        source_table = start(context)
        come = _appended(context, source_table, made)
    plan = report(context, source_table, Mode.COPY, "", come)
    plan = replace(plan, layout="none; the order of rows is kept until the next optimize")
    if dry_run or not come.num_rows or made is None:
        return plan
    check(source_table.transfer.definition, context.table, context.to)
    transfer = replace(source_table.transfer, files=come)
    with timing(context.seconds, "write"):
        written = plainly(transfer, made, come)
    with discarding(context.spark, [written]):
        with timing(context.seconds, "verify"):
            new = staged(context.target, made, written, context.spark)
            check_rows(transfer, [new], come)
        with timing(context.seconds, "commit"):
            change = loading(made, [new], source_table.origin)
            made_by = publish(context.target, change, Backoff())
    # other writers may have rewritten the files since
    head = landed(context, made_by.version)
    added = listing(source_table, head)
    added = added.filter(pc.is_in(added["path"], new.files["path"].combine_chunks()))
    try:
        with timing(context.seconds, "verify"):
            proven = proof(source_table, head, len(transfer.definition.columns), come, added)
    except VerificationError as error:
        raise VerificationError(
            f"{error}. The rows are in version {head.version} of {context.target_table}; restore "
            "the version before"
        ) from error
    return replace(
        plan,
        files=new.files.num_rows,
        size=total(new.files, "size"),
        target_version=head.version,
        proof=proven,
    )


def _appended(
    context: MigrationContext, source_table: SourceTable, made: Snapshot | None
) -> pa.Table:
    """Return the files added since the version that the new table contains.

    Raises:
        UsageError: The new table was not migrated from the old one.
        UnsupportedError: The old table has changes other than appends.
    """
    origin = source_table.origin
    had = None if made is None else made.source()
    if made is None or had is None or (had.format, had.id) != (origin.format, origin.id):
        raise UsageError(
            f"{context.target_table} has no record of its rows from {context.table}: it was not "
            "migrated from that table, was created again, or its history has expired; migrate to "
            "another target first"
        )
    if had.version is None:
        raise UnsupportedError(
            f"{context.table} had no versions when it was migrated, so the rows appended since are "
            f"unknown; {_ANEW}"
        )
    then = context.source.files(context.source.at(context.table, had.version))
    _check_columns(context, source_table, made, had)
    now = source_table.transfer.files
    counted = [_counted(then), _counted(now)]
    if gone := counted[0] - counted[1]:
        raise UnsupportedError(
            f"{context.table} has changes other than appends since version {had.version}: "
            f"{len(gone)} files were removed or lost rows, first: {min(gone)[0]}; {_ANEW}"
        )
    return now.filter(pc.invert(pc.is_in(now["path"], then["path"].combine_chunks())))


def _counted(files: pa.Table) -> set[tuple[str, str | None, int | None]]:
    rows = files["rows"].to_pylist()
    known = zip(files["path"].to_pylist(), files["deletes"].to_pylist(), rows, strict=True)
    return {(path, deletes, count) for path, deletes, count in known}


def _check_columns(
    context: MigrationContext, source_table: SourceTable, made: Snapshot, had: Source
) -> None:
    wanted = [(each["name"], each["type"]) for each in source_table.transfer.definition.columns]
    now = context.target.define(made)
    found = [(each["name"], each["type"]) for each in now.columns]
    if wanted != found or had.columns != source_table.origin.columns:
        raise UnsupportedError(
            f"the columns of {context.table} have changed since the migration; {_ANEW}"
        )
    cut = [(each.source, each.transform) for each in source_table.transfer.definition.partition]
    if cut != [(each.source, each.transform) for each in now.partition]:
        raise UnsupportedError(
            f"the partition spec of {context.table} or {context.target_table} has changed since "
            f"the migration; {_ANEW}"
        )
