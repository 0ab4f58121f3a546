"""Layouts that are tried for the filters of a log."""

from collections.abc import Mapping, Sequence

from zadapter.base.names import Parts, join
from zadapter.inspection.query_log import LoggedFilter
from zadapter.layout.filters import Filter, Keys
from zadapter.predicates.boxes import boxes

MOST_COLUMNS = 8
"""Maximum number of columns of a layout that is learned from filters."""
IN_TURN = 4
"""Maximum number of columns of a layout that cuts them in turn."""
MOST_FILTERS = 400
"""Maximum number of filters that a layout is fitted to, and stored with."""
LEAST_WEIGHT = 0.05
"""Minimum weight of a column of a learned layout, relative to the most filtered one."""


def in_boxes(logged: Sequence[LoggedFilter]) -> list[Filter]:
    """Return the filters as boxes."""
    return [Filter(boxes(each.predicate), each.weight) for each in logged]


def filtered(filters: Sequence[Filter], usable: Sequence[Parts]) -> dict[Parts, float]:
    """Return how much weight filters each of the usable columns, most first."""
    found = dict.fromkeys(usable, 0.0)
    for each in filters:
        for column in each.columns & found.keys():
            found[column] += each.weight
    heaviest = sorted(found.items(), key=lambda item: -item[1])
    return {column: weight for column, weight in heaviest if weight > 0}


def learned(filters: Sequence[Filter], weights: Mapping[Parts, float]) -> Keys | None:
    """Return the layout that is fitted to filters; None: they use no column."""
    columns = dict(list(weights.items())[:MOST_COLUMNS])
    if not columns:
        return None
    heaviest = sorted(filters, key=lambda each: -each.weight)
    useful = [kept for each in heaviest if (kept := each.only(columns)) is not None]
    top = max(columns.values())
    return Keys(
        {join(c): round(max(weight / top, LEAST_WEIGHT), 3) for c, weight in columns.items()},
        tuple(useful[:MOST_FILTERS]),
    )


def in_turn(weights: Mapping[Parts, float]) -> list[Keys]:
    """Return layouts that cut the most filtered columns in turn: one column, two, and so on."""
    names = [join(column) for column in weights][:IN_TURN]
    return [Keys(dict.fromkeys(names[: n + 1], 1.0)) for n in range(len(names))]
