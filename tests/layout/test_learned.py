"""Trees that are learned from filters."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import fitted, placed, request
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Range, rank_filters
from zadapter.layout.layout import Layout
from zadapter.layout.learned import HALF

ROWS, FILES = 20_000, 32
NEVER = 1 << 60


def equals(column, value):
    """A filter on one value of column c0, c1 and so on."""
    return Filter(((Range((f"c{column}",), str(value), str(value)),),), 1.0)


def within(column, low, high):
    """A filter on a range."""
    return Filter(((Range((f"c{column}",), str(low), str(high)),),), 1.0)


def table(columns=3, seed=1):
    """Independent columns of a thousand values each."""
    return list(np.random.default_rng(seed).integers(0, 1_000, (columns, ROWS)))


def learned(columns, filters, files=FILES, roots=((),), root_of=None, **options):
    """A layout that is fitted to filters."""
    asked = replace(request(len(columns), **options), filters=tuple(filters))
    roots_of = np.zeros(len(columns[0]), np.int64) if root_of is None else root_of
    return fit(asked, [pa.array(c) for c in columns], roots, roots_of, [files] * len(roots))


def share_read(layout, columns, filters, root_of=None):
    """The mean share of rows in files that filters can not skip."""
    return share_of(placed(layout, columns, root_of)[1], columns, filters)


def share_of_boxes(layout, columns, filters):
    """The same share of rows in the boxes below files, which row groups consist of."""
    return share_of(placed(layout, columns)[0], columns, filters)


def share_of(part, columns, filters):
    """The mean share of rows in parts that filters can not skip."""
    parts = int(part.max()) + 1
    low, high = np.full((2, parts, len(columns)), NEVER)
    high[:] = -1
    ranks = np.stack(columns, axis=1) + 1
    np.minimum.at(low, part, ranks)
    np.maximum.at(high, part, ranks)
    distinct = [pa.array(np.arange(1_000)) for _ in columns]
    names = [(f"c{number}",) for number in range(len(columns))]
    hit = rank_filters(filters, names, distinct).hits(low, high)
    return float((np.bincount(part, minlength=parts) @ hit).mean() / len(part))


def test_columns_that_filters_do_not_use_are_not_cut():
    """All files tell the values of one column apart."""
    columns = table()
    layout = learned(columns, [equals(1, value) for value in range(0, 1_000, 25)])

    files = {each.column for level in layout.levels[:5] for each in level.by_column}

    assert files == {1}


def test_each_half_is_cut_by_the_column_that_its_filters_use():
    """Where c0 is low, filters ask for c1, and elsewhere for c2: a level has both columns."""
    columns = table()
    asks = [
        Filter(((Range(("c0",), low, high), Range((column,), value, value)),), 1.0)
        for low, high, column in (("0", "499", "c1"), ("500", "999", "c2"))
        for value in map(str, range(5, 1_000, 20))
    ]
    layout = learned(columns, asks)
    plain = fit(request(3), [pa.array(c) for c in columns], [()], np.zeros(ROWS, np.int64), [FILES])

    assert any({each.column for each in level.by_column} == {1, 2} for level in layout.levels)
    assert share_read(layout, columns, asks) < 0.7 * share_read(plain, columns, asks)


def test_filters_to_come_are_spared_as_much():
    """Other values of the same columns: the tree is not made for the given values alone."""
    columns, random = table(), np.random.default_rng(9)
    given, to_come = (
        [within(0, low, low + 30) for low in random.integers(0, 960, 80)]
        + [equals(1, value) for value in random.integers(0, 1_000, 80)]
        for _ in range(2)
    )
    layout = learned(columns, given)

    known, new = (share_read(layout, columns, asks) for asks in (given, to_come))

    assert new < 1.25 * known


def test_a_column_is_spared_without_the_better_one_beside_it():
    """Given filters ask for c0 or c2 and for a short range of c1; others ask for c2 alone."""
    columns, random = table(), np.random.default_rng(9)
    given = [
        Filter(((*equals(column, value).boxes[0], *within(1, low, low + width).boxes[0]),), 1.0)
        for column, value, width in ((0, 7, 3), (2, 500, 20))
        for low in random.integers(0, 960, 80)
    ]
    layout = learned(columns, given)

    assert share_read(layout, columns, [equals(2, value) for value in range(0, 1_000, 9)]) < 0.7


@pytest.mark.parametrize("files", [1, 2, 3, 7, FILES])
def test_no_file_is_smaller_than_half_of_the_mean(files):
    """However skewed the filters are, and every file is written."""
    columns = table()
    layout = learned(columns, [equals(0, value) for value in range(20)], files)

    sizes = np.bincount(placed(layout, columns)[1], minlength=files) * files / ROWS

    assert layout.files == files
    assert sizes.min() > 0.9 * HALF
    assert sizes.max() < 2.5


def test_every_partition_has_a_tree_of_its_own():
    """The same filters, other rows."""
    columns, root_of = table(), np.arange(ROWS) % 3
    columns[0] = np.where(root_of == 0, columns[0] // 10, columns[0])
    asks = [equals(0, value) for value in range(0, 1_000, 10)]
    layout = learned(columns, asks, 8, [("a",), ("b",), ("c",)], root_of)

    leaf, file = placed(layout, columns, root_of)

    assert layout.files == 24
    assert (file // 8 == root_of).all()
    assert share_read(layout, columns, asks, root_of) < 0.2
    assert np.unique(leaf).size > 24


def test_a_filter_that_spares_nothing_leaves_the_cuts_to_the_columns_in_turn():
    """All rows match it: the files are as even as ever."""
    columns = table()
    layout = learned(columns, [within(0, 0, 999)])

    sizes = np.bincount(placed(layout, columns)[1], minlength=FILES)

    assert sizes.min() > 0.5 * ROWS / FILES


def test_a_learned_layout_survives_being_written():
    """With the filters, which later runs are fitted to, and a format of its own."""
    columns = table()
    asks = [equals(0, 3), *(equals(1, value) for value in range(0, 1_000, 50))]
    layout = learned(columns, asks)

    again = Layout.from_json(layout.to_json())

    assert again == layout
    assert again.request.filters == tuple(asks)
    assert layout.request.id != replace(layout.request, filters=()).id
    keys = [pa.array(column) for column in columns]
    here = np.zeros(ROWS, np.int64)
    assert (assign.leaves(again, keys, here) == assign.leaves(layout, keys, here)).all()


def test_nulls_widen_no_file():
    """They go left, and filters on values do not meet them."""
    columns = table(2)
    keys = [pa.array(columns[0], mask=columns[0] % 2 == 0), pa.array(columns[1])]
    asks = [equals(0, value) for value in range(1, 1_000, 50)]
    asked = replace(request(2), filters=tuple(asks))
    layout = fit(asked, keys, [()], np.zeros(ROWS, np.int64), [FILES])

    file = placed(layout, keys)[1]

    hit = [np.unique(file[columns[0] == value]).size for value in range(1, 1_000, 50)]
    assert max(hit) <= FILES // 4


@pytest.mark.parametrize("files", [4, FILES, 45])
def test_steady_columns_are_cut_whatever_the_filters_ask(files):
    """Queries of a column that filters never name read about as much as of columns in turn."""
    columns = table()
    asks = [equals(0, value) for value in range(0, 1_000, 10)]
    others = [equals(1, value) for value in range(5, 1_000, 30)]
    steady, free = (learned(columns, asks, files, weights=[w] * 3) for w in (2.0, 1.0))
    in_turn = fitted(columns, files)

    asked, unasked = (
        [share_read(layout, columns, each) for layout in (steady, free, in_turn)]
        for each in (asks, others)
    )

    assert unasked[1] > 0.95
    assert unasked[0] < 0.65
    assert asked[0] < asked[2] + 0.02


def test_row_groups_are_cut_by_steady_columns_that_files_are_cut_least_by():
    """So queries of any of them read about as few row groups as of columns in turn."""
    columns = table()
    asks = [equals(0, value) for value in range(0, 1_000, 10)]
    in_turn = fitted(columns, FILES)
    steady = learned(columns, asks, weights=[2.0] * 3)

    for at in range(3):
        others = [equals(at, value) for value in range(5, 1_000, 30)]
        shares = [share_of_boxes(layout, columns, others) for layout in (steady, in_turn)]
        assert shares[0] < 1.35 * shares[1]


def test_weights_up_to_one_leave_the_files_to_the_filters():
    """So stored layouts without steady columns are fitted as they were."""
    columns = table()
    asks = [equals(0, 3), *(equals(1, value) for value in range(0, 1_000, 50))]

    files = [
        placed(learned(columns, asks, weights=weights), columns)[1]
        for weights in ([1.0, 1.0, 1.0], [1.0, 0.4, 0.05])
    ]

    assert (files[0] == files[1]).all()


def test_steady_columns_are_cut_in_proportion_to_their_weights_less_one():
    """Filters on another column leave three of the five reserved levels to the heaviest one."""
    columns = table(4)
    asks = [equals(3, value) for value in range(0, 1_000, 10)]
    weights = [1.9, 1.3, 1.3, 0.05]
    layout = learned(columns, asks, 64, weights=weights)

    shares = [
        share_read(layout, columns, [equals(at, value) for value in range(5, 1_000, 30)])
        for at in range(4)
    ]

    assert shares == pytest.approx([1 / 8, 1 / 2, 1 / 2, 1 / 2], rel=0.3)


def test_equal_filters_count_as_one_of_their_weight():
    """A log may repeat a filter or count it: the layout is the same."""
    columns = table()
    once = [equals(0, 500), *(within(1, low, low + 40) for low in range(0, 960, 60))]
    counted = [replace(once[0], weight=30.0), *once[1:]]

    repeated, weighed = (
        placed(learned(columns, asks), columns)[0]
        for asks in ([*once[:1] * 30, *once[1:]], counted)
    )

    assert (repeated == weighed).all()
