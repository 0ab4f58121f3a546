"""Uniform data: how many files the best grid of boxes would have to open."""

import math
from collections.abc import Iterator, Sequence

import numpy as np


def touched(files: int, columns: int, sides: Sequence[float]) -> float:
    """Return how many files a box touches in the mean, in the best grid of *files* equal cells.

    A box that lies anywhere in the unit cube with the same probability touches, of k equal slices
    of a column, one more than it crosses borders of; columns are independent of one another.

    Args:
        files: Number of cells.
        columns: Number of dimensions.
        sides: For each box the length of its sides, as a share of the column.
    """
    return min(
        sum(math.prod(_slices(slices, side) for slices in grid) for side in sides) / len(sides)
        for grid in _grids(files, columns)
    )


def _slices(slices: int, side: float) -> float:
    """Return how many of so many equal slices an interval touches in the mean."""
    borders = np.arange(1, slices) / slices
    last = 1 - side  # the highest that the interval may begin
    crossed = np.minimum(borders, last) - np.maximum(borders - side, 0)
    return 1 + float((crossed / last).sum())


def _grids(files: int, columns: int) -> Iterator[tuple[int, ...]]:
    if columns == 1:
        yield (files,)
        return
    for slices in range(1, files + 1):
        if files % slices == 0:
            for rest in _grids(files // slices, columns - 1):
                yield (slices, *rest)
