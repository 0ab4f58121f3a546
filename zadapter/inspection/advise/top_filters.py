"""Queries for the first rows in a column's order, as ranges at one end of the column.

A reader that keeps the n-th best value of what it has read skips files and row groups that have
none beyond it. So it reads what holds the n best values of the rows that match.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.query_log import LoggedFilter, QueryLog, restricts
from zadapter.layout.filters import Box, Filter, Range
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import And, Comparison
from zadapter.predicates.predicate import columns as columns_of

UNBOUND = "a LIMIT of as many rows as match"
_AT_ONCE = 200
"""Number of filters whose matches among the sampled rows are found at once."""


def boxes_of(logged: LoggedFilter) -> tuple[Box, ...]:
    """Return boxes of a filter; a column whose range is not known yet has a whole range."""
    columns = [each.column for each in (logged.top, *logged.ranges) if each is not None]
    return tuple((*box, *map(Range, columns)) for box in boxes(logged.predicate))


def bound_tops(log: QueryLog, table: SampledTable) -> QueryLog:
    """Return the log with ranges instead of orders, by the values of sampled rows.

    An order by a column that is not sampled is left out, and so is one of rows that are filtered by
    such a column: how far the query reads is unknown. The same holds if too few rows match. What
    then has no condition is counted as unused.
    """
    tops = [each for each in log.filters if each.top is not None]
    bound = {
        each: found
        for at in range(0, len(tops), _AT_ONCE)
        for each, found in _bound(tops[at : at + _AT_ONCE], table)
    }
    unused, kept = Counter(log.unused), list[LoggedFilter]()
    for each in log.filters:
        found = bound.get(each, each)
        if each.top is not None and not restricts(found.predicate):
            unused[UNBOUND] += each.entries
        else:
            kept.append(found)
    return replace(log, filters=tuple(kept), unused=dict(unused.most_common()))


def _bound(
    tops: Sequence[LoggedFilter], table: SampledTable
) -> Iterator[tuple[LoggedFilter, LoggedFilter]]:
    matches = table.find_matches([Filter(boxes(each.predicate), 1.0) for each in tops])
    for each, rows in zip(tops, matches.T, strict=True):
        top = each.top
        found = replace(each, top=None)
        if top is not None and {top.column, *columns_of(each.predicate)} <= {*table.columns}:
            end = table.find_end(top.column, rows, top.rows, descending=top.descending)
            if end.is_valid:
                range_ = Comparison(top.column, ">=" if top.descending else "<=", end)
                found = replace(found, predicate=And((each.predicate, range_)))
        yield each, found
