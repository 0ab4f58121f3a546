"""Cuts of one level of a tree: every node is divided by the values of one column.

A node of k files is cut at the floor(k/2)/k quantile of its rows, a node of one file at the median.
The cut lies at a border between values. Of the two borders around the quantile, the one that makes
filters read fewer rows is chosen.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zadapter.base.ranks import Ints, narrow

Floats = npt.NDArray[np.float64]

SLIVER = 0.3
"""A part smaller than this share of a file is not worth a file of its own."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Cuts of all nodes of one level; rank 0 means that a node is not cut."""

    cuts: Ints
    left_files: Ints
    """Number of files on the left of each node; all its files where it is not cut."""
    share: float
    """Share of the considered rows that the cuts divide."""


def cut(ranks: Ints, node: Ints, budget: Ints, *, to_files: bool) -> Cut:
    """Cut every node where this column's values allow it.

    Args:
        ranks: Rank of each sampled row's value, 0 for null.
        node: Node of each sampled row.
        budget: Number of files of each node.
        to_files: Whether the share considers only rows of nodes with several files, or all rows.
    """
    if len(ranks) == 0:
        return Cut(np.zeros_like(budget), budget, 0.0)
    span = ranks.max() + 1
    # a third of lexsort's time
    home, value = np.divmod(np.sort(narrow(node * span + ranks)).astype(np.int64), span)
    bounds = np.searchsorted(home, np.arange(len(budget) + 1))
    start, count = bounds[:-1], np.diff(bounds)
    split, done = _split(_runs(value, home), bounds, budget)
    cuts = np.where(done, value[np.minimum(split, len(value) - 1)], 0)
    left_files = _left_files(budget, (split - start) / np.maximum(count, 1))
    open_ = (budget > 1) & (count > 0) if to_files else count > 0
    considered = count[open_].sum()
    share = float(count[done & open_].sum() / considered) if considered else 0.0
    return Cut(cuts, np.where(done, left_files, budget), share)


def divide_files(level_cut: Cut, budget: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Return the number of files and the first file of the two children of every node."""
    divided = (level_cut.cuts > 0) & (budget > 1)
    right_files = np.where(divided, budget - level_cut.left_files, budget)
    right_first = np.where(divided, first + level_cut.left_files, first)
    return (
        np.stack([level_cut.left_files, right_files], axis=1).ravel(),
        np.stack([first, right_first], axis=1).ravel(),
    )


def _runs(value: Ints, home: Ints) -> Ints:
    """Return the start of each run of equal values in a node, and the end of the last run."""
    changes = np.flatnonzero((np.diff(value) != 0) | (np.diff(home) != 0)) + 1
    return np.concatenate(([0], changes, [len(value)]))


def _split(runs: Ints, bounds: Ints, budget: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the cut position of each node, at a border of its quantile, and whether it is cut."""
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
    """Return the cost of a cut with these shares of a node's rows and values on the left.

    A filter reads the left share of rows, r, with probability p, and the right share otherwise. The
    expected cost is p r + (1 - p)(1 - r); half of it is r² - r + 1/2 + (p - r)(r - 1/2). The first
    part is (r - 1/2)² and a constant; for a node of several files it becomes (r - quantile)².
    Filters select rows and values equally often, so p is the mean of both shares. Therefore a value
    with many rows goes to the side with few values, and other filters read the smaller side.
    """
    chance = (rows + values) / 2
    return (rows - quantile) ** 2 + (chance - rows) * (rows - 0.5)


def _left_files(budget: Ints, share: Floats) -> Ints:
    """Return the left side's share of the files; 0 where a side would be a sliver of a file."""
    exact = budget * share
    near = np.clip(np.rint(exact), 1, np.maximum(budget - 1, 1)).astype(np.int64)
    sliver = np.minimum(exact, budget - exact) < SLIVER
    return np.where(budget <= 1, budget, np.where(sliver, 0, near))
