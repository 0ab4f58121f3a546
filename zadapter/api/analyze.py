"""``analyze``: how well a table is clustered, from its log."""

from collections.abc import Sequence
from os import PathLike

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.api.run_optimize import run_plan
from zadapter.backend.contract import Factory
from zadapter.base.names import NameParts, join
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.inspection.analysis import Analysis, RowGroups
from zadapter.inspection.analyzer import Subject, analysis
from zadapter.inspection.column_facts import reason_without
from zadapter.inspection.measure.queries import JUDGED, conditions, judge_filters, log_of
from zadapter.inspection.measure.table_access import Opened, opening
from zadapter.inspection.pending_rewrite import PendingRewrite, from_plan
from zadapter.inspection.querylog.sources import Queries
from zadapter.layout.layout import Request
from zadapter.planning.file_size import present_file_size
from zadapter.planning.options import By, Options, check_flags, check_table, check_where
from zadapter.planning.request import key_columns, request_of
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.rewrite.compaction_plan import compaction_plan, ordering_columns
from zadapter.rewrite.file_selection import follow_files, select_files
from zadapter.spark.footer_reader import read_row_group_table
from zadapter.table.file_stats import row_counts, select_stats, spread
from zadapter.table.overlap.extents import extent, space

MOST_COLUMNS = 32
"""Number of columns that are analyzed, besides those that the caller names."""
SAMPLE_FILES = 64
"""Number of files whose footers are read, unless the caller states one."""
_NO_KEYS = "no file is clustered; pass by= (--by), one to four columns that filters use"
_KEYS = 4
"""Number of columns that row groups are compared in, of a table without key columns."""


@translates_errors
def analyze(  # noqa: PLR0913 - the public call, all by keyword
    table: str | PathLike[str],
    *,
    by: By | None = None,
    where: str | None = None,
    queries: Queries | None = None,
    matches: bool = False,
    row_groups: bool = False,
    sample_files: int = SAMPLE_FILES,
    plan: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Analysis:
    """Report how well *table* is clustered, and whether a rewrite is due, from its log alone.

    Example:
        ``zadapter.analyze("lake/events", queries=["user_id = 7"])``

    Args:
        table: A path or an identifier.
        by: Key columns as for :func:`zadapter.optimize`. Defaults to the table's current keys.
        where: A condition in Spark SQL. Only files that may contain matching rows are analyzed.
        queries: Conditions, or a log as for :func:`zadapter.advise`. The analysis contains the
            share of files and rows that each filter has to read. An invalid condition raises
            ``UsageError``; entries of a log that cannot be used are counted.
        matches: Also read the files that the queries open, and count the files without a matching
            row.
        row_groups: Also read footers, and compare row groups.
        sample_files: Maximum number of files whose footers are read.
        plan: Predict a rewrite by :func:`zadapter.plan`, which samples rows and reads footers. By
            default only the bounds of files are used.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The table or a column does not exist, or a condition is invalid.
    """
    check_where(where)
    check_flags(matches=matches, row_groups=row_groups, plan=plan)
    check_sample(sample_files)
    texts = conditions(queries, matches=matches)
    options = Options(table=table, by=[by] if isinstance(by, str) else by, where=where)
    predicted = from_plan(run_plan(options, backend, spark)) if plan else None
    footers = sample_files if row_groups else None
    with opening("analyze", check_table(table), backend, spark) as opened:
        log = log_of(opened, queries, texts)
        filtered = None if where is None else opened.condition(where).predicate
        used = [each.predicate for each in log.filters[:JUDGED]]
        subject = _subject(opened, options, filtered, [*used, *([filtered] if filtered else [])])
        return analysis(
            subject,
            where=where,
            log=log,
            queries=judge_filters(opened, subject.files, log, footers=footers, matches=matches),
            row_groups=None if footers is None else _row_groups(opened, subject, footers),
            rewrite=predicted
            or subject.find_pending()
            or _predict_compaction(opened, options, filtered, subject.note),
        )


def check_sample(sample_files: object) -> None:
    """Check a number of files.

    Raises:
        UsageError: It is not a whole number above 0.
    """
    if isinstance(sample_files, bool) or not isinstance(sample_files, int) or sample_files < 1:
        raise UsageError(f"sample_files= must be a whole number above 0, not {sample_files!r}")


def _subject(
    opened: Opened, options: Options, where: Predicate | None, conditions: Sequence[Predicate]
) -> Subject:
    """Return the files to analyze, and what is known of the table."""
    snapshot = opened.snapshot
    keys = () if options.by is None else _keys(options, opened)
    used = [column for each in conditions for column in sorted(columns_of(each))]
    wanted, left_out = _choose_columns(opened, (*keys, *snapshot.clustering, *used))
    files = opened.backend.files(snapshot, wanted)
    request, note = _request(opened, options, files)
    lacking = [] if request is None else [c for c in request.columns if c not in wanted]
    if lacking:
        wanted = (*lacking, *wanted)
        files = opened.backend.files(snapshot, wanted)
    table_files = files.num_rows
    if where is not None:
        files = files.filter(pa.array(matching(where, files)))
    first = () if request is None else request.columns
    partition = snapshot.partition
    others = tuple(c for c in wanted if c not in first and c[0] not in partition)
    return Subject(
        snapshot=snapshot,
        files=files,
        columns=(*first, *others),
        request=request,
        table_files=table_files,
        limits=options.limits,
        target_file_size=present_file_size(
            files, snapshot.layouts, request, snapshot.target_file_size
        ),
        left_out=left_out,
        note=note,
    )


def _keys(options: Options, opened: Opened) -> tuple[NameParts, ...]:
    """Return the key columns that the caller names, or none if they cannot be keys.

    Raises:
        UnknownColumnError: The table has no such column.
    """
    try:
        return key_columns(options, opened.snapshot)
    except UnknownColumnError:
        raise
    except UsageError:
        return ()


def _choose_columns(
    opened: Opened, named_columns: Sequence[NameParts]
) -> tuple[tuple[NameParts, ...], dict[str, str]]:
    """Return the columns to analyze, and why others are left out."""
    snapshot = opened.snapshot
    found, left_out = list(dict.fromkeys(named_columns)), dict[str, str]()
    room = MOST_COLUMNS - len(found)
    for column in opened.columns:
        reason = reason_without(snapshot, column)
        if column in found:
            continue
        if reason is not None:
            left_out[join(column)] = reason
        elif room > 0:
            found.append(column)
            room -= 1
        else:
            left_out[join(column)] = f"more than {MOST_COLUMNS} columns; name it in by="
    return tuple(found), left_out


def _request(opened: Opened, options: Options, files: pa.Table) -> tuple[Request | None, str]:
    """Return the layout that a rewrite would give the table, or why there is none."""
    try:
        stated = (
            options if options.by is not None else follow_files(options, files, opened.snapshot)
        )
        if stated is None:
            return None, _NO_KEYS
        return request_of(stated, opened.snapshot, files), ""
    except UsageError as error:
        return None, str(error).removeprefix(f"{opened.snapshot.table}: ")


def _predict_compaction(
    opened: Opened, options: Options, where: Predicate | None, note: str
) -> PendingRewrite | None:
    """Return which small files would be joined, of a table without key columns."""
    if note != _NO_KEYS:
        return None
    columns = ordering_columns(opened.snapshot)
    found = select_files(options, opened.backend, opened.snapshot, columns, where)
    return from_plan(compaction_plan(options, opened.backend, opened.snapshot, found).prediction)


def _row_groups(opened: Opened, subject: Subject, count: int) -> RowGroups | None:
    """Read footers, and return what filters read by row group and by file."""
    picked = spread(subject.files, count)
    columns = subject.columns[: subject.keys or _KEYS]
    if not columns or not picked.num_rows:
        return None
    groups = read_row_group_table(
        opened.session, opened.snapshot, picked, opened.uris(picked), columns
    )
    table = groups.table
    together = pa.concat_tables(
        [table, select_stats(picked, table.schema).select(table.column_names)]
    )
    boxes = space([extent(together, column) for column in columns], row_counts(together))
    numbers = np.arange(together.num_rows)
    return RowGroups(
        files=picked.num_rows,
        row_groups=table.num_rows,
        share=boxes.share_of(numbers[: table.num_rows]),
        share_by_file=boxes.share_of(numbers[table.num_rows :]),
    )
