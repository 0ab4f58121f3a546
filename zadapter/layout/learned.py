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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zadapter.base.ranks import Ints, Ranked, argsort
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
Ranks = npt.NDArray[np.unsignedinteger[Any]]
"""Ranks of rows, shape (columns, rows). They are without a sign, so that 0 less 1 is above all."""


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A node to cut.

    Attributes:
        ranks: Ranks of its rows.
        filters: Filters that may match its rows.
        files: Number of its files.
        size: Its rows, as a multiple of a file's mean.
        below: Number of levels below its own one.
        reserved: How often each column is still to be cut above a file; None: the layout has no
            steady columns.
    """

    ranks: Ranks
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


@dataclass(frozen=True, eq=False)
class _Sorted:
    """Rows of a node in the order of each of some columns.

    Attributes:
        columns: The columns, ascending.
        rows: Numbers of the rows, shape (columns, rows).
        ranks: Ranks in the column, same shape.
    """

    columns: Ints
    rows: Ints
    ranks: Ranks

    @cached_property
    def span(self) -> int:
        """A number above all ranks, and above the one that follows them."""
        return int(self.ranks[:, -1].max()) + 2

    @cached_property
    def _joined(self) -> Ints:
        """Ranks of all columns in one ascending array."""
        return self.join(np.arange(len(self.columns))[:, None], self.ranks).ravel()

    def join(self, at: Ints, ranks: Ints | Ranks) -> Ints:
        """Return ranks of the columns at some places as numbers that are ascending by column."""
        return np.asarray(at * self.span + np.minimum(ranks, self.span - 1), np.int64)

    def find(self, joined: Ints, side: Literal["left", "right"] = "left") -> Ints:
        """Return how many rows of the same column are below (:func:`numpy.searchsorted`)."""
        at = joined // self.span
        found = np.searchsorted(self._joined, joined, side=side)
        return np.asarray(found - at * self.ranks.shape[1])

    def divided(self, joined: Ints) -> Ints:
        """Return those of ascending cuts that divide the rows of their columns, each once."""
        at, cuts = np.divmod(joined, self.span)
        divides = (cuts > np.maximum(self.ranks[at, 0], 0)) & (cuts <= self.ranks[at, -1])
        return np.asarray(joined[divides & np.append(True, np.diff(joined) > 0)])


@dataclass(frozen=True, slots=True, eq=False)
class _Tried:
    """Possible cuts of some columns of a node, in the order of the columns.

    Attributes:
        at: Place of each cut's column among those of the node.
        cuts: The cuts, in ranks.
        rows: Number of rows on the left of each.
        left_files: Number of files on the left of each.
    """

    at: Ints
    cuts: Ints
    rows: Ints
    left_files: Ints


def learn(request: Request, ranked: Sequence[Ranked], start: Start, room: int) -> Start:
    """Append levels to the start of a tree until each node is one file.

    Nodes whose filters are spared nothing by any cut are left whole.

    Args:
        request: The request, with filters.
        ranked: The sampled values of each column.
        start: Levels that the tree begins with.
        room: Maximum number of levels.
    """
    ranks = _without_sign(np.stack([column.ranks for column in ranked]))
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
            seen = ranks[:, rows[:: -(-len(rows) // SEARCHED)]]
            node = _Node(seen, alive[at], files, float(size), depth - level - 1, turns)
            choice = _find_best_cut(node)
            if choice is not None:
                chosen[at] = choice
        if not chosen:
            break
        tree = _append_level(tree, chosen, ranked, ranks)
        rows_of = _rows_of(tree)
        alive = _narrow_filters(filters, alive, chosen, ranks, rows_of)
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
    tree: Start, chosen: Mapping[int, _Choice], ranked: Sequence[Ranked], ranks: Ranks
) -> Start:
    cuts, column, left_files = np.zeros((3, len(tree.budget)), np.int64)
    left_files[:] = tree.budget
    for at, choice in chosen.items():
        cuts[at], column[at], left_files[at] = choice.cut, choice.column, choice.left_files
    used = sorted({choice.column for choice in chosen.values()})
    level = Level.of(Level(at, ranked[at].value_of(np.where(column == at, cuts, 0))) for at in used)
    value = ranks[column[tree.node], np.arange(len(tree.node))]
    right = (value >= cuts[tree.node]) & (cuts[tree.node] > 0)
    budget, first = divide_files(Cut(cuts, left_files, 1.0), tree.budget, tree.first)
    levels = (*tree.levels, level)
    return Start(levels=levels, node=tree.node * 2 + right, budget=budget, first=first)


def _rows_of(tree: Start) -> list[Ints]:
    """Return the rows of each node."""
    order = argsort(tree.node)
    bounds = np.searchsorted(tree.node[order], np.arange(1, len(tree.budget)))
    return list(np.split(order, bounds))


def _narrow_filters(
    filters: RankedFilters,
    alive: Mapping[int, RankedFilters],
    chosen: Collection[int],
    ranks: Ranks,
    rows_of: Sequence[Ints],
) -> dict[int, RankedFilters]:
    """Return the filters that may match rows of each node of the next level.

    Args:
        filters: All filters.
        alive: Those of each node.
        chosen: The nodes that are cut.
        ranks: Ranks of all rows.
        rows_of: Rows of each node of the next level.
    """
    children = [child for at in alive for child in (2 * at, 2 * at + 1) if len(rows_of[child])]
    halves = [child for child in children if child // 2 in chosen]
    low, high = np.stack([_hull(ranks[:, rows_of[child]]) for child in halves], axis=1)
    hits = dict(zip(halves, filters.hits(low, high), strict=True))
    return {
        child: filters.only(hits[child]) if child in hits else alive[child // 2]
        for child in children
    }


def _hull(ranks: Ranks) -> Ints:
    """Return the lowest and the highest rank in each column; nulls widen no hull."""
    return np.array([1 + (ranks - 1).min(axis=1).astype(np.int64), ranks.max(axis=1)])


def _find_best_cut(node: _Node) -> _Choice | None:
    """Return the cut of a node that spares filters the most rows.

    None: no cut spares any, and none is reserved.
    """
    steady = _best_of_columns(node, node.owed)
    found = steady or _best_of_columns(node, np.unique(node.filters.column))
    return found if found is not None and (steady or found.spared > 0) else None


def _best_of_columns(node: _Node, columns: Ints) -> _Choice | None:
    """Return the best cut of some columns, or None if there is none.

    All columns at once, since a call of NumPy takes longer than what it computes.
    """
    if len(columns) == 0:
        return None
    ranked = _sort_columns(node.ranks, columns)
    tried = _try_cuts(node, ranked)
    if len(tried.cuts) == 0:
        return None
    missed = _weigh_misses(node.filters, _hulls(node.ranks, ranked, tried))
    spared = tried.rows * missed[0] + (node.ranks.shape[1] - tried.rows) * missed[1]
    spared = (1 - LIKE) * spared + LIKE * _expect_by_chance(node.filters, ranked, tried)
    best = int(np.argmax(spared))
    return _Choice(
        spared=float(spared[best]),
        column=int(columns[tried.at[best]]),
        cut=int(tried.cuts[best]),
        left_files=int(tried.left_files[best]),
    )


def _without_sign(ranks: Ints) -> Ranks:
    return ranks.astype(np.uint16 if ranks.max(initial=0) < np.iinfo(np.uint16).max else np.uint32)


def _sort_columns(ranks: Ranks, columns: Ints) -> _Sorted:
    some = ranks[columns]
    rows = argsort(some)
    return _Sorted(columns, rows, np.take_along_axis(some, rows, axis=1))


def _try_cuts(node: _Node, ranked: _Sorted) -> _Tried:
    """Return the possible cuts of some columns."""
    joined = _candidates(node.filters, ranked)
    at, cuts = np.divmod(joined, ranked.span)
    rows = ranked.find(joined)
    share = rows / node.ranks.shape[1]
    left_files, fits = _left_files(node, share)
    if node.reserved is not None:
        even = fits & (np.minimum(share, 1 - share) >= EVEN_SIDE)
        fits = np.where(np.bincount(at[even], minlength=len(ranked.columns))[at] > 0, even, fits)
    return _Tried(at[fits], cuts[fits], rows[fits], left_files[fits])


def _ranges(filters: RankedFilters, ranked: _Sorted) -> tuple[Mask, Ints]:
    """Return which ranges are of some columns, and the places of theirs."""
    place = np.full(max(filters.column.max(initial=0), ranked.columns[-1]) + 1, -1)
    place[ranked.columns] = np.arange(len(ranked.columns))
    at = place[filters.column]
    return at >= 0, at[at >= 0]


def _candidates(filters: RankedFilters, ranked: _Sorted) -> Ints:
    """Return the cuts to try: ends of ranges, and borders of the values at the quartiles."""
    mine, at = _ranges(filters, ranked)
    low, high = ranked.join(at, filters.low[mine]), ranked.join(at, filters.high[mine] + 1)
    ends = ranked.divided(np.sort(np.concatenate([low, high])))
    count = np.bincount(ends // ranked.span, minlength=len(ranked.columns))
    if count.max() > CANDIDATES:
        ends = np.concatenate([_thin(each) for each in np.split(ends, np.cumsum(count)[:-1])])
    middle = ranked.ranks[:, ranked.ranks.shape[1] * np.arange(1, 4) // 4]
    quartiles = ranked.join(np.arange(len(middle))[:, None], middle).ravel()
    return ranked.divided(np.sort(np.concatenate([ends, quartiles, quartiles + 1])))


def _thin(ends: Ints) -> Ints:
    """Return at most as many ends as are tried in a column, evenly spread."""
    if len(ends) <= CANDIDATES:
        return ends
    return ends[np.linspace(0, len(ends) - 1, CANDIDATES).astype(np.int64)]


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


def _expect_by_chance(filters: RankedFilters, ranked: _Sorted, tried: _Tried) -> Floats:
    """Return the rows that filters would be spared if their ranges lay anywhere in the columns.

    A range without width misses the left side as often as it lies on the right one.
    """
    mine, at = _ranges(filters, ranked)
    first = ranked.find(ranked.join(at, filters.low[mine]))
    last = ranked.find(ranked.join(at, filters.high[mine]), "right")
    rows, shape = ranked.ranks.shape[1], (len(ranked.columns), len(filters.weight))
    asked, size = at * shape[1] + filters.filter[mine], shape[0] * shape[1]
    inside = np.bincount(asked, (last - first) / rows, size).reshape(shape)
    asks = np.bincount(asked, minlength=size).reshape(shape) > 0
    outside = (np.clip(1 - inside, 0, 1) * asks * filters.weight).sum(axis=1)
    share = tried.rows / rows
    return np.asarray(outside[tried.at] * 2 * share * (1 - share) * rows, np.float64)


def _hulls(ranks: Ranks, ranked: _Sorted, tried: _Tried) -> Ints:
    """Return the lowest and the highest ranks of the rows on either side of cuts.

    Returns:
        Shape (2 ends, 2 sides, cuts, columns).
    """
    used, at = np.unique(tried.at, return_inverse=True)
    rows, ordered = ranks.shape[1], ranks.take(ranked.rows[used].ravel(), axis=1)
    starts = np.sort(np.concatenate([np.arange(len(used)) * rows, at * rows + tried.rows]))
    high = np.maximum.reduceat(ordered, starts, axis=1)
    low = np.minimum.reduceat(ordered - 1, starts, axis=1)
    ends = np.cumsum(np.bincount(at) + 1)[:-1]
    sides = [
        (_accumulate(np.minimum, lows), _accumulate(np.maximum, highs))
        for lows, highs in zip(np.split(low.T, ends), np.split(high.T, ends), strict=True)
    ]
    hulls = np.concatenate([np.array(each, np.int64) for each in sides], axis=2)
    hulls[0] += 1
    return hulls


def _accumulate(extreme: np.ufunc, parts: Ranks) -> tuple[Ranks, Ranks]:
    """Return the extremes of all parts before, and of all from each but the first on."""
    return extreme.accumulate(parts)[:-1], extreme.accumulate(parts[::-1])[::-1][1:]


def _weigh_misses(filters: RankedFilters, hulls: Ints) -> Floats:
    """Return the weight of the filters that miss each side of cuts, shape (2 sides, cuts)."""
    low, high = hulls
    columns = low.shape[-1]
    hit = filters.hits(low.reshape(-1, columns), high.reshape(-1, columns))
    weight = np.where(np.bincount(filters.filter, minlength=len(filters.weight)), filters.weight, 0)
    return np.asarray((~hit @ weight).reshape(low.shape[:2]), np.float64)
