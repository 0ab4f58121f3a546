"""Curves number the cells of a grid, each once, near cells with near numbers."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.errors import UsageError
from zadapter.layout.curves import hilbert_positions, winding

GRIDS = [(1, 1), (1, 5), (2, 1), (2, 4), (3, 1), (3, 3), (4, 2), (5, 1), (5, 2)]
EVERY_GRID = pytest.mark.parametrize(("dimensions", "bits"), GRIDS)


def walk(dimensions, bits):
    """Return the cells of a grid along the Hilbert curve."""
    cells = np.array(list(product(range(1 << bits), repeat=dimensions)))
    positions = hilbert_positions(cells, bits)
    assert np.array_equal(np.sort(positions), np.arange(len(cells)))
    return cells[np.argsort(positions)]


@EVERY_GRID
def test_hilbert_visits_every_cell_once_and_never_jumps(dimensions, bits):
    """Neighbours on the curve are neighbours in space."""
    for a, b in pairwise(walk(dimensions, bits)):
        assert np.abs(a - b).sum() == 1


@EVERY_GRID
def test_hilbert_finishes_a_cube_before_the_next(dimensions, bits):
    """The cells of a cube two cells wide follow one another."""
    cubes = walk(dimensions, bits).reshape(-1, 1 << dimensions, dimensions) >> 1

    assert (cubes == cubes[:, :1]).all()


@pytest.mark.parametrize(("point", "bits"), [((4, 0), 2), ((-1, 0), 2), ((), 2), ((0, 0), 0)])
def test_points_outside_of_the_grid_are_refused(point, bits):
    """Instead of a position that belongs to another cell."""
    with pytest.raises(UsageError):
        hilbert_positions(np.array([point], np.int64).reshape(1, len(point)), bits)


def test_positions_have_at_most_62_bits():
    """More would not fit an integer of 64 bits, whose highest is the sign."""
    assert hilbert_positions(np.full((1, 2), (1 << 31) - 1), bits=31).max() < 1 << 62
    with pytest.raises(UsageError, match="the maximum is 62"):
        hilbert_positions(np.zeros((1, 2), np.int64), bits=100)


def test_no_points_have_no_positions():
    """An empty array is a fine array."""
    assert hilbert_positions(np.zeros((0, 3), np.int64), 5).tolist() == []


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
