"""One level of a tree: every node is cut in two by the values of one column.

A node that stands for k files is cut at the floor(k/2)/k quantile of its rows, one that stands for
a file at the median, but always at the border of a value: of the two around the quantile at the one
that leaves filters less to read.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zadapter.base.ranks import Ints

Floats = npt.NDArray[np.float64]

SLIVER = 0.3
"""A part smaller than this share of a file is not worth a file of its own."""


@dataclass(frozen=True, slots=True)
class Cut:
    """One level's cut of every node: rank 0 where a node is not cut."""

    cuts: Ints
    left_files: Ints
    """For each node the files that go left; all of them where it is not cut."""
    share: float
    """Share of the rows in question that this cut divides."""


def cut(ranks: Ints, node: Ints, budget: Ints, *, to_files: bool) -> Cut:
    """Cut every node where this column's values allow it.

    Args:
        ranks: For each sampled row the rank of its value, 0 for null.
        node: For each sampled row its node.
        budget: For each node the files that it stands for.
        to_files: Whether rows in question are those of nodes that stand for several files, or all.
    """
    if len(ranks) == 0:
        return Cut(np.zeros_like(budget), budget, 0.0)
    order = np.lexsort((ranks, node))
    value, home = ranks[order], node[order]
    bounds = np.searchsorted(home, np.arange(len(budget) + 1))
    start, count = bounds[:-1], np.diff(bounds)
    split, done = _split(_runs(value, home), bounds, budget)
    cuts = np.where(done, value[np.minimum(split, len(value) - 1)], 0)
    left_files = _left_files(budget, (split - start) / np.maximum(count, 1))
    open_ = (budget > 1) & (count > 0) if to_files else count > 0
    asked = count[open_].sum()
    share = float(count[done & open_].sum() / asked) if asked else 0.0
    return Cut(cuts, np.where(done, left_files, budget), share)


def children(made: Cut, budget: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Hand the files of every node, how many and the first one, down to its two children."""
    divided = (made.cuts > 0) & (budget > 1)
    right_files = np.where(divided, budget - made.left_files, budget)
    right_first = np.where(divided, first + made.left_files, first)
    return (
        np.stack([made.left_files, right_files], axis=1).ravel(),
        np.stack([first, right_first], axis=1).ravel(),
    )


def _runs(value: Ints, home: Ints) -> Ints:
    """Return where each run of equal values of a node starts, and where the last one ends."""
    changes = np.flatnonzero((np.diff(value) != 0) | (np.diff(home) != 0)) + 1
    return np.concatenate(([0], changes, [len(value)]))


def _split(runs: Ints, bounds: Ints, budget: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return where each node is cut, before or behind the value at its quantile, and whether."""
    start, rows = bounds[:-1], np.maximum(np.diff(bounds), 1)
    quantile = np.where(budget > 1, (budget // 2) / np.maximum(budget, 1), 0.5)
    at = np.minimum(start + (rows * quantile).astype(np.int64), runs[-1] - 1)
    run = np.searchsorted(runs, at, side="right") - 1
    first = np.searchsorted(runs, bounds)
    values = np.maximum(np.diff(first), 1)
    losses = []
    for border in (run, run + 1):
        left = (runs[border] - start) / rows
        loss = _loss(left, (border - first[:-1]) / values, quantile)
        useless = (left <= 0) | (left >= 1) | (budget > 1) & (_left_files(budget, left) == 0)
        losses.append(np.where(useless, np.inf, loss))
    before, behind = losses
    split: Ints = np.where(behind < before, runs[run + 1], runs[run])
    return split, np.minimum(before, behind) < np.inf


def _loss(rows: Floats, values: Floats, quantile: Floats) -> Floats:
    """Return what a cut costs that has these shares of a node's rows and values on its left.

    A filter goes left by a chance of p and has those rows to read, r, or else the others: p r +
    (1 - p)(1 - r), by half of that r² - r + 1/2 + (p - r)(r - 1/2). Of the first part, (r - 1/2)²
    and what is the same for all, files make (r - quantile)². Filters ask for rows as often as for
    values: p is the mean of the shares of both. So a value that has many rows goes to the side that
    has few values, and filters for the others have the smaller side to read.
    """
    chance = (rows + values) / 2
    return (rows - quantile) ** 2 + (chance - rows) * (rows - 0.5)


def _left_files(budget: Ints, share: Floats) -> Ints:
    """Give the left side its share of the files; 0 where a side would be a sliver of one."""
    exact = budget * share
    near = np.clip(np.rint(exact), 1, np.maximum(budget - 1, 1)).astype(np.int64)
    sliver = np.minimum(exact, budget - exact) < SLIVER
    return np.where(budget <= 1, budget, np.where(sliver, 0, near))
