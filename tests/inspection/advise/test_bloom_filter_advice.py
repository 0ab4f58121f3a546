"""Bloom filters are advised for columns with many values, with what they will bring."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, snapshot
from zadapter.inspection.advise.bloom_filter_advice import bloom_filters
from zadapter.inspection.advise.judging import SampledTable
from zadapter.layout.filters import Filter, Keys, Range
from zadapter.planning.options import ROW_GROUPS
from zadapter.table.bloom_filters import FPP, size_of

ROWS, FILES, EVERY = 200_000, 4, 10
COLUMNS = ("day", "part", "kind", "price")
RANDOM = np.random.default_rng(5)
VALUES = {
    "day": np.arange(ROWS),
    "part": RANDOM.integers(0, 50_000, ROWS),
    "kind": RANDOM.integers(0, 50, ROWS),
    "price": RANDOM.random(ROWS),
}


def equal(column, *values):
    """A filter for some values of a column."""
    return Filter((tuple(Range((column,), str(v), str(v)) for v in values),), 1.0)


def points(column, count, *others):
    """Filters for values that rows have."""
    drawn = np.random.default_rng(count).choice(VALUES[column], count)
    return [Filter(((*equal(column, v).boxes[0], *others),), 1.0) for v in drawn]


@pytest.fixture(scope="module")
def table():
    """Rows in the order of days, of which every tenth is sampled."""
    return SampledTable(
        columns=tuple((name,) for name in COLUMNS),
        values=tuple(pa.array(VALUES[name][::EVERY]) for name in COLUMNS),
        files=file_table([str(n) for n in range(FILES)], rows=ROWS // FILES),
        roots=((),),
        root_of=np.zeros(ROWS // EVERY, np.int64),
        budget=np.array([FILES]),
        target_file_size=MIB,
        partition=frozenset(),
    )


def advised(table, older, newer=None):
    """The advice for filters, of a layout by day."""
    schema = pa.schema({name: pa.array(VALUES[name]).type for name in COLUMNS})
    return bloom_filters(snapshot(schema), table, Keys({"day": 1.0}), older, newer or older)


def held(column, value):
    """The share of the row groups that hold a value."""
    group = np.arange(ROWS) * FILES * ROW_GROUPS // ROWS
    return len(np.unique(group[VALUES[column] == value])) / (FILES * ROW_GROUPS)


def test_the_effect_is_that_of_the_filters(table):
    """Row groups with the value are read, and of the others the share of false positives."""
    asked = points("part", 60)
    true = np.mean([held("part", int(each.boxes[0][0].low)) for each in asked])

    (effect,) = advised(table, points("part", 80), asked).values()

    assert effect.row_group_share > 0.9
    assert abs(effect.row_group_share_filtered - (true + (1 - true) * FPP)) < 0.02
    assert effect.weight == 1.0
    assert effect.bytes == FILES * ROW_GROUPS * size_of(ROWS // FILES // ROW_GROUPS)


def test_small_files_that_exceed_their_target_stay_as_many(table):
    """A rewrite writes as many files again, and the filters of as many row groups."""
    wide = replace(table, files=file_table(["0"], sizes=9 * MIB, rows=ROWS), counted=FILES * MIB)
    asked = points("part", 60)

    assert advised(wide, asked) == advised(table, asked)


def test_several_values_are_in_more_row_groups(table):
    """Three values, about three times as many."""
    one = advised(table, [equal("part", 7)])["part"]
    three = advised(table, [equal("part", 7, 1_234, 40_000)])["part"]

    ratio = three.row_group_share_filtered / one.row_group_share_filtered
    assert 1.8 < ratio < 3.2


@pytest.mark.parametrize(
    "filters",
    [
        points("kind", 40),
        points("price", 40),
        points("day", 40),
        [Filter(((Range(("part",), "5", "90"),),), 1.0)] * 40,
        [Filter((equal("part", 5).boxes[0], equal("kind", 5).boxes[0]), 1.0)] * 40,
    ],
    ids=["few values", "floats", "a key", "ranges", "or something else"],
)
def test_no_filters_where_they_bring_nothing(table, filters):
    """Every row group has the value, none may be skipped, or the layout serves the column."""
    assert advised(table, filters) == {}


def test_columns_that_few_queries_ask_for_are_left(table):
    """One query of a hundred would save one per cent."""
    assert advised(table, [*points("part", 1), *points("kind", 99)]) == {}
    assert [*advised(table, [*points("part", 30), *points("kind", 70)])] == ["part"]
