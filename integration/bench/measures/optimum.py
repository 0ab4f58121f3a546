"""Uniform data: number of files that a box touches in the best grid."""

import math
from collections.abc import Iterator, Sequence

import numpy as np


def touched(files: int, columns: int, sides: Sequence[float]) -> float:
    """Return how many files a box touches on average, in the best grid of *files* equal cells.

    Boxes are uniformly distributed in the unit cube. In a column of k equal slices, a box touches
    one slice more than it crosses borders. Columns are independent of one another.

    Args:
        files: Number of cells.
        columns: Number of dimensions.
        sides: Length of each box's sides, as a share of the column.
    """
    return min(
        sum(math.prod(_slices(slices, side) for slices in grid) for side in sides) / len(sides)
        for grid in _grids(files, columns)
    )


def _slices(slices: int, side: float) -> float:
    """Return how many of *slices* equal slices an interval touches on average."""
    borders = np.arange(1, slices) / slices
    last = 1 - side  # highest start of the interval
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
