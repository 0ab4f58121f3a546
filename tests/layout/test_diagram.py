"""Decision diagrams lead rows to the nodes that the levels lead them to."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base.ranks import Ranked, rank
from zadapter.layout import assign, diagram
from zadapter.layout.diagram import decide
from zadapter.layout.levels import Level

COLUMNS, VALUES = 3, 9


def numbers(column, cuts):
    """Number of the cuts that are not above each value."""
    return Ranked(np.zeros(0, np.int64), cuts).floor(column)


def follow(passed, columns, root_of):
    """The last state of each row."""
    state = root_of
    for each in passed:
        state = each.next[state, numbers(columns[each.column], each.cuts)]
    return state


@st.composite
def trees(draw):
    """Levels with at most one cut a node, of any column, and the number of roots."""
    roots, levels = draw(st.integers(1, 3)), []
    for depth in range(draw(st.integers(1, 4))):
        nodes = roots << depth
        column = draw(st.lists(st.integers(-1, COLUMNS - 1), min_size=nodes, max_size=nodes))
        cut = draw(st.lists(st.integers(0, VALUES), min_size=nodes, max_size=nodes))
        used = sorted({0, *column} - {-1})
        levels.append(
            Level.of(
                Level(
                    at, pa.array([c if k == at else None for c, k in zip(cut, column, strict=True)])
                )
                for at in used
            )
        )
    return [Level.of(typed(each) for each in level.by_column) for level in levels], roots


def typed(level):
    """The level with numbers for cuts, also if there is none."""
    return Level(level.column, level.cuts.cast(pa.int64()))


@given(trees(), st.integers(0, 1 << 32))
def test_a_diagram_leads_to_the_same_nodes(tree, seed):
    """Whatever is cut where, for values between the cuts and beyond them, and for nulls."""
    levels, roots = tree
    random = np.random.default_rng(seed)
    drawn = random.integers(-1, VALUES + 2, (COLUMNS, 200))
    columns = [pa.array(each, mask=each == 3) for each in drawn]
    root_of = random.integers(0, roots, 200)

    passed = decide(levels, roots, 200)

    if passed is None:
        assert not any(level.is_cut.any() for level in levels)
        return
    found = follow(passed, columns, root_of)
    assert found.tolist() == assign.nodes(levels, list(map(rank, columns)), root_of).tolist()


@pytest.mark.parametrize("limit", ["MOST_ENTRIES", "MOST_BYTES"])
def test_a_diagram_that_is_too_large_is_none(limit, monkeypatch):
    """Levels are looked up one by one then."""
    cuts = pa.array([5, None]), pa.array([None, 6])
    levels = [Level(0, pa.array([4])), Level.of(map(Level, (0, 1), cuts))]
    assert decide(levels, 1, 3) is not None
    assert decide(levels, 1, 2) is None

    monkeypatch.setattr(diagram, limit, 1)

    assert decide(levels, 1, 3) is None
