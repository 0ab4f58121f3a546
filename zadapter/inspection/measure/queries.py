"""The queries that an analysis judges: conditions, or the filters of a log."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from zadapter.errors import UsageError
from zadapter.inspection.measure import matches as counted
from zadapter.inspection.measure.table_access import Opened
from zadapter.inspection.query_log import LoggedFilter, QueryLog
from zadapter.inspection.querylog.log_reader import read_log
from zadapter.inspection.querylog.plans import is_statement
from zadapter.inspection.querylog.sources import Queries, is_path
from zadapter.inspection.reads import Footers, Query, matches_of, query
from zadapter.planning.options import check_where
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.spark.footer_reader import read_row_group_table
from zadapter.table.column_bounds import Mask
from zadapter.table.file_stats import evenly

JUDGED = 500
"""Maximum number of filters that are judged: the heaviest."""
COUNTED = 32
"""Maximum number of filters whose matches are counted: those that open most."""


def conditions(queries: Queries | None, *, matches: bool) -> list[str] | None:
    """Return conditions that stand for themselves, or None if *queries* are a log.

    A text is a condition unless it is the path of a log. Texts are conditions if none of them is a
    statement.

    Raises:
        UsageError: A condition is empty or not valid Unicode, or there is none whose matches could
            be counted.
    """
    if matches and queries is None:
        raise UsageError("matches= counts the rows that queries match; pass queries= as well")
    if isinstance(queries, str):
        texts = None if is_path(queries) else [queries]
    elif queries is None or isinstance(queries, Sequence):
        texts = [text for text in queries or () if isinstance(text, str)]
        texts = texts if len(texts) == len(queries or ()) else None
    else:
        return None
    if texts is None or any(map(is_statement, texts)):
        return None
    for text in texts:
        check_where(text, "queries")
    return texts


def log_of(opened: Opened, queries: Queries | None, texts: Sequence[str] | None) -> QueryLog:
    """Return the filters to judge.

    Args:
        opened: The table.
        queries: What the caller passed.
        texts: The same as conditions; None: it is a log.

    Raises:
        UsageError: A condition or the log is invalid, or no query of the log filters the table.
    """
    if texts is not None:
        found = [LoggedFilter(opened.condition(t).predicate, t, (1.0,), 1) for t in texts]
        return QueryLog(tuple(found), len(found), {})
    assert queries is not None  # noqa: S101 - None is no log
    log = read_log(queries, opened.snapshot, opened.rows)
    if not log.filters:
        raise UsageError(log.unusable(opened.snapshot.table, "a column with bounds"))
    return log


def judge_filters(
    opened: Opened, files: pa.Table, log: QueryLog, *, footers: int | None, matches: bool
) -> list[Query]:
    """Return what the heaviest filters read of *files*.

    Args:
        opened: The table.
        files: The files.
        log: The filters.
        footers: Maximum number of files whose footers are read; None if none are.
        matches: Whether to count the matches of the filters that open most.
    """
    filters = log.filters[:JUDGED]
    if not filters:
        return []
    may = np.stack([matching(each.predicate, files) for each in filters])
    weights = np.array([each.weight for each in filters])
    groups = None if footers is None else _footers(opened, files, filters, may, footers)
    found = [
        query(each.sql, each.predicate, files, opens, weight=each.weight, footers=groups)
        for each, opens in zip(filters, may, strict=True)
    ]
    if not matches:
        return found
    heaviest = np.sort(np.argsort(-weights * may.sum(axis=1), kind="stable")[:COUNTED]).tolist()
    predicates = [filters[at].predicate for at in heaviest]
    read = np.flatnonzero(may[heaviest].any(axis=0)).tolist()
    in_files = counted.count_by_file(opened, files, read, predicates)
    in_groups = (
        None if groups is None else counted.count_by_row_group(opened, files, groups, predicates)
    )
    for number, at in enumerate(heaviest):
        hits = None if in_groups is None else in_groups[:, number]
        held = matches_of(predicates[number], may[at], in_files[:, number], groups, hits)
        found[at] = replace(found[at], matches=held)
    return found


def _footers(
    opened: Opened, files: pa.Table, filters: Sequence[LoggedFilter], may: Mask, sample: int
) -> Footers | None:
    """Read the footers of files that filters open, evenly spread; None: they open none."""
    read = np.flatnonzero(may.any(axis=0))
    read = read[evenly(len(read), sample)]
    columns = {column for each in filters for column in columns_of(each.predicate)}
    if not len(read) or not columns:
        return None
    some = files.take(pa.array(read))
    groups = read_row_group_table(opened.session, opened.snapshot, some, opened.uris(some), columns)
    return Footers(groups.table, read[groups.file_of])
