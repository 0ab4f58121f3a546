"""What a layout has cost the queries of a log, beside one that is learned from them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from zadapter.inspection.advise.choice import steady_keys, weigh_columns
from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.advise.regret import deal, number_queries, regret, weigh_newer
from zadapter.inspection.query_log import SLICES
from zadapter.layout.filters import Filter, Range
from zadapter.planning.relearning import ENOUGH

ROWS, FILES = 4_000, 16
NAMES = (("a",), ("b",), ("c",), ("d",), ("e",), ("f",))


@pytest.fixture(scope="module")
def rows():
    """Independent columns of a thousand values each."""
    values = np.random.default_rng(1).integers(0, 1_000, (len(NAMES), ROWS))
    return SampledTable(
        columns=NAMES,
        values=tuple(map(pa.array, values)),
        files=pa.table({}),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def asked(names, count, seed, weight=1.0):
    """Queries of two templates on some columns."""
    draw = np.random.default_rng(seed)
    return [
        Filter(
            (tuple(Range((name,), str(low), str(low + 60)) for name in names[at % 2 :]),), weight
        )
        for at, low in enumerate(draw.integers(0, 900, count).tolist())
    ]


def learned(filters):
    """The layout that is learned from filters."""
    return steady_keys(filters, weigh_columns(filters, NAMES))


def judged(rows, log, present, queries=None):
    """The regret by a log whose queries are in the order of time."""
    numbers = number_queries(log, queries or [None] * len(log))
    weights = np.zeros((len(log), SLICES))
    for at, each in enumerate(log):
        weights[at, at * SLICES // len(log)] = each.weight
    return regret(rows, learned(present), log, weights, numbers, learned)


HISTORY = asked("abc", 60, seed=1, weight=20.0)


@pytest.mark.parametrize(
    "log",
    [
        asked("abc", 60, seed=2, weight=20.0),
        [*asked("abc", 58, seed=2, weight=20.0), *asked("def", 2, seed=3, weight=20.0)],
        [*asked("abc", 59, seed=2), replace(asked("def", 1, seed=3)[0], weight=1_000_000.0)],
        asked("def", 5, seed=3),
        HISTORY + asked("def", 20, seed=3, weight=20.0),
    ],
    ids=["as before", "a template of last night", "one query, a million times", "five queries",
         "a quarter of the log"],
)  # fmt: skip
def test_noise_is_no_reason_to_learn_again(rows, log):
    """Nor are other values in the same templates."""
    assert judged(rows, log, HISTORY) < ENOUGH


def test_queries_that_have_changed_are_a_reason_once(rows):
    """Half of the log asks for other columns; nothing is left to learn from it afterwards."""
    log = HISTORY + asked("def", 60, seed=3, weight=20.0)

    assert judged(rows, log, HISTORY) == ENOUGH
    assert judged(rows, log, log[60:]) < ENOUGH / 4
    later = log[30:] + asked("def", 30, seed=4, weight=20.0)
    assert judged(rows, later, log[60:]) < ENOUGH / 4


@pytest.mark.parametrize("many", [1, 20], ids=["one text", "twenty texts"])
def test_one_query_with_twenty_limits_is_no_reason_to_learn_again(rows, many):
    """Nor are twenty texts that ask the same: where a sampled value ends, limits are equal."""
    ends = [(Range(("d",), str(900 - at // many), None),) for at in range(20)]
    limits = [Filter((end,), 20.0) for end in ends]
    log = HISTORY + limits * 3
    of = [*range(len(HISTORY)), *([1_000] * 60 if many == 1 else [None] * 60)]

    assert judged(rows, log, HISTORY, of) < ENOUGH / 4
    assert judged(rows, HISTORY + asked("d", 60, seed=3, weight=20.0), HISTORY) == ENOUGH


def test_no_filter_judges_a_layout_that_was_fitted_to_it():
    """Each template is dealt in turn, so that both hands know it."""
    log = asked("ab", 10, seed=1)

    first, second = deal(log, number_queries(log, [None] * len(log)))

    assert sorted([*first.asked, *second.asked]) == list(range(10))
    assert {log[at] for at in first.asked}.isdisjoint(first.others)
    assert {log[at] for at in second.asked}.isdisjoint(second.others)
    assert {len(each.columns) for each in first.others} == {1, 2}


def test_the_newer_half_of_a_log_is_learned_from():
    """By weight; filters of the past count nothing."""
    log = asked("ab", 4, seed=1)

    late = weigh_newer(log, np.eye(4, SLICES) * [[1], [1], [1], [1]])

    assert [each.weight for each in late] == [0, 0, 1, 1]


def test_filters_that_are_of_one_query_by_way_of_another_have_one_number():
    """Of two queries with an equal filter, none is judged by a layout that fits the other one."""
    one, two = asked("ab", 2, seed=4)
    for queries in ([0, 1, 1], [1, 1, 0]):
        log = [one, two, one] if queries[0] == 0 else [two, one, one]
        assert len(set(number_queries(log, queries).tolist())) == 1
    assert len(set(number_queries([one, two], [0, 1]).tolist())) == 2
