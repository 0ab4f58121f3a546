"""Curves number the cells of a grid, each once, near cells with near numbers."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UsageError
from zadapter.layout.curves import hilbert, hilbert_positions, winding, zorder, zorder_positions

GRIDS = [(1, 1), (1, 5), (2, 1), (2, 4), (3, 1), (3, 3), (4, 2), (5, 1), (5, 2)]
CURVES = [(zorder, zorder_positions), (hilbert, hilbert_positions)]
BOTH = pytest.mark.parametrize(
    ("curve", "positions"), CURVES, ids=[curve.__name__ for curve, _ in CURVES]
)
EVERY_GRID = pytest.mark.parametrize(("dimensions", "bits"), GRIDS)


def cells(dimensions, bits):
    """Every cell of a grid."""
    return list(product(range(1 << bits), repeat=dimensions))


def distance(a, b):
    """How many steps along the axes lead from one cell to another."""
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    ("point", "bits", "position"), [((2, 3), 2, 13), ((214, 97), 8, 0b1011011000101001)]
)
def test_zorder_known_answers(point, bits, position):
    """The first column is in the higher bit of each group."""
    assert zorder(point, bits) == position


@BOTH
@EVERY_GRID
def test_curves_visit_every_cell_once(curve, positions, dimensions, bits):
    """A curve is a bijection between cells and positions, and arrays give the same one."""
    grid = cells(dimensions, bits)

    numbers = [curve(cell, bits) for cell in grid]

    assert sorted(numbers) == list(range(len(grid)))
    assert positions(np.array(grid), bits).tolist() == numbers


@EVERY_GRID
def test_hilbert_never_jumps(dimensions, bits):
    """Neighbours on the Hilbert curve are neighbours in space."""
    walk = sorted(cells(dimensions, bits), key=lambda cell: hilbert(cell, bits))

    assert all(distance(a, b) == 1 for a, b in pairwise(walk))


@EVERY_GRID
def test_cells_with_a_common_zorder_prefix_are_a_box(dimensions, bits):
    """Every run of 2**k positions that starts at a multiple of 2**k fills a box."""
    grid = cells(dimensions, bits)
    for dropped in range(bits * dimensions + 1):
        boxes = {}
        for cell in grid:
            boxes.setdefault(zorder(cell, bits) >> dropped, []).append(cell)
        for box in boxes.values():
            extents = [max(axis) - min(axis) + 1 for axis in zip(*box, strict=True)]
            assert np.prod(extents) == len(box) == 1 << dropped


@pytest.mark.parametrize("curve", [zorder, hilbert])
@EVERY_GRID
def test_a_curve_finishes_a_cube_before_the_next(curve, dimensions, bits):
    """The cells of a cube two cells wide follow one another."""
    cubes = {}
    for cell in cells(dimensions, bits):
        cube = tuple(coordinate >> 1 for coordinate in cell)
        cubes.setdefault(curve(cell, bits) >> dimensions, set()).add(cube)

    assert all(len(cube) == 1 for cube in cubes.values())


@BOTH
@given(data=st.data())
def test_arrays_agree_with_single_points(curve, positions, data):
    """Up to the full 62 bits."""
    dimensions = data.draw(st.integers(1, 8))
    bits = data.draw(st.integers(1, 62 // dimensions))
    coordinate = st.integers(0, (1 << bits) - 1)
    points = data.draw(st.lists(st.tuples(*[coordinate] * dimensions), min_size=1, max_size=5))

    assert positions(np.array(points), bits).tolist() == [curve(p, bits) for p in points]


@BOTH
def test_single_points_have_no_limit_of_size(curve, positions):
    """200 bits do not fit an array, but a number."""
    assert curve([(1 << 100) - 1, 0], bits=100).bit_length() == 200
    with pytest.raises(UsageError, match="the maximum is 62"):
        positions(np.zeros((1, 2), np.int64), bits=100)


@BOTH
@pytest.mark.parametrize(("point", "bits"), [((4, 0), 2), ((-1, 0), 2), ((), 2), ((0, 0), 0)])
def test_points_outside_of_the_grid_are_refused(curve, positions, point, bits):
    """Instead of a position that belongs to another cell."""
    with pytest.raises(UsageError):
        curve(point, bits)
    with pytest.raises(UsageError):
        positions(np.array([point], np.int64).reshape(1, len(point)), bits)


@pytest.mark.parametrize("positions", [zorder_positions, hilbert_positions])
def test_no_points_have_no_positions(positions):
    """An empty array is a fine array."""
    assert positions(np.zeros((0, 3), np.int64), 5).tolist() == []


def walked(columns):
    """The cells of a tree's leaves, in the order of the walk."""
    leaf = np.arange(1 << len(columns))
    cells = {column: np.zeros_like(leaf) for column in columns}
    for level, column in enumerate(columns):
        cells[column] = cells[column] * 2 + (leaf >> (len(columns) - 1 - level) & 1)
    return np.stack(list(cells.values()), axis=1)[np.argsort(winding(columns))]


@given(columns=st.lists(st.integers(0, 3), max_size=9))
def test_winding_visits_every_leaf_once(columns):
    """Whatever the levels divide; boxes stay whole, since a prefix of the place is one of them."""
    place = winding(columns)

    assert sorted(place.tolist()) == list(range(1 << len(columns)))
    for level in range(len(columns)):
        inner = len(columns) - level
        assert len(np.unique(place >> inner | (np.arange(len(place)) >> inner) << 9)) == 1 << level


@pytest.mark.parametrize("columns", [[0], [0, 0, 0], []])
def test_winding_along_one_column_is_its_own_order(columns):
    """There is nothing to wind around."""
    assert winding(columns).tolist() == list(range(1 << len(columns)))


@pytest.mark.parametrize("columns", [[0, 1] * 4, [0, 1, 2] * 3, [0, 0, 1] * 3])
def test_winding_stays_near(columns):
    """Steps are about a cell long, where those of z-order are two."""
    steps = np.abs(np.diff(walked(columns), axis=0)).sum(axis=1)

    assert steps.mean() <= 1.2
