"""A filter of a joined table leaves the range of keys that its rows have."""

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.leaves import is_
from zadapter.inspection.dimension import Dimension, JoinedFilter
from zadapter.predicates.predicate import And, In, Or, Unknown

YEAR, MONTH, KEY = ("year",), ("month",), ("key",)
YEARS, MONTHS, DAYS = 7, 12, 30


@pytest.fixture
def dates():
    """Seven years of months of 30 days, whose keys are the numbers of the days."""
    year, month = np.divmod(np.arange(YEARS * MONTHS), MONTHS)
    first = np.arange(YEARS * MONTHS) * DAYS
    return Dimension(
        columns=(MONTH, YEAR),
        values=(pa.array(month + 1), pa.array(year + 1992)),
        low=pa.array(first),
        high=pa.array(first + DAYS - 1),
        keys=np.full(YEARS * MONTHS, DAYS),
    )


def year(value):
    return is_("year", "=", value, pa.int64())


def month(value):
    return is_("month", "=", value, pa.int64())


@pytest.mark.parametrize(
    ("predicate", "low", "high", "share"),
    [
        (year(1993), 360, 719, 1 / 7),
        (And((year(1993), month(2))), 390, 419, 1 / 84),
        # the same month of all years: a twelfth of the keys, and nearly the range of all
        (month(12), 330, 2_519, 1 / 12),
        (In(YEAR, (pa.scalar(1992), pa.scalar(1998))), 0, 2_519, 2 / 7),
        (Or((And((year(1992), month(12))), And((year(1993), month(1))))), 330, 389, 2 / 84),
        (year(2020), None, None, 0.0),
    ],
)
def test_the_range_of_a_filter(dates, predicate, low, high, share):
    """From the lowest to the highest key of the rows that match; null if none does."""
    [found] = dates.find_ranges([predicate])

    assert (found[0].as_py(), found[1].as_py()) == (low, high)
    assert found[2] == pytest.approx(share)


def test_a_range_contains_the_keys_of_all_rows_that_match():
    """Whatever the order of the keys, and with keys and values that are missing."""
    draw = np.random.default_rng(5)
    for _ in range(20):
        keys, places = draw.permutation(400), draw.integers(0, 12, 400)
        missing = draw.random(400) < 0.1
        groups = [keys[(places == at) & ~missing] for at in range(12)]
        dimension = Dimension(
            columns=(("place",),),
            values=(pa.array(range(12)),),
            low=pa.array([min(each, default=None) for each in groups], pa.int64()),
            high=pa.array([max(each, default=None) for each in groups], pa.int64()),
            keys=np.array([len(each) for each in groups]),
        )
        asked = [is_("place", "<=", int(at), pa.int64()) for at in draw.integers(0, 12, 150)]

        for each, (low, high, share) in zip(asked, dimension.find_ranges(asked), strict=True):
            matching = keys[(places <= each.value.as_py()) & ~missing]
            assert (low.as_py(), high.as_py()) == (matching.min(), matching.max())
            assert share == pytest.approx(len(matching) / (~missing).sum())


def test_which_columns_a_filter_restricts():
    """A condition without ranges leaves all keys; beside another one it is left out."""
    unknown = Unknown("endswith(name, 'x')")

    def joined(predicate):
        return JoinedFilter(("day",), "s3://lake/db/dates/", KEY, predicate)

    assert joined(And((year(1993), month(2)))).through == "dates.month, year"
    assert joined(And((year(1993), unknown))).filtered == (YEAR,)
    assert joined(unknown).filtered == ()
    assert joined(Or((year(1993), unknown))).filtered == ()
    assert str(joined(year(1993))) == "day IN (dates WHERE year = 1993)"
