"""An audit finds what excludes values, and corrects only what is certain."""

import random

import pyarrow as pa
import pytest

from tests.kit.file_tables import ANY, bounds, table_of
from zadapter.inspection.comparison import (
    MISSING,
    SCHEMA,
    UNSOUND,
    UNSURE,
    correct_stats,
    count_unknown_bounds,
    findings,
)
from zadapter.predicates.predicate import Comparison
from zadapter.predicates.pruning import matching
from zadapter.table.file_stats import Bounds

X = [("x",)]
NONE = frozenset()


def one(recorded, found, type_=None, **options):
    """Return the kinds and what differs, of one file."""
    type_ = type_ or pa.int64()
    tables = [table_of({"x": stats}, x=type_) for stats in (recorded, found)]
    rows = findings(*tables, X, lacking=options.get("lacking", NONE)).to_pylist()
    return [(row["kind"], row["what"]) for row in rows]


@pytest.mark.parametrize("seed", range(40))
def test_bounds_are_unsound_iff_a_value_is_outside(seed):
    """Against the values of files: pruning by unsound bounds loses a row, by others it does not."""
    dice = random.Random(seed)
    values = [dice.choices(range(20), k=4) for _ in range(20)]
    said = [sorted(dice.choices(range(20), k=2)) for _ in values]
    recorded = table_of(*({"x": bounds(*each)} for each in said), x=pa.int64(), rows=4)
    found = table_of(*({"x": bounds(min(v), max(v))} for v in values), x=pa.int64(), rows=4)

    rows = findings(recorded, found, X, lacking=NONE).to_pylist()

    lost = set()
    for value in range(20):
        kept = matching(Comparison(("x",), "=", pa.scalar(value)), recorded)
        lost |= {str(n) for n, each in enumerate(values) if value in each and not kept[n]}
    assert {row["path"] for row in rows if row["kind"] == UNSOUND} == lost


def test_wider_bounds_are_sound():
    """Truncated or kept after deletes."""
    assert one(bounds(0, 9, kind=Bounds.WIDENED), bounds(1, 8)) == []


def test_footers_that_may_be_cut_prove_nothing():
    """A text of a footer may be cut below the value."""
    cut = bounds("a", "c", kind=Bounds.WIDENED)

    assert one(bounds("b", "b"), cut, pa.string()) == [
        (UNSURE, "lower bound"), (UNSURE, "upper bound")
    ]  # fmt: skip


def test_what_the_log_lacks_is_missing():
    """Unless the log keeps no stats of the column, or there is no value."""
    lacking = [(MISSING, "lower bound"), (MISSING, "upper bound"), (MISSING, "number of nulls")]

    assert one(ANY, bounds(1, 2)) == lacking
    assert one(ANY, bounds(1, 2), lacking=frozenset(X)) == []
    assert one(bounds(None, None, nulls=10), bounds(None, None, nulls=10)) == []


def test_counts_are_compared():
    """A wrong null count answers IS NULL wrongly."""
    assert one(bounds(1, 2, nulls=0), bounds(1, 2, nulls=3)) == [(UNSOUND, "number of nulls")]


def test_nan_is_no_missing_bound():
    """Beside NaN a log need not have an upper bound."""
    nan = float("nan")
    recorded, found = bounds(1.0, None, nans=None), bounds(1.0, nan, nans=None)

    assert one(recorded, found, pa.float64()) == []


def test_certain_stats_replace_those_of_the_log():
    """Exact bounds do; cut ones only where the log has none; other columns keep theirs."""
    recorded = table_of(
        {"x": bounds(5, 9), "s": bounds("b", "bz")}, {"x": ANY, "s": ANY},
        x=pa.int64(), s=pa.string(),
    )  # fmt: skip
    cut = bounds("b", "c", kind=Bounds.WIDENED)
    found = table_of(
        {"x": bounds(1, 9), "s": cut}, {"x": bounds(2, 3), "s": cut}, x=pa.int64(), s=pa.string()
    )

    stats = correct_stats(recorded, found)["stats"].to_pylist()

    assert [(each["x"]["min"], each["s"]["max"]) for each in stats] == [(1, "bz"), (2, "c")]


def test_no_files_have_no_findings():
    """The table of findings has its columns all the same."""
    empty = table_of(x=pa.int64())

    assert findings(empty, empty, X, lacking=NONE).schema == SCHEMA


def test_bounds_that_footers_do_not_tell_are_counted():
    """Only the values tell them: no finding, but no soundness either."""
    log, footers = (
        table_of({"x": ANY}, {"x": bounds(None, None, nulls=10)}, {"x": bounds(1, 2)}, {"x": ANY},
                 x=pa.int64()),
        table_of({"x": ANY}, {"x": ANY}, {"x": ANY}, {"x": bounds(1, 2)}, x=pa.int64()),
    )  # fmt: skip

    assert count_unknown_bounds(log, footers, X, lacking=NONE) == 1
    assert count_unknown_bounds(log, footers, X, lacking=frozenset(X)) == 0
    assert count_unknown_bounds(log, footers, [("y",)], lacking=NONE) == 0
