"""Positions on space-filling curves, as integers of 64 bits.

The position of a leaf in z-order is its number: see :mod:`zadapter.layout.zvalue`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from zadapter.errors import UsageError

Ints = npt.NDArray[np.int64]

_POSITION_BITS = 62


def hilbert_positions(points: npt.NDArray[np.integer], bits: int) -> Ints:
    """Return the positions of points on the Hilbert curve, which numbers all cells of a grid.

    Consecutive cells on the curve share a face. The curve is defined by J. Skilling, Programming
    the Hilbert curve, AIP Conference Proceedings 707, 2004.

    >>> hilbert_positions(np.array([(0, 0), (0, 1), (1, 1), (1, 0)]), bits=1).tolist()
    [0, 1, 2, 3]

    Args:
        points: Coordinates in ``[0, 2**bits)``, of shape (points, dimensions).
        bits: Bits of a coordinate; a position has at most 62.

    Returns:
        Positions, of shape (points,).

    Raises:
        UsageError: A point is outside the grid, the grid has no bits or dimensions, or positions
            need more than 62 bits.
    """
    return _interleave(_transpose(_split_coordinates(points, bits), bits), bits)


def winding(columns: Sequence[int]) -> Ints:
    """Number the leaves of a binary tree so that neighbours in the order are near in space.

    If a level and the next one divide different columns, the first half is traversed backwards in
    the column of the next level, and the second half backwards in the column of this level. The
    traversal then enters the second half near its exit from the first, as on Hilbert's curve, while
    each level still divides one column. In z-order the traversal returns to the other end.

    >>> winding([0, 1]).tolist()
    [1, 0, 2, 3]

    Args:
        columns: The column that each level of the tree divides, from the root down.

    Returns:
        Position of each leaf, of shape (2**levels,).
    """
    leaf = np.arange(1 << len(columns))
    position, backwards = np.zeros_like(leaf), {column: np.zeros_like(leaf) for column in columns}
    for level, (column, below) in enumerate(
        zip(columns, [*columns[1:], *columns[-1:]], strict=True)
    ):
        second = leaf >> (len(columns) - 1 - level) & 1 ^ backwards[column]
        position = position << 1 | second
        if below != column:
            backwards[below] ^= 1 - second
            backwards[column] ^= second
    return position


def _split_coordinates(points: npt.NDArray[np.integer], bits: int) -> list[Ints]:
    _, dimensions = points.shape
    if dimensions < 1 or bits < 1:
        raise UsageError("a point must have at least one coordinate of at least one bit")
    if bits * dimensions > _POSITION_BITS:
        raise UsageError(
            f"{dimensions} dimensions of {bits} bits require positions of {bits * dimensions} "
            f"bits; the maximum is {_POSITION_BITS}"
        )
    if points.size and not 0 <= points.min() <= points.max() < 1 << bits:
        raise UsageError(f"points are outside the grid of {bits} bits per dimension")
    return list(points.T.astype(np.int64))


def _interleave(axes: list[Ints], bits: int) -> Ints:
    position = np.zeros_like(axes[0])
    for bit in range(bits - 1, -1, -1):
        for axis in axes:
            position = position << 1 | axis >> bit & 1
    return position


def _transpose(axes: list[Ints], bits: int) -> list[Ints]:
    """Convert coordinates to the "transpose", whose interleaved bits are the Hilbert position."""
    first, *others = _undo_rotations(axes, bits)
    gray = [first]
    for axis in others:
        gray.append(gray[-1] ^ axis)
    flips = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        flips = flips ^ ((1 << bit) - 1 & -(gray[-1] >> bit & 1))
    return [axis ^ flips for axis in gray]


def _undo_rotations(axes: list[Ints], bits: int) -> list[Ints]:
    """Undo the rotations of the curve in each cell, from the coarsest level down."""
    turned = list(axes)
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for index, axis in enumerate(turned):
            upper = -(axis >> bit & 1)
            exchanged = (turned[0] ^ axis) & below & ~upper
            turned[index] = axis ^ exchanged
            turned[0] = turned[0] ^ exchanged ^ (below & upper)
    return turned
