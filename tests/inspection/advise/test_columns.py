"""The columns of a learned layout are those by which the filters of a log read least."""

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from zadapter.inspection.advise.choice import learn_keys, weigh_columns
from zadapter.inspection.advise.columns import MOST_COLUMNS, choose_columns
from zadapter.inspection.advise.judging import SampledTable
from zadapter.layout.filters import Filter, Range

ROWS, FILES = 8_000, 16
COLUMNS = tuple((f"c{at}",) for at in range(10))
RARE = COLUMNS[MOST_COLUMNS:]


def within(column, low, high, weight=1.0):
    """A filter on a range."""
    return Filter(((Range(column, str(low), str(high)),),), weight)


WIDE = [within(column, 5, 994, 10.0) for column in COLUMNS[:MOST_COLUMNS]]
NARROW = [within(column, low, low + 20, 0.1) for column in RARE for low in range(0, 980, 30)]


@pytest.fixture(scope="module")
def table():
    """Rows of independent columns, in one file."""
    values = np.random.default_rng(1).integers(0, 1_000, (len(COLUMNS), ROWS))
    return SampledTable(
        columns=COLUMNS,
        values=tuple(map(pa.array, values)),
        files=file_table(["one"], rows=[ROWS], stats={}),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def chosen(table, filters):
    """The columns that are chosen for filters."""
    weights = weigh_columns(filters, COLUMNS)
    return choose_columns(table, filters, weights, lambda some: learn_keys(filters, some))


def test_rare_columns_that_spare_rows_replace_frequent_ones_that_do_not(table):
    """Ranges of nearly all values skip nothing, however often a log has them."""
    found = chosen(table, [*WIDE, *NARROW])

    assert set(RARE) <= set(found)
    assert len(found) <= MOST_COLUMNS


def test_eight_columns_are_taken_as_they_are(table):
    """Nothing is tried: a log of few columns costs what it did."""
    filters = [*WIDE[:6], *NARROW]

    assert chosen(table, filters) == weigh_columns(filters, COLUMNS)


def test_frequent_columns_stay_where_others_spare_no_more(table):
    """The log filters ten columns alike, and the last ones less often."""
    frequent = [
        within(column, low, low + 20) for column in COLUMNS[:MOST_COLUMNS] for low in (100, 500)
    ]
    filters = [*frequent, *(within(column, 5, 994, 0.1) for column in RARE)]

    assert set(chosen(table, filters)) <= set(COLUMNS[:MOST_COLUMNS])
