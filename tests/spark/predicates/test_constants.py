"""Constants of conditions: the clock, bytes and digits."""

import pyarrow as pa
import pytest

from tests.kit.leaves import is_, leaves
from zadapter.predicates.predicate import Unknown


def test_the_clock_excludes_nothing_later(read):
    """Rows that are found tomorrow are not those that are found today."""
    text = "day > current_date() - INTERVAL 3 DAYS AND i = 1"
    now, later = leaves(read(text)), leaves(read(text, later=True))

    assert {leaf.column for leaf in now} == {("day",), ("i",)}
    assert later == [is_("i", "=", 1, pa.int32())]
    assert leaves(read("ts < now() OR i = 1", later=True)) == []


@pytest.mark.parametrize(
    "text",
    [
        *("ts < 'now'", "NOT ts >= cast('now' AS timestamp)", "day = 'Today'", "ts > '12:00'"),
        *("day = to_date('yesterday')", "ts < timestamp'now'", "ts > 'T7:30'", "s = '${wanted}'"),
        *("day < nearly()", "day < nearly() AND i = 1"),
    ],
)
def test_the_clock_may_be_hidden_in_a_constant(spark, read, text):
    """What is a constant once Spark has parsed or optimised it is another one tomorrow."""
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION nearly() RETURNS date RETURN current_date()")
    assert not isinstance(read(text), Unknown)
    assert isinstance(read(text, later=True), Unknown)


def test_texts_that_are_no_utf8_exclude_nothing(read):
    """JSON has another character in the place of such bytes."""
    for text in ("s < cast(X'ff' AS string)", "startswith(s, cast(X'F0' AS string))"):
        assert all(isinstance(leaf, Unknown) for leaf in leaves(read(text)))
    listed = ", ".join(f"'{n}'" for n in range(20))
    assert isinstance(*leaves(read(f"s IN ({listed}, cast(X'ff' AS string))")), Unknown)


def test_floats_are_rounded_once(read):
    """By way of a double, this one would become its neighbour."""
    (found,) = leaves(read("f = 7.038531E-26F"))

    assert found.value == pa.scalar("7.038531E-26").cast(pa.float32())
    assert found.value != pa.scalar(7.038531e-26, pa.float32())
