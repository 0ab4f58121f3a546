"""Query logs as values: filters have one form, and a log is divided by time."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.leaves import is_
from zadapter.errors import UsageError
from zadapter.inspection.query_log import (
    SLICES,
    LoggedFilter,
    QueryLog,
    heaviest_first,
    matches_nothing,
    normalize,
    restricts,
)
from zadapter.predicates.boxes import boxes
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Unknown,
)
from zadapter.predicates.texts import text

A, B = is_("a", "=", 1, pa.int32()), is_("b", ">", 2, pa.int32())
NULL_SAFE = is_("a", "<=>", 1, pa.int32())
PRESENT = Not(IsNull(("a",)))


def logged(name, weights):
    """A filter with weights by part of the log."""
    padded = tuple(weights.get(at, 0.0) for at in range(SLICES))
    return LoggedFilter(is_(name, "=", 1, pa.int32()), f"{name} = 1", padded, len(weights))


def log(*filters):
    """A log with some filters and an entry that is not used."""
    return QueryLog(heaviest_first(filters), sum(f.entries for f in filters) + 1, {"no text": 1})


def test_the_order_of_conditions_makes_no_other_filter():
    """Dashboards and people write the same conditions in any order, and Spark nests them."""
    assert normalize(And((A, B))) == normalize(And((B, And((A, B)))))
    assert normalize(And((A,))) == A
    assert normalize(Or((A, B))) == normalize(Or((B, And((A,)), A)))
    two = tuple(map(pa.scalar, ("a", "b")))
    assert normalize(Not(In(("s",), two))) == normalize(Not(In(("s",), two[::-1])))


def test_what_spark_adds_to_comparisons_is_left_out():
    """But not where it says more: null-safe equality and other columns imply nothing."""
    assert normalize(And((PRESENT, A))) == A
    assert normalize(And((PRESENT, In(("a",), (pa.scalar(1),))))) == In(("a",), (pa.scalar(1),))
    assert normalize(And((PRESENT, Not(A)))) == Not(A)
    assert PRESENT in normalize(And((PRESENT, B))).parts
    assert PRESENT in normalize(And((PRESENT, Not(NULL_SAFE)))).parts
    assert PRESENT in normalize(And((PRESENT, NULL_SAFE))).parts


@pytest.mark.parametrize(
    "predicate",
    [
        *(A, Not(A), IsNull(("a",)), StartsWith(("s",), "x"), And((Unknown("Upper"), A))),
        *(Or((A, B)), Not(Or((A, Unknown("Upper")))), Not(Not(A)), NULL_SAFE),
    ],
)
def test_filters_that_can_spare_files(predicate):
    """Some part of them must hold, and bounds answer it."""
    assert restricts(predicate)


@pytest.mark.parametrize(
    "predicate",
    [
        *(Unknown("Upper"), PRESENT, And(()), Constant(value=True), StartsWith(("s",), "")),
        *(Or((A, Unknown("Upper"))), Not(And((A, Unknown("Upper")))), Not(Not(PRESENT))),
        *(And((PRESENT, Unknown("Upper"))), Not(StartsWith(("s",), "")), Not(Unknown("Upper"))),
    ],
)
def test_filters_that_spare_nothing(predicate):
    """One side of OR is enough to need every file; joins add IS NOT NULL to every key."""
    assert not restricts(predicate)


def test_filters_that_no_row_matches():
    """They read nothing in any layout, so they say nothing about one."""
    assert matches_nothing(And((A, Constant(value=False))))
    assert matches_nothing(Constant(value=None))
    assert matches_nothing(And((is_("a", "<=", 3, pa.int32()), is_("a", ">=", 5, pa.int32()))))
    assert not matches_nothing(And((A, Constant(value=True))))


def test_a_log_is_divided_by_time():
    """Filters of both parts are in both, with the weight that they have there."""
    older, newer = log(
        logged("a", {0: 3.0, 15: 1.0}), logged("b", {1: 2.0}), logged("c", {14: 2.0})
    ).split(0.4)

    assert [(f.sql, f.weight) for f in older.filters] == [("a = 1", 3.0), ("b = 1", 2.0)]
    assert [(f.sql, f.weight) for f in newer.filters] == [("c = 1", 2.0), ("a = 1", 1.0)]
    assert (older.entries, older.unused) == (5, {"no text": 1})


@given(
    st.lists(st.dictionaries(st.integers(0, SLICES - 1), st.floats(0.5, 9)), max_size=9),
    st.floats(0.01, 0.99),
)
def test_no_weight_is_lost_or_in_both_parts(weights, holdout):
    """Unless nothing divides the log: then both parts are all of it."""
    whole = log(*(logged(f"c{number}", each) for number, each in enumerate(weights)))
    older, newer = whole.split(holdout)

    if older is whole:
        assert newer is whole
        assert len({at for each in weights for at in each}) <= 1
        return
    assert older.filters
    assert newer.filters
    first = min(at for f in newer.filters for at, w in enumerate(f.weights) if w)
    assert all(w == 0 for f in older.filters for w in f.weights[first:])
    for at in range(SLICES):
        parts = [sum(f.weights[at] for f in part.filters) for part in (older, newer)]
        assert sum(parts) == pytest.approx(sum(f.weights[at] for f in whole.filters))
        assert 0 in parts


@pytest.mark.parametrize("holdout", [0, 1, -0.5, float("nan")])
def test_a_share_lies_between_nothing_and_all(holdout):
    """A part without queries could neither be learned from nor judged by."""
    with pytest.raises(UsageError, match="between 0 and 1"):
        log().split(holdout)


def test_moments_beyond_the_years_of_python_are_values():
    """The end of the year 9999 west of Greenwich is a moment of the year 10000 in UTC."""
    type_ = pa.timestamp("us", "UTC")
    last, first = (
        pa.scalar(n, pa.int64()).cast(type_) for n in (253_402_318_799_000_000, -(10**17))
    )
    listed = normalize(In(("t",), (last, first, last)))

    assert len(listed.values) == 2
    assert "10000-01-01" in text(listed)
    assert boxes(Comparison(("t",), "<", last))
