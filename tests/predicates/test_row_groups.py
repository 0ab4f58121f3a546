"""Row groups hold nothing that their files do not hold, whatever their footers leave out."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import snapshot
from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.base.ranks import rank
from zadapter.layout import predict
from zadapter.predicates.row_groups import groups_of
from zadapter.table import file_stats
from zadapter.table.column_bounds import gather
from zadapter.table.footers import ColumnFooter, Footer

NAN = float("nan")
NOTHING = ColumnFooter(None, None, None)


def of_footer(stats, rows=10):
    """Return the footer of one row group with these stats of the column x."""
    return Footer(1, rows, (rows,), {"x": stats})


def row_groups(files, *groups, type_=None):
    """Return the stats of row groups, all of one file."""
    schema = pa.schema([("x", type_ or pa.int64())])
    return groups_of(snapshot(schema), files, [[of_footer(group) for group in groups]], {"x"})


def test_bounds_that_a_footer_lacks_are_the_files():
    """Others stay, and what has no value gets none."""
    files = table_of({"x": bounds(3, 9, nulls=0)}, rows=40, x=pa.int64())
    only_nulls = ColumnFooter(None, None, 10)

    table = row_groups(files, NOTHING, ColumnFooter(4, 5, 1), only_nulls).table

    found = file_stats.column(table, ("x",)).to_pylist()
    assert [(each["min"], each["max"], each["nulls"]) for each in found] == [
        (3, 9, 0),
        (4, 5, 1),
        (None, None, 10),
    ]
    assert [each["bounds"] for each in found] == [1, 0, 2]
    assert gather(table, ("x",)).regular.tolist() == [True, True, False]


@pytest.mark.parametrize(
    "stats",
    [ANY, bounds(9, 3), bounds(None, None, nulls=None), bounds(3, 9, nulls=None, nans=None)],
    ids=["unknown", "contradictory", "none", "nulls unknown"],
)
def test_what_the_file_does_not_say_stays_unknown(stats):
    """Nothing is invented: null may occur as in the file, and values beyond invalid bounds."""
    files = table_of({"x": stats}, rows=40, x=pa.int64())

    table = row_groups(files, NOTHING).table

    ours, theirs = gather(table, ("x",)), gather(files, ("x",))
    assert (ours.low, ours.high) == (theirs.low, theirs.high)
    assert ours.null.tolist() == theirs.null.tolist()
    assert ours.regular.all()


@pytest.mark.parametrize("nans", [0, 2, None])
def test_nan_may_occur_where_it_may_in_the_file(nans):
    """A maximum of NaN is no bound; that of the file's other values is."""
    files = table_of({"x": bounds(3.0, 9.0, nans=nans)}, rows=40, x=pa.float64())

    found = gather(row_groups(files, ColumnFooter(4.0, NAN, 0), type_=pa.float64()).table, ("x",))

    assert (found.low.to_pylist(), found.high.to_pylist()) == ([4.0], [9.0])
    assert found.nan.tolist() == [nans != 0]


def test_stats_of_another_type_or_column_are_no_evidence():
    """A column that the files' table has no stats of stays unknown."""
    files = table_of({"y": bounds(3, 9)}, rows=40, y=pa.int64())
    texts = table_of({"x": bounds("a", "b")}, rows=40, x=pa.string())

    for each in (files, texts):
        assert gather(row_groups(each, NOTHING).table, ("x",)).low.to_pylist() == [None]


@given(data=st.data(), files=st.integers(1, 6), groups=st.integers(1, 4), seed=st.integers(0, 99))
def test_filters_read_no_more_by_row_group_than_by_file(data, files, groups, seed):
    """Whichever footers have bounds: the share by row group is at most that of the same files."""
    random = np.random.default_rng(seed)
    values = [np.sort(random.integers(0, 40, (groups, 10)), axis=1) for _ in range(files)]
    table = table_of(
        *({"x": bounds(int(each.min()), int(each.max()))} for each in values),
        rows=groups * 10,
        x=pa.int64(),
    )
    told = data.draw(st.lists(st.booleans(), min_size=files * groups, max_size=files * groups))
    footers = [
        [
            of_footer(ColumnFooter(int(row[0]), int(row[-1]), 0) if said else NOTHING)
            for row, said in zip(each, told[at * groups :], strict=False)
        ]
        for at, each in enumerate(values)
    ]
    by_group = groups_of(snapshot(pa.schema([("x", pa.int64())])), table, footers, {"x"}).table
    sample = [rank(pa.array(np.concatenate(values).ravel()))]

    shares = []
    for each in (table, by_group):
        stats = [file_stats.column(each, ("x",))]
        boxes = predict.boxes_of_stats(stats, file_stats.row_counts(each), sample)
        ranges = predict.queries(sample[0].ranks[:, None], count=12, seed=seed)
        shares.append(predict.share_read(boxes, ranges))

    assert shares[1] <= shares[0] + 1e-9
