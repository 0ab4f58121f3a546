"""Trees that are learned from filters: a column and a cut for every node.

A node is cut where the most rows are spared: rows of either side, times the weight of the filters
that miss it. Filters are compared with the hull of a side's rows, as engines compare them with a
file's bounds, so a cut of one column also counts for the columns that follow it. Candidates are the
ends of the filters' ranges, and the quartiles.

Source: Z. Yang et al., Qd-tree: Learning Data Layouts for Big Data Analytics, SIGMOD 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zadapter.base.ranks import Ints, Ranked
from zadapter.layout.filters import Floats, Mask, RankedFilters, rank_filters
from zadapter.layout.layout import Request
from zadapter.layout.levels import Level, Start
from zadapter.layout.split import Cut, children

HALF = 0.5
"""Minimum rows of a file, as a share of the mean."""
SIDE = 0.25
"""Minimum share of the rows on each side of a cut below a file."""
SPARE = 2
"""Levels beyond those of a balanced tree."""
CANDIDATES = 40
"""Maximum number of ends of ranges that are tried in one column of a node."""
SEARCHED = 16_384
"""Maximum number of rows by which the cut of a node is chosen."""
FEWEST = 8
"""Minimum number of rows of a node that is cut."""
NO_VALUE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Choice:
    """A node's cut, and the rows that filters are spared by it."""

    spared: float
    column: int
    cut: int
    left_files: int


def learn(request: Request, ranked: Sequence[Ranked], start: Start, room: int) -> Start:
    """Append levels to the start of a tree until each node is one file.

    Nodes whose filters are spared nothing by any cut are left whole.

    Args:
        request: The request, with filters.
        ranked: The sampled values of each column.
        start: Levels that the tree begins with.
        room: Maximum number of levels.
    """
    ranks = np.stack([column.ranks for column in ranked], axis=1)
    filters = rank_filters(request.filters, request.columns, [each.distinct for each in ranked])
    depth = int(np.ceil(np.log2(start.budget.max(initial=1))))
    depth = min(depth + SPARE if depth else 0, room - len(start.levels))
    levels, node, budget, first = list(start.levels), start.node, start.budget, start.first
    alive = dict.fromkeys(range(len(budget)), filters)
    for left in range(depth - 1, -1, -1):
        rows_of = _rows_of(node, len(budget))
        chosen = {
            at: choice
            for at, rows in enumerate(rows_of)
            if at in alive and len(rows) >= FEWEST
            if (choice := _best(ranks[_thinned(rows)], alive[at], int(budget[at]), left))
        }
        if not chosen:
            break
        level_cut, column = _cuts_of(chosen, budget)
        levels.append(_level(ranked, level_cut.cuts, column))
        right = (ranks[np.arange(len(node)), column[node]] >= level_cut.cuts[node]) & (
            level_cut.cuts[node] > 0
        )
        node = node * 2 + right
        budget, first = children(level_cut, budget, first)
        alive = _narrowed(alive, chosen, ranks, _rows_of(node, len(budget)))
    return Start(levels=tuple(levels), node=node, budget=budget, first=first)


def _rows_of(node: Ints, nodes: int) -> list[Ints]:
    """Return the rows of each node."""
    order = np.argsort(node, kind="stable")
    return np.split(order, np.searchsorted(node[order], np.arange(1, nodes)))


def _thinned(rows: Ints) -> Ints:
    return rows[:: -(-len(rows) // SEARCHED)]


def _cuts_of(chosen: dict[int, _Choice], budget: Ints) -> tuple[Cut, Ints]:
    """Return the cuts of all nodes of a level, and the column of each node."""
    cuts, column, left_files = np.zeros_like(budget), np.zeros_like(budget), budget.copy()
    for at, choice in chosen.items():
        cuts[at], column[at], left_files[at] = choice.cut, choice.column, choice.left_files
    return Cut(cuts, left_files, 1.0), column


def _level(ranked: Sequence[Ranked], cuts: Ints, column: Ints) -> Level:
    used = np.unique(column[cuts > 0]).tolist()
    first, *others = (
        Level(at, ranked[at].value_of(np.where(column == at, cuts, 0))) for at in used
    )
    return Level(first.column, first.cuts, tuple(others))


def _narrowed(
    alive: dict[int, RankedFilters],
    chosen: dict[int, _Choice],
    ranks: Ints,
    rows_of: Sequence[Ints],
) -> dict[int, RankedFilters]:
    """Return the filters that may match rows of each node of the next level."""
    found = {}
    for at, filters in alive.items():
        for child in (2 * at, 2 * at + 1):
            if len(rows_of[child]) == 0:
                continue
            if at not in chosen:
                found[child] = filters
                continue
            low, high = _hull(ranks[rows_of[child]])
            found[child] = filters.only(filters.hits(low[None], high[None])[0])
    return found


def _hull(ranks: Ints) -> tuple[Ints, Ints]:
    """Return the lowest and the highest rank in each column; nulls widen no hull."""
    return np.where(ranks == 0, NO_VALUE, ranks).min(axis=0), ranks.max(axis=0)


def _best(ranks: Ints, filters: RankedFilters, files: int, left: int) -> _Choice | None:
    """Return the cut of a node that spares filters the most rows, or None if none spares any.

    Args:
        ranks: Ranks of the node's rows, shape (rows, columns).
        filters: Filters that may match its rows.
        files: Number of its files.
        left: Number of levels below the node's own one.
    """
    tried = [
        _best_of_column(ranks, filters, int(column), files, left)
        for column in np.unique(filters.column)
    ]
    found = [choice for choice in tried if choice is not None and choice.spared > 0]
    return max(found, key=lambda choice: choice.spared) if found else None


def _best_of_column(
    ranks: Ints, filters: RankedFilters, column: int, files: int, left: int
) -> _Choice | None:
    ordered = ranks[np.argsort(ranks[:, column], kind="stable")]
    cuts = _candidates(ordered[:, column], filters, column)
    rows = np.searchsorted(ordered[:, column], cuts)
    left_files, fits = _left_files(rows / len(ordered), files, left)
    cuts, rows, left_files = cuts[fits], rows[fits], left_files[fits]
    if len(cuts) == 0:
        return None
    missed_left, missed_right = _missed(ordered, filters, rows)
    spared = rows * missed_left + (len(ordered) - rows) * missed_right
    best = int(np.argmax(spared))
    return _Choice(float(spared[best]), column, int(cuts[best]), int(left_files[best]))


def _candidates(values: Ints, filters: RankedFilters, column: int) -> Ints:
    """Return the cuts to try: ends of ranges, and borders of the values at the quartiles."""
    mine = filters.column == column
    ends = np.unique(np.concatenate([filters.low[mine], filters.high[mine] + 1]))
    ends = ends[(ends > max(values[0], 0)) & (ends <= values[-1])]
    if len(ends) > CANDIDATES:
        ends = ends[np.linspace(0, len(ends) - 1, CANDIDATES).astype(np.int64)]
    quartiles = values[len(values) * np.arange(1, 4) // 4]
    cuts = np.unique(np.concatenate([ends, quartiles, quartiles + 1]))
    return np.asarray(cuts[(cuts > max(values[0], 0)) & (cuts <= values[-1])], np.int64)


def _left_files(share: Floats, files: int, left: int) -> tuple[Ints, Mask]:
    """Return the files on the left of each cut, and whether the cut is possible."""
    if files <= 1:
        fits = np.minimum(share, 1 - share) >= SIDE
        return np.full(len(share), files, np.int64), fits
    exact = files * share
    near = np.clip(np.rint(exact), 1, files - 1).astype(np.int64)
    larger = np.maximum(near, files - near)
    return near, (np.minimum(exact, files - exact) >= HALF) & (larger <= 1 << left)


def _missed(ordered: Ints, filters: RankedFilters, rows: Ints) -> tuple[Floats, Floats]:
    """Return the weight of the filters that miss the first *rows* rows, and the others."""
    starts = np.concatenate(([0], rows))
    low = np.minimum.reduceat(np.where(ordered == 0, NO_VALUE, ordered), starts, axis=0)
    high = np.maximum.reduceat(ordered, starts, axis=0)
    sides = (
        (np.minimum.accumulate(low)[:-1], np.maximum.accumulate(high)[:-1]),
        (np.minimum.accumulate(low[::-1])[::-1][1:], np.maximum.accumulate(high[::-1])[::-1][1:]),
    )
    weight = np.where(np.bincount(filters.filter, minlength=len(filters.weight)), filters.weight, 0)
    before, behind = (~filters.hits(*side) @ weight for side in sides)
    return before, behind
