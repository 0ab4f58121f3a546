"""What the layout of a table has cost the queries of a log, beside one that is learned from them.

Both are compared as if the rows had just been clustered, so what files have lost by appends does
not count: the upkeep of runs takes care of that. No query judges a layout that was fitted to it.
The queries of each template are dealt to two hands, and each hand reads the layout that is fitted
to the other one. So a query that is asked a million times, or with twenty limits, does not make a
layout of its own look good.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from zadapter.base.ranks import Ints
from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.advise.new_queries import Template, template_of
from zadapter.inspection.query_log import HOLDOUT, find_cut
from zadapter.layout.filters import Filter, Floats, Keys
from zadapter.planning.relearning import accumulate

Fit = Callable[[Sequence[Filter]], Keys | None]
"""Returns the layout that is fitted to filters; None: they use no column."""


@dataclass(frozen=True, slots=True)
class Hand:
    """Some of the filters of a log.

    Attributes:
        asked: Their numbers.
        others: The other filters, as far as the newer part of the log has them.
    """

    asked: Ints
    others: tuple[Filter, ...]


def regret(
    table: SampledTable,
    present: Keys,
    filters: Sequence[Filter],
    weights: Floats,
    queries: Ints,
    fit: Fit,
) -> float:
    """Return the regret of the present layout, in reads of the whole table.

    Args:
        table: The table.
        present: The layout that it has.
        filters: The filters of a log.
        weights: How often queries apply each in each part of the log, shape (filters, parts), the
            oldest part first.
        queries: Which query of the log each is of, as :func:`number_queries` numbers them.
        fit: How the contender is fitted.
    """
    contender = np.ones(len(filters))
    for hand in deal(weigh_newer(filters, weights), queries):
        keys = fit([each for each in hand.others if each.weight > 0])
        if keys is not None:
            contender[hand.asked] = _read(table, keys, [filters[at] for at in hand.asked.tolist()])
    return accumulate(_read(table, present, filters) @ weights, contender @ weights)


def weigh_newer(filters: Sequence[Filter], weights: Floats) -> list[Filter]:
    """Return the filters with their weights in the newer part of a log, which may be 0."""
    begin = find_cut(weights.sum(axis=0).tolist(), HOLDOUT) or 0
    late = weights[:, begin:].sum(axis=1).tolist()
    return [replace(each, weight=weight) for each, weight in zip(filters, late, strict=True)]


def number_queries(filters: Sequence[Filter], queries: Sequence[int | None]) -> Ints:
    """Return numbers of queries: filters of one query, and equal filters, have the same.

    Args:
        filters: The filters.
        queries: The query of each in its log; None: it is of none but its own.
    """
    first: dict[object, int] = {}
    same_as = list(range(len(filters)))

    def find(at: int) -> int:
        while same_as[at] != at:
            at = same_as[at]
        return at

    for at, (each, query) in enumerate(zip(filters, queries, strict=True)):
        for known in (each.boxes, *(() if query is None else (query,))):
            same_as[find(at)] = find(first.setdefault(known, at))
    return np.array([find(at) for at in same_as], np.int64)


def deal(filters: Sequence[Filter], queries: Ints) -> tuple[Hand, Hand]:
    """Deal the queries of each template to two hands in turn, with all of their filters.

    Args:
        filters: The filters.
        queries: The number of the query of each.
    """
    dealt: dict[Template, dict[int, int]] = {}
    side = np.zeros(len(filters), np.int64)
    for at, (each, query) in enumerate(zip(filters, queries.tolist(), strict=True)):
        places = dealt.setdefault(template_of(each), {})
        side[at] = places.setdefault(query, len(places)) % 2
    of_side = [np.flatnonzero(side == number) for number in (0, 1)]
    first, second = (tuple(filters[at] for at in each.tolist()) for each in of_side)
    return Hand(of_side[0], second), Hand(of_side[1], first)


def _read(table: SampledTable, keys: Keys, filters: Sequence[Filter]) -> Floats:
    """Return the share of the rows in row groups that each filter reads of a layout."""
    _, row_groups = table.divide_rows(keys)
    return row_groups.shares(filters)
