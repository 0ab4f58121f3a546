"""A fitted layout cuts rows into even files whose boxes do not overlap."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import fitted, placed, tables
from zadapter.base.ranks import rank
from zadapter.layout import assign, predict
from zadapter.layout.build import FINER, MAX_LEAVES
from zadapter.layout.curves import hilbert_positions
from zadapter.layout.layout import Curve
from zadapter.layout.zvalue import zvalue

EVERY_CURVE = pytest.mark.parametrize("curve", [curve.value for curve in Curve])
TREES = pytest.mark.parametrize("curve", ["adaptive", "linear"])


def shares(layout, file_of):
    """The rows of each file, as multiples of the mean."""
    return np.bincount(file_of, minlength=layout.files) * layout.files / len(file_of)


def bits(layout, leaf):
    """The decisions on the way to each leaf, shape (rows, levels)."""
    depth = len(layout.levels)
    return leaf[:, None] >> np.arange(depth - 1, -1, -1) & 1


def share_read(columns, files, curve):
    """The share of rows that range queries read of what the layout makes of *columns*."""
    layout = fitted(columns, files, curve=curve)
    ranks = np.stack([rank(pa.array(column)).ranks for column in columns], axis=1)
    boxes = predict.boxes_of_rows(ranks, placed(layout, columns)[1], layout.files)
    return predict.share_read(boxes, predict.queries(ranks))


@EVERY_CURVE
def test_any_number_of_files_comes_out_even(curve):
    """Smooth data falls into exactly as many files as asked for, all of about one size."""
    random = np.random.default_rng(1)
    columns = [random.random(2_000), random.normal(size=2_000)]
    for files in range(1, 101) if curve == "adaptive" else (1, 2, 3, 7, 12, 31, 64, 100):
        layout = fitted(columns, files, curve=curve)

        assert layout.files == files
        assert np.abs(shares(layout, placed(layout, columns)[1]) - 1).max() < 0.35


@EVERY_CURVE
@pytest.mark.parametrize("files", [5, 24])
def test_rows_that_were_not_sampled_come_out_even_too(curve, files):
    """A sample of some hundred rows a file is enough."""
    random = np.random.default_rng(2)
    columns = [random.lognormal(3, 2, 30_000), random.random(30_000)]

    layout = fitted([column[: 400 * files] for column in columns], files, curve=curve)
    assert np.abs(shares(layout, placed(layout, columns)[1]) - 1).max() < 0.35


@EVERY_CURVE
@pytest.mark.parametrize("files", [8, 20, 50])
@pytest.mark.parametrize("others", [0, 1])
def test_a_heavy_value_is_shared_by_several_files(curve, files, others):
    """Where one value has most of the rows, no file gets twice the mean, and none is missing."""
    random = np.random.default_rng(3)
    heavy = np.where(random.random(8_000) < 0.6, 50.0, 100 * random.random(8_000))
    columns = [heavy] + [random.random(8_000)] * others

    layout = fitted(columns, files, curve=curve)
    leaf, file_of = placed(layout, columns)

    assert layout.files == files
    assert shares(layout, file_of).max() < 2
    assert len(np.unique(file_of[heavy == 50])) > 0.4 * files
    assert others or layout.width[leaf[heavy == 50]].min() > 1


@TREES
@given(table=tables(), files=st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_no_table_makes_a_file_of_thrice_the_mean(curve, table, files):
    """Whatever the values; rounding to whole files adds up where heavy ones follow one another."""
    layout = fitted(table, files, curve=curve)
    file_of = placed(layout, table)[1]

    assert layout.files == files
    assert np.bincount(file_of).max() <= 3 * len(file_of) / files + 2


@EVERY_CURVE
@pytest.mark.parametrize("rows", [0, 1])
def test_next_to_no_sample_still_makes_the_files(curve, rows):
    """What no cut can divide is shared by hash."""
    layout = fitted([np.full(rows, 7.5), np.full(rows, 1)], 5, curve=curve)
    leaf, _ = placed(layout, [np.full(100, 7.5), np.full(100, 1)])

    assert layout.files == 5
    assert np.bincount(assign.files(layout, leaf, np.arange(100))).tolist() == [20] * 5


@TREES
def test_a_constant_column_is_never_cut(curve):
    """It takes no level, and the other column all of them."""
    column = np.random.default_rng(4).random(1_000)

    layout = fitted([np.zeros(1_000), column], 6, curve=curve)

    assert {level.column for level in layout.levels} == {1}


@TREES
def test_a_file_has_as_many_leaves_as_row_groups(curve):
    """Below the files the tree goes on, evenly, to the row groups."""
    columns = [np.random.default_rng(5).random(4_000) for _ in range(2)]

    layout = fitted(columns, 4, curve=curve, row_groups=8)
    leaf, file_of = placed(layout, columns)

    box = leaf >> FINER

    for file in range(4):
        _, rows = np.unique(box[file_of == file], return_counts=True)
        assert len(rows) == 8
        assert np.abs(rows / 125 - 1).max() < 0.1


@EVERY_CURVE
@pytest.mark.parametrize(
    ("files", "columns", "roots", "row_groups"),
    [(300_000, 2, 1, 8), (5, 2, 1, 1 << 20), (2, 12, 256, 8), (3, 30, 1, 8), (1, 1, MAX_LEAVES, 8)],
)
def test_trees_fit_into_the_look_up_arrays(curve, files, columns, roots, row_groups):
    """However many files, columns, partitions or row groups are asked for."""
    random = np.random.default_rng(6)
    layout = fitted(
        list(random.random((columns, 500))),
        files,
        roots=[(str(root),) for root in range(roots)],
        root_of=random.integers(0, roots, 500),
        curve=curve,
        row_groups=row_groups,
    )

    assert len(layout.first_file) == len(layout.width) == roots << len(layout.levels)
    assert len(layout.first_file) <= MAX_LEAVES
    assert layout.order is None or len(layout.order) == len(layout.first_file)
    assert layout.files == files * roots


@TREES
@given(table=tables(), files=st.integers(2, 20))
@settings(max_examples=100, deadline=None)
def test_boxes_of_different_files_are_disjoint(curve, table, files):
    """Of any two files, one ends below where the other begins, in some column; nulls aside."""
    half = [column[: len(column) // 2] for column in table]
    layout = fitted(half, files, curve=curve)
    leaf, _ = placed(layout, table)
    home = np.unique(layout.first_file[leaf], return_inverse=True)[1]  # shared files as one

    ranks = np.stack([rank(column).ranks for column in table], axis=1)
    low = np.full((home.max() + 1, len(table)), len(leaf) + 1)
    high = np.zeros_like(low)
    np.minimum.at(low, home, np.where(ranks > 0, ranks, len(leaf) + 1))
    np.maximum.at(high, home, ranks)

    apart = ((high[:, None] < low) | (high < low[:, None])).any(axis=2)
    assert apart[~np.eye(len(low), dtype=bool)].all()


@EVERY_CURVE
@given(table=tables(), files=st.integers(1, 20))
@settings(max_examples=40, deadline=None)
def test_nulls_go_left_and_nan_goes_right(curve, table, files):
    """At every cut of their column; so neither lies between numbers."""
    layout = fitted(table, files, curve=curve)
    leaf, _ = placed(layout, table)
    right = bits(layout, leaf)

    for number, level in enumerate(layout.levels):
        column = table[level.column]
        node = leaf >> (len(layout.levels) - number)
        cut_at = level.cuts.is_valid().to_numpy(zero_copy_only=False)[node]
        absent = column.is_null().to_numpy(zero_copy_only=False)
        nan = np.array([value is not None and value != value for value in column.to_pylist()])  # noqa: PLR0124
        assert not right[absent, number].any()
        assert right[nan & cut_at, number].all()
        assert not right[~cut_at, number].any()


@EVERY_CURVE
def test_zeros_of_either_sign_stay_together(curve):
    """-0.0 equals 0.0, so no cut comes between them."""
    column = np.repeat([-1.0, -0.0, 0.0, 1.0], 100)

    leaf = placed(fitted([column], 4, curve=curve), [column])[0]

    assert len(set(leaf[100:300])) == 1
    assert len(set(leaf)) == 3


def test_many_nulls_have_files_of_their_own():
    """Half of the rows is null: half of the files holds nothing else."""
    column = pa.array(np.random.default_rng(7).random(1_000), mask=np.arange(1_000) % 2 == 0)

    file_of = placed(fitted([column], 4), [column])[1]

    assert set(file_of[::2]).isdisjoint(file_of[1::2])


@TREES
@given(table=tables(), files=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_the_order_of_the_sample_does_not_matter(curve, table, files, seed):
    """The same rows make the same layout."""
    order = pa.array(np.random.default_rng(seed).permutation(len(table[0])))

    shuffled = fitted([column.take(order) for column in table], files, curve=curve)

    assert shuffled.to_json() == fitted(table, files, curve=curve).to_json()


@TREES
def test_every_partition_has_its_own_files_and_cuts(curve):
    """Each root comes out even in its own number of files, numbered root by root."""
    random = np.random.default_rng(8)
    root_of = random.integers(0, 3, 6_000)
    columns = [random.random(6_000) + 100 * root_of]
    roots = [("a",), (None,), ("c",)]

    layout = fitted(columns, [3, 1, 5], roots=roots, root_of=root_of, curve=curve)
    file_of = placed(layout, columns, root_of)[1]

    assert layout.roots == tuple(roots)
    assert layout.grain().tolist() == [3, 1, 5]
    for root, files in enumerate([[0, 1, 2], [3], [4, 5, 6, 7, 8]]):
        numbers, rows = np.unique(file_of[root_of == root], return_counts=True)
        assert numbers.tolist() == files
        assert np.abs(rows / rows.mean() - 1).max() < 0.05


@pytest.mark.parametrize("kinds", [(0,), (5, 0), (2, 3, 0)])
def test_linear_files_are_lexicographic_ranges(kinds):
    """Along the rows sorted by all columns, the file never goes back; 0 kinds: smooth."""
    random = np.random.default_rng(9)
    columns = [random.integers(0, n, 6_000) if n else random.random(6_000) for n in kinds]

    layout = fitted([column[:3_000] for column in columns], 24, curve="linear")
    file_of = placed(layout, columns)[1][np.lexsort(columns[::-1])]

    assert len(np.unique(file_of)) == 24
    assert (np.diff(file_of) >= 0).all()


def zvalues(points, _bits):
    """Return z-values, as integers."""
    columns = [pa.array(axis, pa.uint16()) for axis in points.T]
    return [int.from_bytes(key, "big") for key in zvalue(columns, nulls=None).to_pylist()]


@pytest.mark.parametrize(("columns", "size"), [(1, 10), (2, 8), (3, 5)])
@pytest.mark.parametrize(
    ("curve", "positions"), [("zorder", zvalues), ("hilbert", hilbert_positions)]
)
def test_grids_number_the_cells_of_ranks(curve, positions, columns, size):
    """The place of a row is the position of its ranks' highest bits on the curve."""
    random = np.random.default_rng(10)
    ranks = [random.permutation(2_048) for _ in range(columns)]

    layout = fitted(ranks, 4, curve=curve)
    places = assign.leaf_positions(layout, placed(layout, ranks)[0])

    assert np.array_equal(places, positions(np.stack(ranks, axis=1) >> 11 - size, size))
    if curve == "hilbert":
        assert np.array_equal(np.sort(layout.order), np.arange(1 << columns * size))


def test_skewed_data_is_read_less_than_with_zorder():
    """Cuts at the median of what is still in the box leave no cell overfull."""
    random = np.random.default_rng(12)
    skewed = [random.zipf(1.3, 10_000), random.zipf(1.5, 10_000), random.lognormal(3, 2, 10_000)]

    assert share_read(skewed, 64, "adaptive") < 0.7 * share_read(skewed, 64, "zorder")
