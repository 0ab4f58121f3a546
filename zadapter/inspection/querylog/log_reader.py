"""Reading a query log: which filters the queries of a log apply to a table."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from zadapter.base.names import split
from zadapter.errors import UsageError
from zadapter.inspection.dimension import JoinedFilter
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
from zadapter.inspection.querylog.joins import Joined, read_ranges
from zadapter.inspection.querylog.plans import (
    NO_ROWS,
    Planner,
    ScanRead,
    UnusableError,
    planner,
)
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
_Read = tuple[Predicate, Top | None, frozenset[JoinedFilter]]
"""The filter of a scan, which of the rows that match are asked for, and the joined filters."""


def read_log(
    queries: Queries, snapshot: Snapshot, rows: DataFrame, *, dynamic: bool = False
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
        dynamic: Whether filters count that readers find while they run: the order of a column of
            which a query asks for the first rows, and the keys of filtered tables that it joins.
            Those of an event log do not, since Spark skips no files by them.

    Raises:
        UsageError: The log has no known form, cannot be read or is empty.
    """
    with scratch(rows.sparkSession, expressions=True) as session:
        plans = planner(session, snapshot, rows, joins=dynamic)
        entries = read_entries(queries, session, plans.spelling.view)
        return _log(plans, entries, dynamic=dynamic)


@dataclass(slots=True)
class _Sum:
    """Entries with the same filter."""

    query: int
    """Number of the first of their queries."""
    entries: int = 0
    weights: list[float] = field(default_factory=lambda: [0.0] * SLICES)


def _log(plans: Planner, found: Grouped, *, dynamic: bool) -> QueryLog:
    """Plan the groups of a log, and join those with the same filter."""
    sums: dict[_Read, _Sum] = {}
    joined, first = list[Joined](), dict[object, int]()
    unused: Counter[str] = Counter()
    for number, group in enumerate(found.groups):
        try:
            reads, counts = _filters(plans, group), dynamic and not group.scans
            usable = _usable(reads, dynamic=counts)
        except UnusableError as error:
            unused[str(error)] += group.entries
            continue
        except RecursionError:
            unused[TOO_DEEP] += group.entries
            continue
        joined += [one for each in reads for one in each.joined] if counts else []
        for read, times in Counter(usable).items():
            query = first.setdefault(_without_limit(read), number)
            total = sums.setdefault(read, _Sum(query))
            total.entries += group.entries
            for at, weight in enumerate(group.weights):
                total.weights[at] += weight * times
    unused.update(found.unused)
    ranges = read_ranges(plans.session, joined)
    return QueryLog(
        filters=heaviest_first(
            LoggedFilter(
                predicate=predicate,
                sql=_text(predicate, top, filters),
                weights=tuple(total.weights),
                entries=total.entries,
                top=top,
                ranges=tuple(sorted((ranges[each] for each in filters), key=str)),
                query=total.query,
            )
            for (predicate, top, filters), total in sums.items()
        ),
        entries=sum(group.entries for group in found.groups) + sum(found.unused.values()),
        unused=_rank_reasons(unused),
        days=found.days,
        queries_a_weight=found.queries_a_weight,
    )


def _without_limit(read: _Read) -> object:
    """Return what is the same of a query with several limits."""
    predicate, top, joined = read
    return predicate, None if top is None else (top.column, top.descending), joined


def _text(predicate: Predicate, top: Top | None, joined: Collection[JoinedFilter]) -> str:
    is_shown = restricts(predicate) or (top is None and not joined)
    conditions = [*([text(predicate)] if is_shown else []), *sorted(map(str, joined))]
    return " ".join(filter(None, [" AND ".join(conditions), "" if top is None else str(top)]))


def _filters(plans: Planner, group: EntryGroup) -> list[ScanRead]:
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


def _usable(reads: Sequence[ScanRead], *, dynamic: bool) -> list[_Read]:
    """Return the filters for which a layout can spare files.

    A top counts if bounds tell which rows match: nobody knows how far other queries read.

    Raises:
        UnusableError: There are none; the reason is the one of the first filter.
    """
    found = [normalize(each.predicate) for each in reads]
    asked = [_find_dynamic(each) if dynamic else (None, frozenset[JoinedFilter]())
             for each in reads]  # fmt: skip
    usable = [
        (each, top, joined)
        for each, (top, joined) in zip(found, asked, strict=True)
        if (restricts(each) or top is not None or joined) and not matches_nothing(each)
    ]
    if usable:
        return usable
    if any(map(matches_nothing, found)):
        raise UnusableError(NO_ROWS)
    reasons = [cause for predicate in found for cause in causes(predicate)]
    raise UnusableError(f"{NO_BOUNDS}: {reasons[0]}" if reasons else NO_FILTER)


def _find_dynamic(read: ScanRead) -> tuple[Top | None, frozenset[JoinedFilter]]:
    top = None if causes(read.predicate) else read.top
    return top, frozenset(each.filter for each in read.joined)


def _rank_reasons(unused: Mapping[str, int]) -> dict[str, int]:
    """Return reasons by descending number of entries; rare ones without their details."""
    ordered = sorted(unused.items(), key=lambda item: (-item[1], item[0]))
    kept: Counter[str] = Counter(dict(ordered[:_MOST_REASONS]))
    for reason, entries in ordered[_MOST_REASONS:]:
        kept[reason.partition(":")[0]] += entries
    return {reason: entries for reason, entries in kept.most_common() if entries}
