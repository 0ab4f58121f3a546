"""Reading a query log: which filters the queries of a log apply to a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from zadapter.base.names import split
from zadapter.errors import UsageError
from zadapter.inspection.query_log import (
    SLICES,
    LoggedFilter,
    QueryLog,
    Top,
    heaviest_first,
    matches_nothing,
    normalize,
    restricts,
)
from zadapter.inspection.querylog import iceberg_json, spark_plans
from zadapter.inspection.querylog.column_conditions import join_conditions
from zadapter.inspection.querylog.entries import OTHER_TABLE, EntryGroup, Grouped, Scan
from zadapter.inspection.querylog.plans import NO_ROWS, Planner, UnusableError, planner
from zadapter.inspection.querylog.sources import Queries, read_entries
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.texts import causes, text
from zadapter.spark.clone import scratch
from zadapter.table.snapshot import Snapshot

NO_FILTER = "no filter on this table"
NO_BOUNDS = "a filter without bounds"
TOO_DEEP = "a filter that is nested too deeply"
_MOST_REASONS = 50
"""Maximum number of reasons with details; rarer ones are counted without."""
_Read = tuple[Predicate, Top | None]
"""The filter of a scan, and which of the rows that match the query asks for; None: all."""


def read_log(
    queries: Queries, snapshot: Snapshot, rows: DataFrame, *, tops: bool = False
) -> QueryLog:
    """Read a log of queries, and return the filters that they apply to a table.

    Spark plans each distinct text and executes none. The filters above the scans of the table in
    the optimised plan count; a query with several scans of the table has several filters, each with
    the weight of the query. Functions of the clock have the time of this call.

    Args:
        queries: Texts of queries or of conditions, or pairs of such a text and a weight, in the
            order of time; or a path: a ``.sql`` file, a CSV or Parquet file with a column of texts,
            a folder or file of Spark's event log, scan reports of Iceberg as lines of JSON; or a
            DataFrame with a column of texts. Tables may have columns with a weight and a time.
        snapshot: The table.
        rows: The table's rows, in the session whose views and catalogs the queries refer to.
        tops: Whether queries for the first rows in the order of a column count by that order, too.
            Those of an event log do not, since Spark reads all rows that match.

    Raises:
        UsageError: The log has no known form, cannot be read or is empty.
    """
    with scratch(rows.sparkSession, expressions=True) as session:
        plans = planner(session, snapshot, rows)
        return _log(plans, read_entries(queries, session, plans.spelling.view), tops=tops)


@dataclass(slots=True)
class _Sum:
    """Entries with the same filter."""

    entries: int = 0
    weights: list[float] = field(default_factory=lambda: [0.0] * SLICES)


def _log(plans: Planner, found: Grouped, *, tops: bool) -> QueryLog:
    """Plan the groups of a log, and join those with the same filter."""
    sums: dict[_Read, _Sum] = {}
    unused: Counter[str] = Counter()
    for group in found.groups:
        try:
            usable = _usable(_filters(plans, group), tops=tops and not group.scans)
        except UnusableError as error:
            unused[str(error)] += group.entries
            continue
        except RecursionError:
            unused[TOO_DEEP] += group.entries
            continue
        for read, times in Counter(usable).items():
            total = sums.setdefault(read, _Sum())
            total.entries += group.entries
            for at, weight in enumerate(group.weights):
                total.weights[at] += weight * times
    unused.update(found.unused)
    return QueryLog(
        filters=heaviest_first(
            LoggedFilter(predicate, _text(predicate, top), tuple(total.weights), total.entries, top)
            for (predicate, top), total in sums.items()
        ),
        entries=sum(group.entries for group in found.groups) + sum(found.unused.values()),
        unused=_rank_reasons(unused),
        days=found.days,
        queries_a_weight=found.queries_a_weight,
    )


def _text(predicate: Predicate, top: Top | None) -> str:
    shown = [text(predicate)] if restricts(predicate) or top is None else []
    return " ".join([*shown, *([] if top is None else [str(top)])])


def _filters(plans: Planner, group: EntryGroup) -> list[_Read]:
    """Return the filters of a group: of its text, or else of the scans that the log reports.

    Raises:
        UnusableError: There are none.
    """
    if group.text:
        try:
            return plans.filters(group.text)
        except UnusableError:
            if not group.scans:
                raise
    scans = [scan for scan in group.scans if _is_of(plans, scan)]
    if not scans:
        raise UnusableError(OTHER_TABLE)
    return [part for scan in scans for part in plans.condition(_condition(plans, scan))]


def _is_of(plans: Planner, scan: Scan) -> bool:
    if scan.location:
        return plans.spelling.is_location(scan.location)
    try:
        return bool(scan.table) and plans.spelling.is_table(split(scan.table))
    except UsageError:
        return False


def _condition(plans: Planner, scan: Scan) -> str:
    """Return the filter of a reported scan in SQL.

    Raises:
        UnusableError: It cannot be read.
    """
    if scan.expression:
        try:
            return iceberg_json.condition(scan.expression, plans.columns)
        except iceberg_json.HiddenValueError as error:
            raise UnusableError(iceberg_json.HIDDEN) from error
        except (ValueError, KeyError) as error:
            raise UnusableError("a scan report without an expression") from error
    return join_conditions(
        [
            read(filters, plans.columns)
            for read, filters in (
                (spark_plans.partition, scan.partition),
                (spark_plans.convert_pushed_filters, scan.pushed),
                (spark_plans.convert_iceberg_filters, scan.described),
            )
            if filters
        ]
    )


def _usable(reads: Sequence[_Read], *, tops: bool) -> list[_Read]:
    """Return the filters for which a layout can spare files.

    A top counts if bounds tell which rows match: nobody knows how far other queries read.

    Raises:
        UnusableError: There are none; the reason is the one of the first filter.
    """
    found = [normalize(predicate) for predicate, _ in reads]
    asked = [top if tops and not causes(predicate) else None for predicate, top in reads]
    usable = [
        (each, top)
        for each, top in zip(found, asked, strict=True)
        if (restricts(each) or top is not None) and not matches_nothing(each)
    ]
    if usable:
        return usable
    if any(map(matches_nothing, found)):
        raise UnusableError(NO_ROWS)
    reasons = [cause for predicate in found for cause in causes(predicate)]
    raise UnusableError(f"{NO_BOUNDS}: {reasons[0]}" if reasons else NO_FILTER)


def _rank_reasons(unused: Mapping[str, int]) -> dict[str, int]:
    """Return reasons by descending number of entries; rare ones without their details."""
    ordered = sorted(unused.items(), key=lambda item: (-item[1], item[0]))
    kept: Counter[str] = Counter(dict(ordered[:_MOST_REASONS]))
    for reason, entries in ordered[_MOST_REASONS:]:
        kept[reason.partition(":")[0]] += entries
    return {reason: entries for reason, entries in kept.most_common() if entries}
