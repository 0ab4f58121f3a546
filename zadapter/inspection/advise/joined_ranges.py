"""Joins with filtered tables, as ranges of the keys that they leave."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from zadapter.base.names import NameParts, join
from zadapter.inspection.advice import JoinEffect
from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.query_log import (
    KeyRange,
    LoggedFilter,
    QueryLog,
    heaviest_first,
    restricts,
)
from zadapter.layout.filters import Filter
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import And, Comparison, Predicate

WIDE = 0.8
"""Share of the table's rows from which on a range of keys does not count."""
KEPT_OUT = "a join that spares no rows"
UNREAD = "a join whose keys are not known"
_AT_ONCE = 200
"""Number of ranges whose sampled rows are found at once."""


def predicates_of(found: KeyRange) -> tuple[Predicate, ...]:
    """Return the conditions on the key; none: the range is unknown."""
    if found.low is None or found.high is None or not found.low.is_valid:
        return ()
    return (Comparison(found.column, ">=", found.low), Comparison(found.column, "<=", found.high))


def bound_joins(log: QueryLog, table: SampledTable) -> tuple[QueryLog, tuple[JoinEffect, ...]]:
    """Return the log with ranges of keys as conditions, and what joins do for its queries.

    Ranges that most rows lie in, and unknown ones, are left out. Filters without another condition
    are then left out, too, and counted as unused.

    Args:
        log: The log.
        table: The table, with the columns of the ranges that can be keys.
    """
    ranges = list(dict.fromkeys(each for logged in log.filters for each in logged.ranges))
    shares = dict(zip(ranges, _find_shares(ranges, table), strict=True))
    unused, kept = Counter(log.unused), dict[object, LoggedFilter]()
    for logged in log.filters:
        narrow = [each for each in logged.ranges if shares[each] < WIDE]
        predicate = And((logged.predicate, *(p for each in narrow for p in predicates_of(each))))
        found = replace(logged, predicate=predicate if narrow else logged.predicate, ranges=())
        if logged.ranges and not narrow and not restricts(logged.predicate):
            columns = ", ".join(sorted({join(each.column) for each in logged.ranges}))
            reason = UNREAD if any(each.unread for each in logged.ranges) else KEPT_OUT
            unused[f"{reason}: {columns}"] += logged.entries
        else:
            key = (found.predicate, found.top)
            kept[key] = _add(kept[key], found) if key in kept else found
    effects = _effects(log.filters, shares)
    bound = replace(log, filters=heaviest_first(kept.values()), unused=dict(unused.most_common()))
    return (bound if ranges else log), effects


def _add(first: LoggedFilter, second: LoggedFilter) -> LoggedFilter:
    weights = tuple(a + b for a, b in zip(first.weights, second.weights, strict=True))
    return replace(first, weights=weights, entries=first.entries + second.entries)


def _find_shares(ranges: Sequence[KeyRange], table: SampledTable) -> list[float]:
    """Return the share of the sampled rows in each range; 1 if it is unknown."""
    found: list[float] = []
    for at in range(0, len(ranges), _AT_ONCE):
        conditions = [And(predicates_of(each)) for each in ranges[at : at + _AT_ONCE]]
        rows = table.find_matches([Filter(boxes(each), 1.0) for each in conditions])
        found += rows.mean(axis=0).tolist()
    return found


@dataclass(slots=True)
class _Sum:
    """Queries that filter a column through the same columns of a table."""

    entries: int = 0
    counted: int = 0
    read: bool = False
    unread: str = ""
    weights: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    matching: list[float] = field(default_factory=list)


def _effects(
    filters: Iterable[LoggedFilter], shares: dict[KeyRange, float]
) -> tuple[JoinEffect, ...]:
    sums: dict[tuple[NameParts, str], _Sum] = {}
    for logged in filters:
        for each in logged.ranges:
            total = sums.setdefault((each.column, each.through), _Sum())
            total.entries += logged.entries
            total.counted += logged.entries if shares[each] < WIDE else 0
            total.read |= each.low is not None
            total.unread = total.unread or each.unread
            total.weights.append(logged.weight)
            total.shares.append(shares[each])
            total.matching.append(each.matching)
    found = [
        JoinEffect(
            column=join(column),
            through=through,
            queries=total.entries,
            counted=total.counted,
            matching=float(np.average(total.matching, weights=total.weights)),
            share=float(np.average(total.shares, weights=total.weights)) if total.read else None,
            unread=total.unread,
        )
        for (column, through), total in sums.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.queries, each.column, each.through)))
