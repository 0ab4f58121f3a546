"""Predicates cannot be wrong, and tell which columns they are about."""

import pyarrow as pa
import pytest

from zadapter.predicates.predicate import (
    OPERATORS,
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Unknown,
    columns,
)

ONE, NULL = pa.scalar(1, pa.int32()), pa.scalar(None, pa.int32())


def test_columns_are_those_of_every_leaf():
    """Connectives are looked through; constants and what is not evaluated have no columns."""
    predicate = And(
        (
            Or((Comparison(("a",), "=", ONE), Not(In(("b", "c"), (ONE,), has_null=True)))),
            Not(Not(And((StartsWith(("d",), "x"), IsNull(("e",)), IsNull(("a",)))))),
            Constant(value=None),
            Unknown("f(g) = 1"),
        )
    )

    assert columns(predicate) == {("a",), ("b", "c"), ("d",), ("e",)}
    assert columns(Constant(value=True)) == columns(And(())) == frozenset()


def test_columns_of_a_deep_tree():
    """Depth is no reason to fail."""
    predicate = IsNull(("a",))
    for _ in range(10_000):
        predicate = Or((Not(predicate),))

    assert columns(predicate) == {("a",)}


@pytest.mark.parametrize("op", OPERATORS)
def test_nothing_is_compared_with_null(op):
    """``x = NULL`` is a constant and ``x <=> NULL`` is IsNull: one way to say each."""
    assert Comparison(("a",), op, ONE).op == op
    with pytest.raises(ValueError, match="NULL"):
        Comparison(("a",), op, NULL)
    with pytest.raises(ValueError, match="has_null"):
        In(("a",), (ONE, NULL))


@pytest.mark.parametrize("op", ["<>", "!=", "==", "", "like"])
def test_operators_are_few(op):
    """What NOT can say has no operator of its own."""
    with pytest.raises(ValueError, match="operator"):
        Comparison(("a",), op, ONE)


def test_predicates_are_values():
    """Equal predicates are one key, and none changes."""
    first, second = (And((Comparison(("a",), "=", pa.scalar(1)), IsNull(("b",)))) for _ in "ab")

    assert {first: "found"}[second] == "found"
    with pytest.raises(AttributeError):
        first.parts = ()
