"""Levels go to the key columns by their weights, and row groups to boxes that lie together."""

from itertools import islice

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import fitted, placed, request
from zadapter.base.ranks import rank
from zadapter.layout import assign, predict
from zadapter.layout.build import FINER, fit
from zadapter.layout.levels import pattern


def test_weights_give_a_column_more_levels():
    """A column of weight 3 gets three levels for each one of weight 1."""
    columns = [np.random.default_rng(11).random(4_096) for _ in range(2)]

    levels = fitted(columns, 32, weights=[3.0, 1.0]).levels

    assert [level.column for level in levels] == ([0, 0, 1, 0] * 3)[: 5 + 3 + FINER]


def test_equal_weights_take_turns():
    """First column first, so that the first bit is the first column's."""
    assert list(islice(pattern([1.0, 1.0, 1.0]), 7)) == [0, 1, 2, 0, 1, 2, 0]


@given(weights=st.lists(st.integers(1, 6), min_size=1, max_size=4), rounds=st.integers(1, 3))
def test_a_round_gives_each_column_its_weight(weights, rounds):
    """After as many levels as the weights sum up to, every column has had its due."""
    taken = list(islice(pattern(weights), rounds * sum(weights)))

    assert [taken.count(column) for column in range(len(weights))] == [rounds * w for w in weights]


def test_row_groups_that_begin_within_a_box_stay_narrow():
    """Writers count rows, whatever the boxes: the order of rows within files makes up for it."""
    columns = list(np.random.default_rng(12).random((3, 40_000)))
    layout = fitted([column[::20] for column in columns], 4, row_groups=8)
    leaf, file = placed(layout, columns)

    wound, zorder = (
        share_by_row_groups(columns, file, place)
        for place in (assign.leaf_positions(layout, leaf), leaf)
    )

    assert wound < 0.95 * zorder


def share_by_row_groups(columns, file, place, *, rows=1_250):
    """What ranges have to read if each file's rows are cut after so many of them."""
    order = np.lexsort((place, file))
    within = np.arange(len(order)) - np.searchsorted(file[order], file[order])
    group = np.empty_like(order)
    group[order] = file[order] * 100 + within // rows
    ranks = np.stack([rank(pa.array(column)).ranks for column in columns], axis=1)
    numbers = np.unique(group, return_inverse=True)[1]
    low, high = (np.full((numbers.max() + 1, 3), start) for start in (len(order), 0))
    np.minimum.at(low, numbers, ranks)
    np.maximum.at(high, numbers, ranks)
    return predict.share_read(
        predict.Boxes(low, high, np.bincount(numbers)), predict.queries(ranks)
    )


def test_columns_in_which_rows_are_narrow_leave_their_cuts_to_the_others():
    """As if the first levels of the whole table had been cut already."""
    columns = [np.random.default_rng(17).random(4_096) for _ in range(2)]

    plain, ahead = (
        fit(
            request(2),
            [pa.array(c) for c in columns],
            [()],
            np.zeros(4_096, np.int64),
            [32],
            levels,
        )
        for levels in ((), (3, 1))
    )

    assert [level.column for level in plain.levels][:6] == [0, 1, 0, 1, 0, 1]
    assert [level.column for level in ahead.levels][:6] == [1, 1, 0, 1, 0, 1]
    assert np.bincount(ahead.first_file).size == ahead.files == 32
    assert ahead.id != plain.id
    assert ahead.id.startswith(plain.request.id)
