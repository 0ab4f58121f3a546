"""Tables that get appends stay near a fresh layout, at a few rows written for each that came in."""

import numpy as np
import pytest

from tests.kit.aging import Aging, aged, arrivals
from tests.kit.variants import slow

GOALS = {
    "stationary": (1.40, 1.20, 4.2),
    "skewed": (1.45, 1.40, 5.0),
    "time": (1.10, 1.05, 3.5),
    "drifting": (1.45, 1.40, 5.0),
}
"""What filters read by file and by row group on average, x a fresh fit; rows written a new row."""
SMALL = {"a_file": 500, "files": 38, "days": 16, "a_day": 1.6}
"""A table that grows from 60 % to all of its rows by appends of 2.5 %."""


@pytest.mark.parametrize("kind", slow(*GOALS))
def test_filters_read_little_more_than_of_a_fresh_layout(kind):
    """Whatever comes in: rows like the old ones, skewed, in the order of time, or of new keys."""
    by_file, by_group, written = GOALS[kind]

    table, shares, _ = aged(kind, **SMALL, seed=4)

    mean, worst = shares.mean(axis=0), shares.max(axis=0)
    assert mean[0] <= by_file
    assert mean[1] <= by_group
    assert worst[:3].max() <= 1.6
    assert table.written <= written * table.appended
    assert len(table.rows) == 38 * 500 + table.appended


@pytest.mark.parametrize("kind", ["skewed", *slow("stationary", "time", "drifting")])
def test_a_second_call_finds_nothing_to_do(kind):
    """After each append, however far the table has come."""
    random = np.random.default_rng(6)
    table = Aging(200)
    table.files = table.anew(arrivals(kind, random, 4_000, -1, 8))
    for day in range(8):
        table.append(arrivals(kind, random, 250, day, 8))
        assert table.maintain().rewrites

        again = table.planned()

        assert again.rewrites == again.left == ()


@pytest.mark.slow
def test_runs_stay_few_after_a_hundred_appends():
    """Their number grows with the logarithm of the rows."""
    random = np.random.default_rng(7)
    table = Aging(400)
    table.files = table.anew(arrivals("stationary", random, 4_000, -1, 1))
    runs = []
    for _ in range(120):
        table.append(arrivals("stationary", random, 20, 0, 1), files=1)
        table.maintain()
        runs.append(table.runs)

    assert max(runs) <= 3 * np.log2(len(table.rows) / 20)
    assert table.written <= 8 * table.appended
