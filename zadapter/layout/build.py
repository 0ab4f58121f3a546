"""Fitting of layouts to samples.

Adaptive z-order cuts each box at a quantile of the rows that are *still in the box*, so skew and
correlation leave no empty cells. The result is a k-d tree (Bentley 1975), written as a z-value. A
box of k files is cut at the floor(k/2)/k quantile, so that files are even for every k, and each
file consists of whole boxes. Below a file, boxes are cut at the median, for its row groups.

All computations use ranks within the sample. One column per level keeps the generated code of the
Spark expression small (integration/bench/README.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout.curves import hilbert_positions, winding
from zadapter.layout.layout import Curve, Layout, Request
from zadapter.layout.learned import learn, steady_cuts
from zadapter.layout.levels import Level, Start, pattern
from zadapter.layout.split import Cut, cut, divide_files

TREES = frozenset({Curve.ADAPTIVE, Curve.LINEAR})
"""Curves whose layouts are trees that can be grown from any start."""

MAX_LEAVES = 1 << 17
"""Maximum leaves of a layout; the look-up arrays of deeper trees cost more than they gain."""

ENOUGH = 0.5
"""Minimum share of the remaining rows that a column must divide to get a level."""

FINER = 1
"""Levels below the row groups, if there is room. They order the rows within a box, so a row group
that begins inside a box holds only rows from one end of it."""

LEFTOVER = 0.02
"""Minimum share of the remaining rows that a column of the linear order must divide; below it, the
next column follows."""


def fit(
    request: Request,
    sample: Sequence[pa.Array | Ranked],
    roots: Sequence[tuple[str | None, ...]],
    root_of: Ints,
    files: Sequence[int],
    ahead: Sequence[int] = (),
) -> Layout:
    """Fit a layout to a sample.

    Args:
        request: Key columns, curve, weights, row groups.
        sample: The sampled values, one array per key column, or their ranks, all of the same
            length.
        roots: Partition values of each root.
        root_of: Root of each sampled row, an index into *roots*.
        files: Number of files of each root, at least 1.
        ahead: Number of levels by which the rows are narrower than their table in each column. The
            adaptive curve leaves this number of cuts of the column to the others. Empty for none.
    """
    ranked, budget = [rank(column) for column in sample], np.array(files, np.int64)
    if request.curve in TREES:
        start = Start(levels=(), node=root_of, budget=budget, first=np.cumsum(budget) - budget)
        return grow_tree(request, ranked, tuple(roots), start, ahead)
    return _fit_grid(request, ranked, tuple(roots), root_of, budget)


# ------------------------------------------------------------------ adaptive and linear


def grow_tree(
    request: Request,
    ranked: Sequence[Ranked],
    roots: tuple[tuple[str | None, ...], ...],
    start: Start,
    ahead: Sequence[int],
) -> Layout:
    """Grow a tree of an adaptive or linear layout; see :func:`fit`."""
    room = int(np.floor(np.log2(MAX_LEAVES / len(roots))))
    inner = max(0, int(np.ceil(np.log2(request.row_groups))))
    if request.filters and len(ranked[0].ranks):
        start = learn(request, ranked, start, max(0, room - inner - FINER))
        ahead = ahead or steady_cuts(request, start)
    depth, turns = _depth(room, start, request), _turns(request, ahead)
    node, budget, first = start.node, start.budget, start.first
    levels = list(start.levels)
    below = 0  # levels used below the files, for row groups
    while len(levels) < min(room, depth + FINER) and below < inner + FINER:
        to_files = bool((budget > 1).any()) and len(levels) < depth - inner
        chosen = _choose(request.curve, turns, ranked, node, budget, to_files=to_files)
        if chosen is None and not to_files:
            break
        if chosen is None:  # the remaining rows repeat one value: spread by hash, not cut
            depth = len(levels) + inner
            continue
        column, level_cut = chosen
        below += not to_files
        levels.append(Level(column, ranked[column].value_of(level_cut.cuts)))
        right = (ranked[column].ranks >= level_cut.cuts[node]) & (level_cut.cuts[node] > 0)
        node = node * 2 + right
        budget, first = divide_files(level_cut, budget, first)
    wound = start.levels if request.filters else ()
    order = _wind_boxes(levels[len(wound) :], 1 << len(wound))
    return Layout(
        request=request,
        roots=roots,
        levels=tuple(levels),
        first_file=first.astype(np.int32),
        width=np.maximum(budget, 1).astype(np.int32),
        order=np.tile(order, len(roots)) if request.curve is Curve.ADAPTIVE else None,
    )


def _wind_boxes(levels: Sequence[Level], boxes: int) -> npt.NDArray[np.int32]:
    """Return the position of each leaf of a root, whose boxes are wound one by one."""
    walk = winding([level.column for level in levels])
    first = np.arange(boxes)[:, None] * len(walk)
    return np.asarray(first + walk, np.int32).ravel()


def _depth(room: int, start: Start, request: Request) -> int:
    """Return the levels that fit in the look-up arrays, with some spare for heavy values."""
    levels = np.ceil(np.log2(start.budget.max(initial=1))) + np.ceil(np.log2(request.row_groups))
    return max(0, min(room, len(start.levels) + int(levels) + 4))


def _turns(request: Request, ahead: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the columns to try at each level, best first."""
    columns = list(range(len(request.columns)))
    if request.curve is Curve.LINEAR:
        while True:
            yield columns
    left = list(ahead) or [0] * len(columns)
    for turn in pattern(request.weights):
        left[turn] -= 1
        if left[turn] >= 0:
            continue
        yield [turn, *(columns[turn + 1 :] + columns[:turn])]


def _choose(
    curve: Curve,
    turns: Iterator[Sequence[int]],
    ranked: Sequence[Ranked],
    node: Ints,
    budget: Ints,
    *,
    to_files: bool,
) -> tuple[int, Cut] | None:
    """Choose the first column whose cut divides enough rows, or else the best one."""
    enough = LEFTOVER if curve is Curve.LINEAR else ENOUGH
    tried: list[tuple[int, Cut]] = []
    for column in next(turns):
        level_cut = cut(ranked[column].ranks, node, budget, to_files=to_files)
        if level_cut.share >= enough:
            return column, level_cut
        tried.append((column, level_cut))
    best = max(tried, key=lambda trial: trial[1].share)
    return best if best[1].share > 0 else None


# ------------------------------------------------------------------ z-order and Hilbert


def _fit_grid(
    request: Request,
    ranked: Sequence[Ranked],
    roots: tuple[tuple[str | None, ...], ...],
    root_of: Ints,
    files: Ints,
) -> Layout:
    """Cut each column at its own quantiles, and cut files by row counts along the curve."""
    room = max(0, int(np.floor(np.log2(MAX_LEAVES / len(roots)))))
    columns = len(ranked) if request.curve is Curve.ZORDER else min(len(ranked), room)
    bits = max(1, min(room // max(columns, 1), 10))
    turns = pattern(request.weights if request.curve is Curve.ZORDER else [1.0] * columns)
    node, levels, taken = root_of, list[Level](), [0] * columns
    paths = [np.zeros(len(roots), np.int64)] * len(ranked)  # each node's own bits of each column
    while len(levels) < min(bits * columns, room):
        column = next(turns)
        taken[column] += 1
        cuts = _quantiles(ranked[column].ranks, taken[column])[paths[column]]
        levels.append(Level(column, ranked[column].value_of(cuts)))
        right = (ranked[column].ranks >= cuts[node]) & (cuts[node] > 0) if len(node) else node > 0
        node = node * 2 + right
        paths = [np.repeat(path, 2) for path in paths]
        paths[column] = paths[column] * 2 + np.tile([0, 1], len(paths[column]) // 2)
    order = None
    if request.curve is Curve.HILBERT and levels:
        order = np.tile(hilbert_positions(_cells(columns, bits), bits), len(roots))
    return _cut_into_files(request, roots, tuple(levels), node, files, order)


def _cells(columns: int, bits: int) -> Ints:
    """Return the coordinates of each leaf's cell, shape (leaves, columns)."""
    leaf = np.arange(1 << (bits * columns))
    cells = np.zeros((len(leaf), columns), np.int64)
    for level in range(bits * columns):
        bit = leaf >> (bits * columns - 1 - level) & 1
        cells[:, level % columns] = cells[:, level % columns] * 2 + bit
    return cells


def _quantiles(ranks: Ints, bit: int) -> Ints:
    """Return the cuts for a column's *bit*-th bit, one for each value of the preceding bits."""
    if len(ranks) == 0:
        return np.zeros(1 << (bit - 1), np.int64)
    odd = np.arange(1, 1 << bit, 2)
    return np.asarray(np.sort(ranks)[len(ranks) * odd >> bit])


def _cut_into_files(
    request: Request,
    roots: tuple[tuple[str | None, ...], ...],
    levels: tuple[Level, ...],
    node: Ints,
    files: Ints,
    order: npt.NDArray[np.int64] | None,
) -> Layout:
    """Cut the curve into files of equal weight."""
    leaves = 1 << len(levels)
    position = np.tile(np.arange(leaves), len(roots)) if order is None else order
    along = np.argsort(position.reshape(len(roots), leaves), axis=1)
    weight = np.bincount(node, minlength=len(roots) * leaves).reshape(len(roots), leaves)
    ordered = np.take_along_axis(weight, along, axis=1).astype(np.float64)
    total = np.maximum(ordered.sum(axis=1, keepdims=True), 1)
    last = np.cumsum(ordered, axis=1)
    file_count = files[:, None]
    middle = np.minimum((last - ordered / 2) * file_count // total, file_count - 1)
    heavy = ordered * file_count > 1.5 * total
    unseen = ordered.sum(axis=1, keepdims=True) == 0  # a root without sampled rows: spread by hash
    start = np.where(
        heavy, np.minimum((last - ordered) * file_count // total, file_count - 1), middle
    )
    stop = np.where(
        heavy, np.minimum(np.ceil(last * file_count / total) - 1, file_count - 1), middle
    )
    stop = np.where(unseen, file_count - 1, stop)
    first, width = np.empty_like(start), np.empty_like(start)
    np.put_along_axis(first, along, start + (np.cumsum(files) - files)[:, None], axis=1)
    np.put_along_axis(width, along, np.maximum(stop - start, 0) + 1, axis=1)
    return Layout(
        request=request,
        roots=roots,
        levels=levels,
        first_file=first.astype(np.int32).ravel(),
        width=width.astype(np.int32).ravel(),
        order=None if order is None else order.astype(np.int32),
    )
