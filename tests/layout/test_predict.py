"""What range queries will read is predicted from boxes, and comes true."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.builders import file_table, fitted, placed, tables
from zadapter.base.ranks import rank
from zadapter.layout import predict
from zadapter.layout.predict import UNBOUNDED, Boxes
from zadapter.table import file_stats

EVERYTHING = (-1, UNBOUNDED)


def ranks_of(table):
    return np.stack([rank(column).ranks for column in table], axis=1)


def stats_of(table, file_of, files):
    """The exact stats of each column of each file, by the values in it, and the rows a file."""
    rows = [pa.array(np.flatnonzero(file_of == file)) for file in range(files)]
    stats = {}
    for number, column in enumerate(table):
        held = [column.take(which) for which in rows]
        extremes = [rank(values).distinct for values in held]
        stats[f"c{number}"] = (
            pa.array(
                [values[0].as_py() if len(values) else None for values in extremes], column.type
            ),
            pa.array(
                [values[-1].as_py() if len(values) else None for values in extremes], column.type
            ),
            pa.array([values.null_count for values in held], pa.int64()),
        )
    return stats, np.array([len(which) for which in rows])


def boxes_of(sample, stats, rows):
    """The boxes of files with these stats, and the ranks of a sample among them."""
    files = file_table([str(n) for n in range(len(rows))], rows=rows, stats=stats)
    children = [file_stats.column(files, (f"c{n}",)) for n in range(len(sample))]
    ranked = [rank(values) for values in sample]
    return ranks_of(sample), predict.boxes_of_stats(children, rows, ranked)


@given(table=tables(), files=st.integers(1, 6), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_files_are_read_unless_a_column_excludes_them(table, files, seed):
    """Against an oracle that asks every value of every file."""
    file_of = np.random.default_rng(seed).integers(0, files, len(table[0]))
    stats, rows = stats_of(table, file_of, files)
    ranks, boxes = boxes_of(table, stats, rows)

    ranges = predict.queries(ranks, count=9, seed=seed)

    assert np.array_equal(ranks, ranks_of(table))
    read = 0
    for query in ranges.tolist():
        for file in range(files):
            asked = [
                (ranks[file_of == file, column], low, high)
                for column, (low, high) in enumerate(query)
                if (low, high) != EVERYTHING
            ]
            values = [(held[held > 0], low, high) for held, low, high in asked]
            if all(len(v) and v.min() <= high and v.max() >= low for v, low, high in values):
                read += rows[file]
    assert predict.share_read(boxes, ranges) == pytest.approx(read / len(ranks) / 9)


def one_file(low, high, rows=10):
    return Boxes(np.array([low]), np.array([high]), np.array([rows]))


@pytest.mark.parametrize(
    ("low", "high", "is_read"),
    [
        ([5, 5], [9, 9], True),
        ([1, 5], [4, 9], False),  # below the query in the first column
        ([8, 1], [9, 1], False),  # above it
        ([1, 1], [5, 1], True),  # both ends count
        ([7, 1], [9, 1], True),
        ([0, 0], [UNBOUNDED, UNBOUNDED], True),  # nothing is known
        ([0, 5], [6, 9], True),  # one bound is known
        ([0, 5], [4, 9], False),
        ([0, 5], [-1, 9], False),  # all null where values are asked for
        ([5, 0], [9, -1], True),  # all null where nothing is asked
    ],
)
def test_a_query_of_one_column(low, high, is_read):
    """Ranks 5 to 7 of the first column, whatever the second holds."""
    query = np.array([[[5, 7], EVERYTHING]])

    assert predict.share_read(one_file(low, high), query) == float(is_read)


def test_files_count_by_their_rows():
    """Skipping a large file saves more than skipping a small one."""
    boxes = predict.concat_boxes([one_file([1], [1], rows=30), one_file([2], [2], rows=10)])

    assert predict.share_read(boxes, np.array([[[1, 1]], [[2, 2]], [[1, 2]], [[3, 3]]])) == 0.5
    assert predict.share_read(boxes, np.empty((0, 1, 2), np.int64)) == 0.0
    assert predict.share_read(one_file([1], [1], rows=0), np.array([[[1, 1]]])) == 0.0


def test_files_without_stats_are_always_read():
    """Neither a column without stats nor a null bound excludes anything."""
    column = pa.array([1, 2, 3])
    unknown = pa.nulls(2, pa.int64())

    for stats in (None, (unknown, unknown, unknown)):
        named = {} if stats is None else {"c0": stats}
        ranks, boxes = boxes_of([column], named, np.array([5, 5]))
        assert predict.share_read(boxes, predict.queries(ranks)) == 1.0


@given(table=tables(), seed=st.integers(0, 1 << 40))
@settings(deadline=None, max_examples=30)
def test_the_same_seed_draws_the_same_queries(table, seed):
    """Ranges of values, lowest first, of one, two, or up to all columns in turn; never of null."""
    ranks = ranks_of(table)

    drawn = predict.queries(ranks, count=12, seed=seed)

    assert np.array_equal(drawn, predict.queries(ranks, count=12, seed=seed))
    asked = (drawn != EVERYTHING).any(axis=2)
    low, high = drawn[asked].T
    assert (low >= 1).all()
    assert (low <= high).all()
    if (ranks > 0).any(axis=0).all():
        columns = len(table)
        assert asked.sum(axis=1)[0::3].tolist() == [1] * 4
        assert asked.sum(axis=1)[1::3].tolist() == [min(2, columns)] * 4
        assert 1 <= asked.sum(axis=1)[2::3].min() <= asked.sum(axis=1)[2::3].max() <= columns


def test_queries_are_as_wide_as_promised():
    """A hundredth, a twentieth and a tenth of a column's values, wherever they lie."""
    ranks = np.arange(1, 10_001)[:, None]

    drawn = predict.queries(ranks)[:, 0]

    widths = drawn[:, 1] - drawn[:, 0]
    assert [set(widths[third::3]) for third in range(3)] == [{100}, {500}, {1_000}]
    assert drawn[:, 0].min() < 1_000
    assert drawn[:, 1].max() > 9_000
    assert not np.array_equal(drawn, predict.queries(ranks, seed=1)[:, 0])


@pytest.mark.parametrize("curve", ["adaptive", "zorder", "hilbert", "linear"])
@pytest.mark.parametrize("data", ["smooth", "skewed", "correlated"])
def test_a_sample_predicts_what_the_table_will_read(curve, data):
    """From a tenth of the rows, to within three points of what all rows' stats will say."""
    random = np.random.default_rng(14)
    first = random.zipf(1.4, 30_000) if data == "skewed" else random.random(30_000)
    second = first + random.random(30_000) / 10 if data == "correlated" else random.random(30_000)
    table = [pa.array(first), pa.array(second)]
    sample = [column[:3_000] for column in table]

    layout = fitted(sample, 16, curve=curve)
    ranks = ranks_of(sample)
    predicted = predict.boxes_of_rows(ranks, placed(layout, sample)[1], 16)
    scale, true = boxes_of(sample, *stats_of(table, placed(layout, table)[1], 16))

    share = predict.share_read(true, predict.queries(scale))
    assert true.rows.sum() == 30_000
    assert abs(predict.share_read(predicted, predict.queries(ranks)) - share) < 0.03


def test_boxes_of_sampled_rows_are_moved_out():
    """By as much as extremes of so few rows lie inside the true ones; nulls widen nothing."""
    ranks = np.array([[10, 0], [30, 0], [20, 7], [5, 0]])

    boxes = predict.boxes_of_rows(ranks, np.array([0, 0, 0, 2]), 4)

    assert boxes.low.tolist() == [[0, 7], [0, 0], [5, 0], [0, 0]]
    assert boxes.high.tolist() == [[40, 7], [-1, -1], [5, -1], [-1, -1]]
    assert boxes.rows.tolist() == [3, 0, 1, 0]


def test_bounds_of_a_wider_scale_are_compared_by_value():
    """Bounds beyond the sample, between its values, and infinities find their ranks."""
    sample = pa.array([1.0, 2.0, None, 4.0])
    low, high = pa.array([-9.0, 1.5, float("-inf")]), pa.array([0.5, 3.0, float("nan")])

    ranks, boxes = boxes_of([sample], {"c0": (low, high, pa.array([0, 0, 0]))}, np.array([1, 1, 1]))

    for query, hit in [((1.0, 1.0), [2]), ((2.0, 4.0), [1, 2])]:
        at = [ranks[pc.index(sample, value).as_py(), 0] for value in query]
        mask = (boxes.low[:, 0] <= at[1]) & (boxes.high[:, 0] >= at[0])
        assert np.flatnonzero(mask).tolist() == hit
