"""The choice stays within the budget, is nearly as good as the best one, and starves no table."""

from itertools import product
from random import Random

import pytest

from zadapter.errors import UsageError
from zadapter.lake.choice import Candidate, Part, Step, Why, choose
from zadapter.lake.settings import Budget
from zadapter.lake.weights import LEAST, weigh

CORES = 2
AMOUNTS = "bytes", "seconds", "money"


def step(size, saved, seconds=0.0, money=0.0):
    return Step(bytes=size, saved=saved, seconds=seconds, money=money)


def table(name, *steps, **options):
    """Return a table with steps of these bytes and savings."""
    return Candidate(table=name, steps=tuple(step(*each) for each in steps), **options)


def steps_taken(choice):
    return {name: part.steps for name, part in choice.taken.items()}


def some_tables(random):
    """Return up to six tables of up to three steps, and a budget for a part of them."""
    tables = [
        table(
            str(number),
            *(
                (
                    random.choice([random.randint(1, 100), 1 + int(random.lognormvariate(3, 1))]),
                    random.choice([random.randint(0, 100), random.lognormvariate(3, 1)]),
                    random.random() * 20,
                    random.random(),
                )
                for _ in range(random.randint(1, 3))
            ),
            weight=random.choice([1.0, 1.0, 5 * random.random()]),
        )
        for number in range(random.randint(1, 6))
    ]
    limited = random.choice([AMOUNTS[:1], AMOUNTS[1:2], AMOUNTS[2:], AMOUNTS[:2], AMOUNTS])
    total = {
        name: sum(getattr(each, name) for one in tables for each in one.steps) for name in limited
    }
    most = {name: amount * random.choice([0.1, 0.3, 0.5, 0.8]) for name, amount in total.items()}
    if "bytes" in most:
        most["bytes"] = int(most["bytes"])
    if "seconds" in most:
        most["seconds"] /= CORES
    return tables, Budget(**most)


def is_within(parts, budget):
    """Tell whether the sums of parts are within a budget."""
    size, seconds, money = (sum(getattr(each, name) for each in parts) for name in AMOUNTS)
    return (
        (budget.bytes is None or size <= budget.bytes)
        and (budget.seconds is None or seconds <= budget.seconds * CORES + 1e-9)
        and (budget.money is None or money <= budget.money + 1e-9)
    )


def worth(tables, parts):
    return sum(one.weight * part.saved for one, part in zip(tables, parts, strict=True))


def optimum(tables, budget):
    """Return what the best of all choices saves."""
    parts = [[Part.of(one.steps[:stop]) for stop in range(len(one.steps) + 1)] for one in tables]
    return max(worth(tables, some) for some in product(*parts) if is_within(some, budget))


@pytest.mark.parametrize("seed", range(8))
def test_a_choice_is_nearly_as_good_as_the_best_and_never_over_the_budget(seed):
    """The best one is that of a knapsack: all prefixes of all tables are tried."""
    random = Random(seed)
    for _ in range(20):
        tables, budget = some_tables(random)

        taken = choose(tables, budget, CORES).taken

        assert is_within(taken.values(), budget)
        assert worth(tables, taken.values()) >= 0.95 * optimum(tables, budget)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_taken_and_left_is_everything(seed):
    """A run's report names each step once, and runs the tables that it takes steps of."""
    tables, budget = some_tables(Random(100 + seed))

    choice = choose(tables, budget, CORES)

    for one in tables:
        stop = choice.taken[one.table].steps
        assert choice.taken[one.table] == Part.of(one.steps[:stop])
        rest = choice.left.get(one.table, (Part.of(()), None))[0]
        assert rest == Part.of(one.steps[stop:])
        assert (one.table in choice.order) == (stop > 0)


def test_without_a_limit_everything_is_taken_best_first():
    tables = [table("low", (10, 1), (10, 0)), table("high", (10, 20)), table("none")]

    choice = choose(tables, Budget(), CORES)

    assert steps_taken(choice) == {"low": 2, "high": 1, "none": 0}
    assert choice.order == ("high", "low")
    assert not choice.left


def test_the_scarcest_resource_counts():
    """A step of few bytes that needs all of the money is expensive."""
    tables = [table("dear", (1, 40, 1, 9)), table("cheap", (50, 50, 1, 1), (50, 50, 1, 1))]

    choice = choose(tables, Budget(bytes=100, seconds=100, money=10), CORES)

    assert steps_taken(choice) == {"dear": 0, "cheap": 2}


def test_cores_share_the_time():
    tables = [table("a", (1, 1, 10)), table("b", (1, 2, 10))]

    assert steps_taken(choose(tables, Budget(seconds=10), 1)) == {"a": 0, "b": 1}
    assert steps_taken(choose(tables, Budget(seconds=10), 2)) == {"a": 1, "b": 1}


def test_a_poor_step_is_taken_for_a_rich_one_behind_it():
    tables = [table("a", (10, 1), (10, 99)), table("b", (10, 30), (10, 30))]

    assert steps_taken(choose(tables, Budget(bytes=20), CORES)) == {"a": 2, "b": 0}


def test_poor_steps_are_taken_for_rich_ones_among_many_small_tables():
    """None of these steps needs much of the budget, so no choices are compared."""
    tables = [table(f"a{number}", (1, 0), (1, 10)) for number in range(200)]
    tables += [table(f"b{number}", (2, 6)) for number in range(200)]

    taken = choose(tables, Budget(bytes=200), CORES).taken

    assert sum(part.saved for part in taken.values()) == 1_000


def test_what_does_not_fit_is_passed_over():
    tables = [table("a", (60, 90)), table("b", (60, 80)), table("c", (40, 10), (40, 9))]

    choice = choose(tables, Budget(bytes=100), CORES)

    assert steps_taken(choice) == {"a": 1, "b": 0, "c": 1}
    assert choice.left["b"] == (Part.of(tables[1].steps), Why.SPENT)
    assert choice.left["c"] == (Part.of(tables[2].steps[1:]), Why.SPENT)


def test_a_step_larger_than_the_budget_is_never_taken():
    """Not even if its table has waited long enough, and nothing else is due."""
    tables = [table("a", (101, 90), waited=9, max_wait=3)]

    choice = choose(tables, Budget(bytes=100), CORES)

    assert choice.order == ()
    assert choice.left["a"] == (Part.of(tables[0].steps), Why.TOO_LARGE)


def test_nothing_is_taken_without_a_budget():
    choice = choose([table("a", (1, 1), waited=1, max_wait=1)], Budget(bytes=0), CORES)

    assert choice.order == ()
    assert choice.left["a"][1] is Why.TOO_LARGE


def test_a_table_that_is_read_more_often_comes_first():
    tables = [table("a", (10, 10)), table("b", (10, 6), weight=2.0)]

    assert choose(tables, Budget(bytes=10), CORES).order == ("b",)


def test_a_table_that_waits_as_long_as_it_may_comes_first():
    """Whatever it saves, and in the order in which the tables have waited beyond that."""
    tables = [
        table("best", (10, 1_000)),
        table("late", (10, 0), (10, 0), waited=3, max_wait=3),
        table("later", (10, 0), waited=5, max_wait=3),
        table("early", (10, 0), waited=2, max_wait=3),
    ]

    assert choose(tables, Budget(bytes=10), CORES).order == ("later",)
    assert set(choose(tables, Budget(bytes=20), CORES).order) == {"late", "later"}
    assert choose(tables, Budget(bytes=30), CORES).order[2:] == ("best",)


def test_no_table_starves():
    """A table that saves a thousandth of what others save each night gets its turn."""
    rich, nights = table("rich", (10, 1_000)), range(60)
    budget = Budget(bytes=10)

    chosen = [
        choose([rich, table("poor", (10, 1), waited=waited)], budget, CORES).order
        for waited in nights
    ]

    assert chosen[:10] == [("rich",)] * 10
    assert chosen[-1] == ("poor",)


def test_a_table_that_no_query_reads_weighs_little_but_does_not_starve():
    """It goes last, and has its turn before one that saves a thousandth."""
    weights = weigh({"read": 30.0, "also": 90.0, "unread": 0.0})
    assert weights == {"read": 0.75, "also": 2.25, "unread": LEAST}

    def order(waited):
        tables = [
            table("read", (10, 10), weight=weights["read"]),
            table("unread", (10, 100), weight=weights["unread"], waited=waited),
        ]
        return choose(tables, Budget(bytes=10), CORES).order

    assert order(0) == ("read",)
    assert order(26) == ("unread",)


def test_weights_of_a_log_without_reads_are_refused():
    with pytest.raises(UsageError, match="no query of the log reads a table of the lake"):
        weigh({"a": 0.0, "b": 0.0})
