"""Filters as boxes, in values and in ranks."""

import tracemalloc
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zadapter.base.ranks import rank
from zadapter.layout import filters
from zadapter.layout.filters import BEYOND, Filter, Range, rank_filters

A, B = ("a",), ("b", "c")


def test_a_filter_survives_being_written():
    """Layouts are stored with what they were fitted to."""
    each = Filter(((Range(A, "1", None), Range(B, None, "x", "left")), (Range(A, "5", "5"),)), 2.5)

    assert Filter.from_dict(each.to_dict()) == each


def hits(asked, columns, low, high):
    """Which filters may match rows between two rows of values."""
    distinct = [rank(column).distinct for column in columns]
    ranked = rank_filters(asked, [A, B][: len(columns)], distinct)
    ranks = np.stack([rank(column).ranks for column in columns], axis=1)
    return ranked.hits(ranks[[low]], ranks[[high]])[0].tolist()


def test_many_hulls_are_compared_in_parts(monkeypatch):
    """Long lists of values beside many nodes take a bounded amount of memory."""
    known = pa.array(np.arange(4_000))
    lists = [tuple(Range(A, str(v), str(v)) for v in range(at, 4_000, 20)) for at in range(20)]
    ranked = rank_filters([Filter((box,), 1.0) for box in lists], [A], [known])
    low = np.arange(1, 4_000, 4)[:, None]
    whole = ranked.hits(low, low + 1)
    monkeypatch.setattr(filters, "PAIRS", 1 << 16)

    tracemalloc.start()
    in_parts = ranked.hits(low, low + 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert whole.sum() == 2 * len(low)
    assert (in_parts == whole).all()
    assert peak < 2 << 20


@pytest.mark.parametrize(
    ("closed", "expected"),
    [("both", True), ("left", True), ("right", False), ("neither", False)],
)
def test_an_end_belongs_to_a_range_or_not(closed, expected):
    """``a >= 3`` keeps a file that ends at 3, and ``a > 3`` does not."""
    numbers = pa.array([1, 2, 3, 4, 5])

    assert hits([Filter(((Range(A, "3", "5", closed),),), 1.0)], [numbers], 0, 2) == [expected]


def test_a_value_between_known_ones_matches_what_spans_it():
    """The sample need not have the value that a filter asks for."""
    numbers, asks = pa.array([10, 20, 30]), [Filter(((Range(A, "15", "15"),),), 1.0)]

    assert hits(asks, [numbers], 0, 0) == [False]
    assert hits(asks, [numbers], 0, 1) == [True]
    assert hits(asks, [numbers], 1, 2) == [False]


@pytest.mark.parametrize("asked", [("4", "9"), ("31", None), (None, "9"), ("99", "99")])
def test_a_range_beyond_all_known_values_matches_no_estimated_hull(asked):
    """Hulls of sampled rows are moved out, also beyond the table; unknown ends may hold the row."""
    distinct = pa.array([10, 20, 30])
    found = rank_filters([Filter(((Range(A, *asked),),), 1.0)], [A], [distinct])
    outer, unknown = (np.array([[-2, 6]]).T, np.array([[0, BEYOND]]).T)

    assert not found.hits(outer[:1], outer[1:]).any()
    assert found.hits(unknown[:1], unknown[1:]).all()


def test_ranges_of_a_column_are_alternatives_and_columns_are_not():
    """``a IN (1, 9) AND b = 'x'``, or ``a = 4``."""
    columns = [pa.array([1, 4, 5, 9]), pa.array(["x", "y", "y", "z"])]
    listed = (Range(A, "1", "1"), Range(A, "9", "9"), Range(B, "x", "x"))
    asks = [Filter((listed, (Range(A, "4", "4"),)), 1.0)]

    found = [hits(asks, columns, at, at)[0] for at in range(4)]

    assert found == [True, True, False, False]


def test_a_box_without_a_known_column_can_not_be_told():
    """So its filter takes no part."""
    asks = [Filter(((Range(A, "1"),), (Range(("z",), "1"),)), 1.0)]

    assert len(rank_filters(asks, [A], [pa.array([1, 2])]).column) == 0


@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_a_hull_that_holds_a_matching_row_is_hit(data):
    """Whatever the boxes: by brute force over dates."""
    days = sorted(data.draw(st.sets(st.integers(0, 40), min_size=2, max_size=12)))
    column = pa.array([date.fromordinal(730_000 + day) for day in days])
    end = st.none() | st.integers(0, 40)
    closed = st.sampled_from(["both", "left", "right", "neither"])
    ends = data.draw(st.lists(st.tuples(end, end, closed), min_size=1, max_size=3))
    text = {day: str(date.fromordinal(730_000 + day)) for day in range(41)} | {None: None}
    asks = Filter((tuple(Range(A, text[low], text[high], c) for low, high, c in ends),), 1.0)
    low = data.draw(st.integers(0, len(days) - 1))
    high = data.draw(st.integers(low, len(days) - 1))

    matches = any(
        (first is None or first < day or (first == day and c in {"both", "left"}))
        and (last is None or day < last or (last == day and c in {"both", "right"}))
        for day in days[low : high + 1]
        for first, last, c in ends
    )

    assert hits([asks], [column], low, high)[0] >= matches
    if low == high:
        assert hits([asks], [column], low, high) == [matches]
