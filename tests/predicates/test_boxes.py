"""Boxes hold all rows that a condition matches."""

import pyarrow as pa
import pytest

from zadapter.layout.filters import Range
from zadapter.predicates.boxes import MANY, boxes
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

A, B = ("a",), ("b",)


def is_(column, op, value):
    """A comparison of whole numbers."""
    return Comparison(column, op, pa.scalar(value))


def listed(column, *values):
    """A list of values."""
    return In(column, tuple(map(pa.scalar, values)))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (is_(A, "=", 3), [(Range(A, "3", "3"),)]),
        (is_(A, "<=>", 3), [(Range(A, "3", "3"),)]),
        (is_(A, "<", 3), [(Range(A, None, "3", "left"),)]),
        (is_(A, ">", 3), [(Range(A, "3", None, "right"),)]),
        (Not(is_(A, ">", 3)), [(Range(A, None, "3"),)]),
        (Not(is_(A, "=", 3)), [(Range(A, None, "3", "left"), Range(A, "3", None, "right"))]),
        (Not(is_(A, "<=>", 3)), [()]),
        (Not(listed(A, 3, 7)),
         [(Range(A, None, "3", "left"), Range(A, "3", "7", "neither"),
           Range(A, "7", None, "right"))]),
        (Not(In(A, (pa.scalar(3),), has_null=True)), []),
        (And((Not(is_(A, "=", 3)), is_(A, ">=", 3))), [(Range(A, "3", None, "right"),)]),
        (listed(A, 1, 9), [(Range(A, "1", "1"), Range(A, "9", "9"))]),
        (StartsWith(A, "Ab"), [(Range(A, "Ab", "Ac", "left"),)]),
        (StartsWith(A, "A\ud7ff"), [(Range(A, "A\ud7ff", "A\ue000", "left"),)]),
        (StartsWith(A, "A\U0010ffff"), [(Range(A, "A\U0010ffff", "B", "left"),)]),
        (StartsWith(A, "\U0010ffff"), [(Range(A, "\U0010ffff", None, "left"),)]),
        (And((is_(A, ">=", 3), is_(A, "<", 9), is_(B, "=", 1))),
         [(Range(A, "3", "9", "left"), Range(B, "1", "1"))]),
        (And((is_(A, ">=", 3), is_(A, ">", 3))), [(Range(A, "3", None, "right"),)]),
        (And((listed(A, 1, 5, 9), is_(A, ">", 4))), [(Range(A, "5", "5"), Range(A, "9", "9"))]),
        (And((is_(A, "<", 3), is_(A, ">", 3))), []),
        (And((is_(A, "<", 3), is_(A, ">=", 3))), []),
        (Or((is_(A, "=", 1), is_(B, "=", 2))), [(Range(A, "1", "1"),), (Range(B, "2", "2"),)]),
        (Or((is_(A, "=", 1), Unknown("f(x)"))), [()]),
        (Or((is_(A, "=", 1), Constant(value=False))), [(Range(A, "1", "1"),)]),
        (And((is_(A, "=", 1), Unknown("f(x)"), Not(IsNull(A)))), [(Range(A, "1", "1"),)]),
        (Not(Or((is_(A, "<", 3), is_(B, ">=", 7)))),
         [(Range(A, "3", None), Range(B, None, "7", "left"))]),
        (Not(And((is_(A, "<", 3), is_(B, ">=", 7)))),
         [(Range(A, "3", None),), (Range(B, None, "7", "left"),)]),
        (Not(Not(is_(A, "=", 3))), [(Range(A, "3", "3"),)]),
        (Constant(value=True), [()]),
        (Constant(value=None), []),
        (IsNull(A), [()]),
        (In(A, ()), [()]),
    ],
)  # fmt: skip
def test_boxes_of_a_condition(predicate, expected):
    """What cannot be a range is left out, which makes a box larger."""
    assert list(boxes(predicate)) == expected


def test_a_long_list_is_one_range():
    """From the lowest to the highest value."""
    values = range(0, 3 * MANY + 1, 3)

    assert boxes(listed(A, *values)) == ((Range(A, "0", str(3 * MANY)),),)


def test_many_excluded_values_are_not_ranges_without_end():
    """Each comparison would cut one more range, and be compared with all ranges before."""
    (ranges,) = boxes(And(tuple(Not(is_(A, "=", value)) for value in range(300))))

    assert 2 <= len(ranges) <= MANY + 1
    assert (ranges[0], ranges[-1].high) == (Range(A, None, "0", "left"), None)


def test_boxes_do_not_multiply_without_end():
    """Ten alternatives in ten columns are not 10 000 000 000 boxes."""
    alternatives = [
        Or(tuple(And((is_((f"c{at}",), "=", n), is_((f"d{at}",), "=", n))) for n in range(10)))
        for at in range(10)
    ]

    assert len(boxes(And(tuple(alternatives)))) == 10
    assert boxes(Or(tuple(is_(A, "=", n) for n in range(MANY + 1)))) == ((),)
