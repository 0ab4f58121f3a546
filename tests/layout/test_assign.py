"""Where a layout sends rows: down a tree, then to a file."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import fitted, placed, request, tables
from zadapter.layout import assign
from zadapter.layout.layout import Curve, Layout
from zadapter.layout.levels import Level

BY_HAND = Layout(
    request=request(2),
    roots=(("old",), ("new",)),
    levels=(
        Level(0, pa.array([10, 20])),
        Level(1, pa.array(["m", None, "x", ""])),
    ),
    first_file=np.array([0, 0, 1, 1, 2, 3, 3, 4], np.int32),
    width=np.array([1, 1, 1, 1, 1, 1, 1, 3], np.int32),
    order=np.array([0, 1, 3, 2, 0, 1, 3, 2], np.int32),
)


@pytest.mark.parametrize(
    ("root", "number", "text", "leaf", "file", "place"),
    [
        (0, 9, "a", 0, 0, 0),
        (0, 9, "m", 1, 0, 1),  # right if not below the cut
        (0, 10, "a", 2, 1, 3),
        (0, 10, "zzz", 2, 1, 3),  # a null cut sends every row left
        (0, None, "n", 1, 0, 1),  # null goes left
        (0, None, None, 0, 0, 0),
        (1, 19, "w", 4, 2, 4),
        (1, 19, "x", 5, 3, 5),
        (1, 20, None, 6, 3, 7),
        (1, 20, "", 7, 4, 6),
    ],
)
def test_a_tree_by_hand(root, number, text, leaf, file, place):
    """Two partitions, a level by a number, a level by a text."""
    columns = [pa.array([number], pa.int64()), pa.array([text], pa.string())]

    found = assign.leaves(BY_HAND, columns, np.array([root]))

    assert found.tolist() == [leaf]
    assert assign.files(BY_HAND, found, np.array([0])).tolist() == [file]
    assert assign.leaf_positions(BY_HAND, found).tolist() == [place]


@pytest.mark.parametrize("counts", [[1], [2], [3], [8], [13], [64], [5, 1, 16], [0, 3, 0]])
def test_names_number_the_files_of_each_root(counts):
    """Each file once, those of a root together, its last and its first file first."""
    ends = np.cumsum(counts)
    layout = replace(BY_HAND, roots=tuple((str(n),) for n in range(len(counts))), levels=(),
                     first_file=(ends - counts).astype(np.int32), order=None,
                     width=np.array(counts, np.int32))  # fmt: skip

    numbers = assign.name_numbers(layout)

    assert sorted(numbers.tolist()) == list(range(sum(counts)))
    for count, end in zip(counts, ends.tolist(), strict=True):
        mine = np.argsort(numbers)[end - count : end]
        assert sorted(mine.tolist()) == list(range(end - count, end))
        assert mine[:2].tolist() == [end - 1, end - count][:count]


@pytest.mark.parametrize("start", [0, 20, 48])
def test_the_files_that_are_read_first_are_spread_over_any_part(start):
    """Of 16 files in a row, the first four that readers meet lie in three quarters at least."""
    layout = replace(BY_HAND, roots=((),), levels=(), first_file=np.zeros(1, np.int32),
                     order=None, width=np.array([64], np.int32))  # fmt: skip

    read = [at for at in np.argsort(assign.name_numbers(layout)) if start <= at < start + 16]

    assert len({(at - start) // 4 for at in read[:4]}) >= 3


def test_rows_of_a_heavy_leaf_are_dealt_out():
    """Evenly, by a salt, to the files that share the leaf; other leaves know no salt."""
    salt = np.arange(9)

    assert assign.files(BY_HAND, np.full(9, 7), salt).tolist() == [4, 5, 6] * 3
    assert assign.files(BY_HAND, np.full(9, 5), salt).tolist() == [3] * 9


def is_right(value, cut):
    """Spark's ``value >= cut``, null counting as false."""
    if value is None or cut is None:
        return False
    if isinstance(value, float) and math.isnan(value):
        return True
    return not (isinstance(cut, float) and math.isnan(cut)) and value >= cut


def walk(layout, row, node):
    """The leaf of one row, step by step."""
    for level in layout.levels:
        node = 2 * node + is_right(row[level.column], level.cuts[node].as_py())
    return node


@pytest.mark.parametrize("curve", [curve.value for curve in Curve])
@given(table=tables(), files=st.integers(1, 9), data=st.data())
@settings(deadline=None, max_examples=20)
def test_rows_walk_down_the_tree_one_by_one(curve, table, files, data):
    """Whole columns go where single rows do, also rows that were not sampled."""
    half = [column[::2] for column in table]
    root_of = np.arange(len(table[0])) % 2
    roots = [("even",), ("odd",)]
    layout = fitted(half, files, roots=roots, root_of=root_of[: len(half[0])], curve=curve)

    leaf, _ = placed(layout, table, root_of)

    rows = zip(*(column.to_pylist() for column in table), strict=True)
    picked = data.draw(st.sets(st.integers(0, len(leaf) - 1), max_size=40))
    expected = {number: walk(layout, row, number % 2) for number, row in enumerate(rows)}
    assert {number: leaf[number] for number in picked} == {n: expected[n] for n in picked}


def test_a_tree_without_levels_has_one_leaf_a_partition():
    """A row's root is its leaf then."""
    layout = fitted([[1.0, 1.0]], 1, roots=[("a",), ("b",)], root_of=np.array([0, 1]))

    assert layout.levels == ()
    assert placed(layout, [[5.0, None]], np.array([1, 0]))[0].tolist() == [1, 0]


def test_files_may_have_different_numbers_of_row_groups():
    """Those of small runs have fewer."""
    columns = list(np.random.default_rng(2).integers(0, 1_000, (2, 5_000)))
    layout = fitted(columns, 7)
    leaf, file = placed(layout, columns)

    found = assign.row_groups(layout, leaf, file, np.arange(1, 8))

    groups = [np.unique(found[file == number]).tolist() for number in range(7)]
    assert [len(numbers) for numbers in groups] == list(range(1, 8))
    assert np.concatenate(groups).tolist() == list(range(28))


@pytest.mark.parametrize("row_groups", [1, 3, 16])
def test_row_groups_cut_each_file_evenly_along_the_curve(row_groups):
    """As a writer does that begins a new one after so many rows."""
    columns = list(np.random.default_rng(2).integers(0, 1_000, (2, 5_000)))
    layout = fitted(columns, 7, row_groups=row_groups)
    leaf, file = placed(layout, columns)
    place = assign.leaf_positions(layout, leaf)

    found = assign.row_groups(layout, leaf, file, np.full(layout.files, layout.request.row_groups))

    assert (found // row_groups == file).all()
    for number in range(7):
        mine = file == number
        assert (np.diff(found[mine][np.argsort(place[mine], kind="stable")]) >= 0).all()
        counts = np.bincount(found[mine] % row_groups, minlength=row_groups)
        assert counts.max() - counts.min() <= 1
