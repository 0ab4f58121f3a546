"""Filters in the notation of Spark's plans, as SQL; what cannot be read widens them."""

from functools import reduce

import pytest
from pyspark.sql.types import DateType, IntegerType, StringType, StructType

from zadapter.inspection.querylog import spark_plans
from zadapter.inspection.querylog.column_conditions import ALL, Columns

COLUMNS = Columns(
    StructType().add("a", IntegerType()).add("s", StringType()).add("day", DateType())
)


def equal(value):
    return f"EqualTo(a,{value})"


def balanced(parts):
    """A disjunction as Spark's parser nests it."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"Or({balanced(parts[:half])},{balanced(parts[half:])})"


@pytest.mark.parametrize(
    "nested", [balanced, lambda parts: reduce("Or({},{})".format, parts)], ids=["parsed", "chained"]
)
def test_long_disjunctions_are_read(nested):
    """Hundreds of comparisons, as a parser nests them and as a program chains them."""
    parts = [equal(n) for n in range(300)]

    read = spark_plans.convert_pushed_filters(f"[{nested(parts)}]", COLUMNS)

    assert read.count(" OR ") == 299
    assert "CAST('299' AS int)" in read


def test_conjunctions_of_disjunctions_are_read():
    text = f"[Not(Or(And({equal(1)},IsNotNull(s)),EqualTo(s,f(x, y)))), {equal(2)}]"

    read = spark_plans.convert_pushed_filters(text, COLUMNS)

    assert "(NOT ((" in read
    assert "'f(x, y)'" in read
    assert read.endswith("CAST('2' AS int))")


@pytest.mark.parametrize(
    "unread",
    [
        f"Or({equal(1)},StringContains(s,b))",
        "Or(EqualTo(s,a)),EqualTo(s,(b))",
        f"Or(EqualTo(s,(),{equal(1)})",
    ],
)
def test_what_cannot_be_read_widens_a_filter(unread):
    """Also a value with a single parenthesis."""
    assert spark_plans.convert_pushed_filters(
        f"[{unread}, {equal(2)}]", COLUMNS
    ) == spark_plans.convert_pushed_filters(f"[{equal(2)}]", COLUMNS)


@pytest.mark.parametrize("text", ["[s# INSET a, b, c]", "[NOT a# INSET 1, 2]"])
def test_a_list_without_parentheses_is_not_read(text):
    """Where it ends is unknown."""
    assert spark_plans.partition(text, COLUMNS) == ALL


def test_lists_with_parentheses_are_read():
    read = spark_plans.partition("[s# IN (a,b), NOT a# IN (1,2)]", COLUMNS)

    assert "IN ('a', 'b')" in read
    assert "NOT" in read
