"""A scheduler learns by the exit code that a table exceeds a bound."""

import pytest

from tests.inspection.test_analysis import analyzed, table
from zadapter.cli.layout_checks import find_exceeded
from zadapter.errors import UsageError

EIGHT_OVERLAP = table([0] * 8, [1_000] * 8)
NONE_OVERLAPS = table([at * 10 for at in range(8)], [at * 10 + 9 for at in range(8)])


@pytest.mark.parametrize(
    ("bounds", "exceeded"),
    [
        ({"scanned": 0.99}, ["--check scanned=0.99: range filters scan 100.0% of the rows"]),
        ({"scanned": 1.0}, []),
        ({"depth": 7.5}, ["--check depth=7.5: 8.0 files overlap on average"]),
        ({"depth": 8.0}, []),
    ],
)
def test_a_bound_may_be_reached_but_not_exceeded(bounds, exceeded):
    """Eight files with all values are eight deep, and filters read all of them."""
    assert find_exceeded(analyzed(EIGHT_OVERLAP), bounds) == exceeded


def test_every_exceeded_bound_is_named():
    """The gain is that of a rewrite which is due; it is enough to reach it."""
    found = analyzed(EIGHT_OVERLAP)
    gain = found.rewrite.gain

    exceeded = find_exceeded(found, {"gain": gain, "scanned": 0.5, "depth": 20.0})

    assert [sentence.split("=")[0] for sentence in exceeded] == ["--check gain", "--check scanned"]
    assert f"a rewrite saves {gain:.1%}" in exceeded[0]
    assert find_exceeded(found, {"gain": gain + 1e-9}) == []


def test_a_table_in_order_exceeds_no_bound():
    """Its files do not overlap, and each filter reads few of them."""
    assert find_exceeded(analyzed(NONE_OVERLAPS, by=1), {"scanned": 0.9, "depth": 1.0}) == []


@pytest.mark.parametrize("name", ["scanned", "depth"])
def test_a_table_without_keys_cannot_be_checked(name):
    """A gate that cannot judge must not be green; a gain needs no keys, where files are joined."""
    with pytest.raises(UsageError, match=f"{name}= needs key columns.*pass --by"):
        find_exceeded(analyzed(EIGHT_OVERLAP, by=0), {name: 1.0})
    assert find_exceeded(analyzed(EIGHT_OVERLAP, by=0), {"gain": 1.0}) == []


def test_an_empty_table_exceeds_no_bound():
    """It has no figures, whether or not it has keys."""
    nothing = table([], [])

    assert find_exceeded(analyzed(nothing), {"gain": 0.0, "scanned": 0.0, "depth": 1.0}) == []
    assert find_exceeded(analyzed(nothing, by=0), {"scanned": 0.0}) == []
