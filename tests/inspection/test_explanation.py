"""Each file is kept or skipped as pruning says, and the reason is true."""

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.conditions import read
from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.inspection.conjuncts import conjunct_facts, explain_files
from zadapter.inspection.explanation import READS_LESS, READS_MORE, differences
from zadapter.predicates.predicate import And, Comparison, Constant, In, IsNull, Not, Or, Unknown
from zadapter.predicates.pruning import matching
from zadapter.predicates.texts import causes, conjuncts, text

TYPES = {"i": pa.int64(), "f": pa.float64(), "s": pa.string()}
NAN = float("nan")


def file(dice):
    """Return the stats of one file: bounds, none, nulls only, NaN beside numbers."""
    low, start = dice.randrange(50), dice.choice("abcdef")
    number = dice.choice([bounds(low, low + dice.randrange(9)), ANY, bounds(None, None, nulls=10)])
    floats = dice.choice(
        [bounds(low / 2, low / 2 + 3), bounds(low / 2, NAN, nans=None), bounds(NAN, NAN, nans=10)]
    )
    words = dice.choice([bounds(start, start + "z" * 8), bounds(start, start, nulls=4), ANY])
    return {"i": number, "f": floats, "s": words}


def leaf(dice):
    """Return a condition on one column, or one that bounds say nothing about."""
    five, op = pa.scalar(dice.randrange(60)), dice.choice(["=", "<", ">=", "<=>"])
    words = tuple(map(pa.scalar, dice.sample(["a", "bb", "c", "zz"], 2)))
    return dice.choice(
        [
            Comparison(("i",), op, five),
            Comparison(("f",), op, pa.scalar(dice.choice([NAN, 7.5, 20.0]))),
            In(("s",), words, has_null=dice.random() < 0.3),
            IsNull((dice.choice("ifs"),)),
            Not(IsNull(("i",))),
            Unknown("upper(s) = 'A'", dice.choice(["", "upper(s)"])),
            Constant(dice.choice([True, None])),
        ]
    )


def condition(dice):
    """Return a conjunction of some conditions, one of which may be a disjunction."""
    parts = [leaf(dice) for _ in range(dice.randrange(1, 4))]
    return And((*parts, Or((leaf(dice), leaf(dice)))) if dice.random() < 0.5 else tuple(parts))


@pytest.mark.parametrize("seed", range(60))
def test_a_reason_rules_a_file_out_alone(seed):
    """A file is skipped iff pruning skips it, and the part that is named excludes it by itself."""
    dice = random.Random(seed)
    files = table_of(*(file(dice) for _ in range(30)), **TYPES)
    predicate = condition(dice)

    found = explain_files(predicate, files)

    assert found["kept"].to_pylist() == matching(predicate, files).tolist()
    parts = {text(part): part for part in conjuncts(predicate)}
    for number, row in enumerate(found.to_pylist()):
        assert (row["part"] is None) == row["kept"]
        assert row["why"]
        if row["part"] is not None:
            assert not matching(parts[row["part"]], files.slice(number, 1))[0]
            assert row["part"] in row["why"]


def test_bounds_that_rule_a_file_out_are_shown():
    """With the column, as text."""
    files = table_of({"x": bounds(1, 4)}, {"x": bounds(5, 9)}, x=pa.int64())
    first, second = explain_files(read("x > 4", x=pa.int64()), files).to_pylist()

    assert (first["kept"], first["column"], first["low"], first["high"]) == (False, "x", "1", "4")
    assert first["why"] == "ruled out by x > 4"
    assert (second["kept"], second["column"], second["low"]) == (True, None, None)
    assert second["why"] == "the bounds allow matching rows"


def test_what_hinders_a_condition_is_named():
    """No bounds in some files, a cast, a function, a comparison of two columns."""
    files = table_of({"x": ANY}, {"x": bounds(5, 9)}, {"x": bounds(1, 1), "rows": 0}, x=pa.int64())
    five = Comparison(("x",), ">", pa.scalar(4))

    whys = explain_files(And((five, Unknown("cast(s AS INT) = 3", "a cast of s"))), files)[
        "why"
    ].to_pylist()
    assert whys[0] == "no bounds of x"
    assert "cast" in whys[1]
    assert whys[2] == "the file has no rows"
    assert conjunct_facts(five, files)[0].why == "1 file without bounds of x"
    only = explain_files(Unknown("upper(s) = 'A'"), files)["why"].to_pylist()
    assert "upper(s)" in only[0]
    assert explain_files(Constant(value=True), files)["why"][0].as_py().startswith("the condition")
    assert len(causes(Unknown("x" * 1_000, "x" * 1_000))[0]) < 200


def test_differences_are_listed_with_their_cause():
    """Files that only the bounds exclude, by the part that does, and files that only Spark does."""
    files = table_of(*({"x": bounds(n, n)} for n in range(4)), x=pa.int64())
    found = explain_files(read("x > 1", x=pa.int64()), files)

    more, less = differences(found, np.array([True, True, True, False]), "why not")

    assert (more.files, more.what, more.part, more.cause) == (2, READS_MORE, "x > 1", "why not")
    assert (less.files, less.what) == (1, READS_LESS)


@pytest.mark.parametrize(
    ("predicate", "shown"),
    [
        (
            In(("s",), tuple(map(pa.scalar, "abcdefg"))),
            "s IN ('a', 'b', 'c', 'd', 'e', ... 7 values)",
        ),
        (Not(IsNull(("a", "b.c"))), "a.`b.c` IS NOT NULL"),
        (Or((Constant(None), Not(Constant(value=True)))), "NULL OR NOT true"),
        (Comparison(("s",), "=", pa.scalar("x" * 99)), f"s = '{'x' * 60}'"),
        (Comparison(("b",), "=", pa.scalar(b"\xff")), "b = ff"),
        (And(()), "true"),
    ],
)
def test_predicates_are_shown_as_text(predicate, shown):
    """Short, in the words of SQL."""
    assert text(predicate) == shown
