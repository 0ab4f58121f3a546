"""Trees that are learned from filters: a column and a cut for every node.

A node is cut where the most rows are spared: rows of either side, times the weight of the filters
that miss it. Filters are compared with the hull of a side's rows, as engines compare them with a
file's bounds, so a cut of one column also counts for the columns that follow it. Candidates are the
ends of the filters' ranges, and the quartiles. Filters to come are like the given ones and not the
same, so a part of the weight counts as if their ranges lay anywhere in the column, and what filters
ask of each column counts a little by itself.

Columns with a weight above 1 are steady: on the way to each file, all levels but one in six cut
them in turn, as a layout without filters does, near the middle. So queries that no filter is like
read about as much as of such a layout. A column has turns in proportion to its weight less 1. The
filters choose the order and the place of these cuts.

Source: Z. Yang et al., Qd-tree: Learning Data Layouts for Big Data Analytics, SIGMOD 2020.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np

from zadapter.base.ranks import Ints, Ranked, narrow
from zadapter.layout.filters import Box, Filter, Floats, Mask, RankedFilters, rank_filters
from zadapter.layout.layout import Request
from zadapter.layout.levels import Level, Start, pattern
from zadapter.layout.split import Cut, divide_files

HALF, EVEN = 0.5, 0.75
"""Minimum rows of a file, and of a file among several that are cut later, in files' means."""
SIDE = 0.25
"""Minimum share of the rows on each side of a cut below a file."""
LIKE = 0.2
"""Weight of filters like the given ones, with the same ranges elsewhere in the column."""
ALONE = 0.2
"""Weight of the columns of a filter by themselves. Without it, filters of other combinations of
columns read 1.2 times what columns in turn let them read (python -m integration.bench.logs)."""
RESERVED = 5 / 6
"""Share of the levels above files that are reserved for steady columns."""
EVEN_SIDE = 0.4
"""Minimum share of the rows on each side of a cut in a layout with such columns, if there is such a
cut. A column that is cut at its edges counts as cut, and spares filters to come nothing."""
SPARE, DEEPEST = 2, 10
"""Levels beyond those of a balanced tree, and the maximum number of levels. The generated code of
more levels would exceed the JIT's limit; the columns are cut in turn below them."""
CANDIDATES = 40
"""Maximum number of ends of ranges that are tried in one column of a node."""
SEARCHED = 16_384
"""Maximum number of rows by which the cut of a node is chosen."""
FEWEST = 8
"""Minimum number of rows of a node that is cut."""
NO_VALUE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A node to cut.

    Attributes:
        ranks: Ranks of its rows, shape (rows, columns).
        filters: Filters that may match its rows.
        files: Number of its files.
        size: Its rows, as a multiple of a file's mean.
        below: Number of levels below its own one.
        reserved: How often each column is still to be cut above a file; None: the layout has no
            steady columns.
    """

    ranks: Ints
    filters: RankedFilters
    files: int
    size: float
    below: int
    reserved: Ints | None

    @property
    def owed(self) -> Ints:
        """Columns of which one is to be cut here; empty if the filters choose among all."""
        if self.reserved is None or self.reserved.sum() < np.ceil(np.log2(self.files)):
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.reserved)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A node's cut, and the rows that filters are spared by it."""

    spared: float
    column: int
    cut: int
    left_files: int


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """Cuts of one column of a node.

    Attributes:
        column: The column.
        cuts: The cuts, in ranks.
        rows: Number of rows on the left of each.
        left_files: Number of files on the left of each.
        by_chance: Rows that filters would be spared by each, if their ranges lay anywhere.
        hulls: Lowest and highest ranks of the rows on either side of each (:func:`_hulls`).
    """

    column: int
    cuts: Ints
    rows: Ints
    left_files: Ints
    by_chance: Floats
    hulls: Ints


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
    asked = _merge([*request.filters, *_alone(request.filters)])
    filters = rank_filters(asked, request.columns, [each.distinct for each in ranked])
    depth = int(np.ceil(np.log2(start.budget.max(initial=1))))
    depth = min(depth + SPARE if depth else 0, DEEPEST, room - len(start.levels))
    mean = np.bincount(start.node, minlength=len(start.budget)) / start.budget
    tree, alive = start, dict.fromkeys(range(len(start.budget)), filters)
    reserved = _reserve(request, start.budget)
    rows_of = _rows_of(tree)
    for level in range(depth):
        chosen = {}
        for at, rows in enumerate(rows_of):
            files, turns = int(tree.budget[at]), reserved.get(at)
            if at not in alive or len(rows) < FEWEST or (files == 1 and turns is not None):
                continue
            size = len(rows) / mean[at >> level]
            seen = ranks[rows[:: -(-len(rows) // SEARCHED)]]
            node = _Node(seen, alive[at], files, float(size), depth - level - 1, turns)
            choice = _find_best_cut(node)
            if choice is not None:
                chosen[at] = choice
        if not chosen:
            break
        tree = _append_level(tree, chosen, ranked, ranks)
        rows_of = _rows_of(tree)
        alive = _narrow_filters(alive, chosen, ranks, rows_of)
        reserved = _release(reserved, chosen)
    return tree


def steady_cuts(request: Request, tree: Start) -> list[int]:
    """Return how often steady columns are cut in a tree, beyond the one that is cut least.

    The levels below give the others their turns first. Empty if the request has no such columns.
    """
    steady = [at for at, weight in enumerate(request.weights) if weight > 1]
    if not steady:
        return []
    cuts = np.zeros(len(request.columns))
    for depth, level in enumerate(tree.levels):
        node = tree.node >> (len(tree.levels) - depth)
        for each in level.by_column:
            cut = each.cuts.is_valid().to_numpy(zero_copy_only=False)
            cuts[each.column] += cut[node].mean()
    ahead = np.maximum(np.rint(cuts - cuts[steady].min()), 0).astype(np.int64)
    return [count if at in steady else 0 for at, count in enumerate(ahead.tolist())]


def _reserve(request: Request, budget: Ints) -> dict[int, Ints]:
    """Return how often each column is to be cut on the way from each root to a file, by root.

    Empty if the request has no steady columns.
    """
    steady = np.maximum(np.array(request.weights) - 1, 0)
    if not steady.any():
        return {}
    levels = np.rint(np.ceil(np.log2(np.maximum(budget, 1))) * RESERVED).astype(np.int64)
    turns = np.array([*islice(pattern(steady.tolist()), int(levels.max(initial=0)))], np.int64)
    return {
        at: np.bincount(turns[:count], minlength=len(steady)) for at, count in enumerate(levels)
    }


def _release(reserved: Mapping[int, Ints], chosen: Mapping[int, _Choice]) -> dict[int, Ints]:
    """Return what is left of the reserved cuts in the nodes of the next level."""
    found = {}
    for at, turns in reserved.items():
        left = turns.copy()
        if at in chosen:
            left[chosen[at].column] = max(0, left[chosen[at].column] - 1)
        found[2 * at] = found[2 * at + 1] = left
    return found


def _alone(filters: Sequence[Filter]) -> Iterator[Filter]:
    """Yield what filters of several columns ask of each of them."""
    for each in filters:
        columns = sorted(each.columns)
        for column in columns if len(columns) > 1 else ():
            alone = each.only((column,))
            if alone is not None:
                yield replace(alone, weight=each.weight * ALONE / len(columns))


def _merge(filters: Iterable[Filter]) -> list[Filter]:
    """Return each of the filters once, with the weight of all that are equal."""
    weights: dict[tuple[Box, ...], float] = {}
    for each in filters:
        weights[each.boxes] = weights.get(each.boxes, 0.0) + each.weight
    return [Filter(boxes, weight) for boxes, weight in weights.items()]


def _append_level(
    tree: Start, chosen: Mapping[int, _Choice], ranked: Sequence[Ranked], ranks: Ints
) -> Start:
    cuts, column, left_files = np.zeros((3, len(tree.budget)), np.int64)
    left_files[:] = tree.budget
    for at, choice in chosen.items():
        cuts[at], column[at], left_files[at] = choice.cut, choice.column, choice.left_files
    used = sorted({choice.column for choice in chosen.values()})
    level = Level.of(Level(at, ranked[at].value_of(np.where(column == at, cuts, 0))) for at in used)
    value = ranks[np.arange(len(tree.node)), column[tree.node]]
    right = (value >= cuts[tree.node]) & (cuts[tree.node] > 0)
    budget, first = divide_files(Cut(cuts, left_files, 1.0), tree.budget, tree.first)
    levels = (*tree.levels, level)
    return Start(levels=levels, node=tree.node * 2 + right, budget=budget, first=first)


def _sort(values: Ints) -> Ints:
    """Return the stable order of numbers from 0."""
    return np.argsort(narrow(values), kind="stable")


def _rows_of(tree: Start) -> list[Ints]:
    """Return the rows of each node."""
    order = _sort(tree.node)
    bounds = np.searchsorted(tree.node[order], np.arange(1, len(tree.budget)))
    return list(np.split(order, bounds))


def _narrow_filters(
    alive: Mapping[int, RankedFilters],
    chosen: Mapping[int, _Choice],
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


def _find_best_cut(node: _Node) -> _Choice | None:
    """Return the cut of a node that spares filters the most rows.

    None: no cut spares any, and none is reserved.
    """
    steady = _best_of_columns(node, node.owed)
    found = steady or _best_of_columns(node, np.unique(node.filters.column))
    return found if found is not None and (steady or found.spared > 0) else None


def _best_of_columns(node: _Node, columns: Ints) -> _Choice | None:
    found = [each for column in columns.tolist() if (each := _try_cuts(node, column)) is not None]
    if not found:
        return None
    # all columns at once, since a call of NumPy takes longer than what it computes
    missed = _weigh_misses(node.filters, [each.hulls for each in found])
    ends = np.cumsum([len(each.cuts) for each in found])[:-1]
    chosen = map(partial(_choose, node), found, np.split(missed, ends, axis=1))
    return max(chosen, key=lambda choice: choice.spared)


def _try_cuts(node: _Node, column: int) -> _Tried | None:
    """Return the possible cuts of a column, or None if there are none."""
    ordered = node.ranks[_sort(node.ranks[:, column])]
    cuts = _candidates(ordered[:, column], node.filters, column)
    rows = np.searchsorted(ordered[:, column], cuts)
    share = rows / len(ordered)
    left_files, fits = _left_files(node, share)
    even = fits & (np.minimum(share, 1 - share) >= EVEN_SIDE)
    fits = even if node.reserved is not None and even.any() else fits
    cuts, rows, left_files = cuts[fits], rows[fits], left_files[fits]
    if len(cuts) == 0:
        return None
    by_chance = _expect_by_chance(ordered[:, column], node.filters, column, rows)
    return _Tried(column, cuts, rows, left_files, by_chance, _hulls(ordered, rows))


def _choose(node: _Node, tried: _Tried, missed: Floats) -> _Choice:
    """Choose the best cut of a column.

    Args:
        node: The node.
        tried: The cuts.
        missed: Weight of the filters that miss the left and the right side of each.
    """
    spared = tried.rows * missed[0] + (len(node.ranks) - tried.rows) * missed[1]
    spared = (1 - LIKE) * spared + LIKE * tried.by_chance
    best = int(np.argmax(spared))
    cut, left_files = int(tried.cuts[best]), int(tried.left_files[best])
    return _Choice(float(spared[best]), tried.column, cut, left_files)


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


def _left_files(node: _Node, share: Floats) -> tuple[Ints, Mask]:
    """Return the files on the left of each cut, and whether the cut is possible.

    Args:
        node: The node.
        share: Share of its rows on the left of each cut.
    """
    if node.files <= 1:
        fits = np.minimum(share, 1 - share) >= SIDE
        return np.full(len(share), node.files, np.int64), np.asarray(fits)
    near = np.clip(np.rint(node.files * share), 1, node.files - 1).astype(np.int64)
    sides = ((near, node.size * share), (node.files - near, node.size * (1 - share)))
    fits = np.maximum(near, node.files - near) <= 1 << node.below
    for files, size in sides:
        fits &= size >= files * np.where(files == 1, HALF, EVEN)
    return near, fits


def _expect_by_chance(values: Ints, filters: RankedFilters, column: int, rows: Ints) -> Floats:
    """Return the rows that filters would be spared if their ranges lay anywhere in the column.

    A range without width misses the left side as often as it lies on the right one.
    """
    mine = filters.column == column
    first = np.searchsorted(values, filters.low[mine])
    last = np.searchsorted(values, filters.high[mine], side="right")
    inside = np.bincount(filters.filter[mine], (last - first) / len(values), len(filters.weight))
    asks = np.bincount(filters.filter[mine], minlength=len(filters.weight)) > 0
    outside = float(filters.weight[asks] @ np.clip(1 - inside[asks], 0, 1))
    share = rows / len(values)
    return np.asarray(outside * 2 * share * (1 - share) * len(values), np.float64)


def _hulls(ordered: Ints, rows: Ints) -> Ints:
    """Return the lowest and the highest ranks of the first *rows* rows, and of the others.

    Returns:
        Shape (2 ends, 2 sides, cuts, columns).
    """
    starts = np.concatenate(([0], rows))
    low = np.minimum.reduceat(np.where(ordered == 0, NO_VALUE, ordered), starts, axis=0)
    high = np.maximum.reduceat(ordered, starts, axis=0)
    return np.array([
        [np.minimum.accumulate(low)[:-1], np.minimum.accumulate(low[::-1])[::-1][1:]],
        [np.maximum.accumulate(high)[:-1], np.maximum.accumulate(high[::-1])[::-1][1:]],
    ])  # fmt: skip


def _weigh_misses(filters: RankedFilters, hulls: Sequence[Ints]) -> Floats:
    """Return the weight of the filters that miss each side of cuts, shape (2 sides, cuts)."""
    low, high = np.concatenate(hulls, axis=2)
    columns = low.shape[-1]
    hit = filters.hits(low.reshape(-1, columns), high.reshape(-1, columns))
    weight = np.where(np.bincount(filters.filter, minlength=len(filters.weight)), filters.weight, 0)
    return np.asarray((~hit @ weight).reshape(low.shape[:2]), np.float64)
