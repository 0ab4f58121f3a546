"""Weights of a list of queries, which need no Spark."""

from fractions import Fraction

import pytest

from zadapter.base.quantities import MOST_WEIGHT
from zadapter.errors import UsageError
from zadapter.inspection.query_log import SLICES, LoggedFilter, QueryLog
from zadapter.inspection.querylog.sources import read_entries
from zadapter.predicates.predicate import And


@pytest.mark.parametrize(
    ("weight", "shown"),
    [
        (1e307, "1e+307"),
        (10**400, "1000000"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (-1.0, "-1.0"),
        ("2", "'2'"),
        (True, "True"),
    ],
    ids=str,
)
def test_a_weight_that_no_sum_could_have_is_refused(weight, shown):
    """With its place in the list: sums of such weights have no end."""
    with pytest.raises(UsageError) as raised:
        read_entries(["id = 1", ("id = 2", weight)], None, "")

    assert f"queries[1] is a text with the weight {shown}" in str(raised.value)
    assert str(raised.value).endswith("a number above 0 and up to 1e+15")


@pytest.mark.parametrize("weight", [5e-324, 1, Fraction(1, 3), MOST_WEIGHT])
def test_any_other_weight_counts(weight):
    """Also of as many queries as a log has, in the division of the log by time."""
    found = read_entries([("id = 1", weight)] * 1_000, None, "")
    filters = tuple(LoggedFilter(And(()), "", each.weights, each.entries) for each in found.groups)

    older, newer = QueryLog(filters, 1_000, {}).split(0.5)

    assert len(found.groups[0].weights) == SLICES
    assert older.filters[0].weight == pytest.approx(newer.filters[0].weight, rel=0.1)
