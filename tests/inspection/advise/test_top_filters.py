"""Queries for the first rows in a column's order count as ranges at its end."""

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from tests.kit.leaves import is_
from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.advise.top_filters import bound_tops, boxes_of
from zadapter.inspection.query_log import LoggedFilter, QueryLog, Top
from zadapter.layout.filters import Range
from zadapter.predicates.predicate import And

SAMPLED, TENANTS, EACH = 5_000, 50, 20
A, TENANT = ("a",), ("tenant",)
EVERY_ROW = And(())


@pytest.fixture
def table():
    """A sample of a twentieth of the rows: ``a`` counts, and each tenant has a run of its values.

    Tenant 0 has the lowest ones; one row of a hundred has no ``a``.
    """
    a = np.arange(SAMPLED)
    stats = {"a": (pa.array([0]), pa.array([SAMPLED]), pa.array([0]))}
    return SampledTable(
        columns=(A, TENANT),
        values=(pa.array(a, mask=a % 100 == 0), pa.array(a * TENANTS // SAMPLED)),
        files=file_table(["0"], rows=[SAMPLED * EACH], stats=stats),
        roots=((),),
        root_of=np.zeros(SAMPLED, np.int64),
        budget=np.array([1]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def bound(table, predicate, top):
    """The filter as the advice counts it, in boxes."""
    log = QueryLog((LoggedFilter(predicate, "", (1.0,), 1, top),), 1, {})
    (found,) = bound_tops(log, table).filters
    assert found.top is None
    return boxes_of(found)


def test_the_last_rows_are_a_range_at_the_end(table):
    """LIMIT 1 000 of 100 000 rows are 50 of the 5 000 sampled ones, on either side."""
    assert bound(table, EVERY_ROW, Top(A, 50 * EACH, descending=True)) == (
        (Range(A, str(SAMPLED - 50), None),),
    )
    # row 0 has no value, so the 50 lowest values end with 50
    assert bound(table, EVERY_ROW, Top(A, 50 * EACH, descending=False)) == (
        (Range(A, None, "50"),),
    )


def test_few_rows_are_beyond_the_last_sampled_one(table):
    """LIMIT 10 of 100 000 rows: not one of them is in the sample."""
    assert bound(table, EVERY_ROW, Top(A, 10, descending=True)) == (
        (Range(A, str(SAMPLED - 1), None),),
    )


def test_only_rows_that_match_count(table):
    """A tenant's last rows lie far below the last rows of all."""
    first = is_("tenant", "=", 0, pa.int64())

    (box,) = bound(table, first, Top(A, 20, descending=True))

    assert set(box) == {Range(TENANT, "0", "0"), Range(A, "99", None)}


@pytest.mark.parametrize(
    ("predicate", "top"),
    [
        (is_("tenant", "=", 7, pa.int64()), Top(A, 10 * SAMPLED, descending=True)),
        (is_("tenant", "=", 7, pa.int64()), Top(("other",), 1, descending=True)),
    ],
    ids=["fewer rows match", "a column that is not sampled"],
)
def test_an_order_that_spares_nothing_is_left_out(table, predicate, top):
    """The query reads all rows that match."""
    assert bound(table, predicate, top) == ((Range(TENANT, "7", "7"),),)


def test_how_far_a_query_reads_is_unknown_beside_other_columns(table):
    """Few rows may match the condition on a column that is not sampled."""
    other = is_("other", "=", 1, pa.int64())

    assert bound(table, other, Top(A, 1, descending=True)) == ((Range(("other",), "1", "1"),),)
