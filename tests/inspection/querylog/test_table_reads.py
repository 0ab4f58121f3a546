"""Which tables the names and locations of a log mean."""

import pytest

from zadapter.inspection.querylog.spelling import Spelling
from zadapter.inspection.querylog.table_reads import Names, names_read


def spelling(location, *names, known=()):
    return Spelling(
        names or (location.rpartition("/")[2],), location, bool(names), known.__contains__
    )


NAMES = Names(
    {
        "sales": spelling("/lake/sales/orders", "spark_catalog", "sales", "orders"),
        "ice": spelling("s3://b/warehouse/x-1", "ice", "db", "visits"),
        "raw": spelling("/lake/raw/orders", known=[("hr", "orders")]),
        "clean": spelling("/lake/clean/orders"),
        "visits": spelling("/lake/raw/Visits"),
    }
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("spark_catalog.sales.orders", ["sales"]),
        ("sales.orders", ["sales"]),
        ("Clean.Orders", ["clean"]),
        ("raw.orders", ["raw"]),
        ("orders", ["sales", "raw", "clean"]),
        ("hr.orders", ["clean"]),
        ("db.visits", ["ice"]),
        ("visits", ["ice", "visits"]),
        ("nothing", []),
    ],
)
def test_a_name_means_the_tables_of_which_it_matches_most(name, expected):
    assert NAMES.of_name(tuple(name.split("."))) == expected


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("file:/lake/raw/orders", ["raw"]),
        ("file:/lake/raw/orders/day=1", ["raw"]),
        ("s3a://b/warehouse/x-1", ["ice"]),
        ("s3a://b/warehouse/x-12", []),
        ("file:/lake/raw", []),
    ],
)
def test_a_location_means_the_table_whose_files_are_there(location, expected):
    assert NAMES.of_location(location) == expected
    assert NAMES.of_name(("delta", location)) == expected


def test_names_in_a_plan():
    """Not the target of an insertion, and not what ``WITH`` defines."""
    plan = """CTE [c]
:  +- 'SubqueryAlias c
:     +- 'Filter 'x IN (list#2 [])
:        :  +- 'Project ['y]
:        :     +- 'UnresolvedRelation [o d, t], [], false
:        +- 'UnresolvedRelation [a, b], [], false
+- 'InsertIntoStatement 'UnresolvedRelation [t], [__required_write_privileges__=INSERT], false
   +- 'Join Inner
      :- 'UnresolvedRelation [C], [], false
      +- 'RelationTimeTravel 'UnresolvedRelation [s], [], false, 3
"""

    assert names_read(plan) == [("o d", "t"), ("a", "b"), ("s",)]
