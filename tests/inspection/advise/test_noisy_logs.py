"""A log that says little gets the plain layout, and the advice says why."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, snapshot
from tests.kit.leaves import is_
from zadapter.errors import UsageError
from zadapter.inspection.advice import IN_TURN, STEADY
from zadapter.inspection.advise.choice import SLACK, compare_layouts, to_boxes
from zadapter.inspection.advise.judging import SampledTable, mean_share
from zadapter.inspection.advise.top_filters import UNBOUND
from zadapter.inspection.query_log import SLICES, LoggedFilter, QueryLog, Top
from zadapter.layout.layout import Request
from zadapter.predicates.predicate import And
from zadapter.predicates.texts import text

ROWS, FILES, COLUMNS = 20_000, 32, ("ts", "tenant", "kind", "other")
TS = ("ts",)
EVERY_ROW = And(())
A_MILLION = 1_000_000


@pytest.fixture(scope="module")
def table():
    """Rows in no order, of columns that have nothing in common."""
    draw = np.random.default_rng(11)
    values = {name: draw.integers(0, 1_000, ROWS) for name in COLUMNS}
    file_of = np.arange(ROWS) % FILES
    stats = {
        name: tuple(
            pa.array([int(end(found[file_of == at])) for at in range(FILES)], pa.int64())
            for end in (np.min, np.max, lambda _: 0)
        )
        for name, found in values.items()
    }
    return SampledTable(
        columns=tuple((name,) for name in COLUMNS),
        values=tuple(pa.array(found) for found in values.values()),
        files=file_table([str(at) for at in range(FILES)], rows=ROWS // FILES, stats=stats),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=MIB,
        partition=frozenset(),
    )


def advised(table, filters):
    """The advice for a log."""
    asked = QueryLog(tuple(filters), sum(each.entries for each in filters), {})
    of = snapshot(pa.schema({name: pa.int64() for name in COLUMNS}))
    return compare_layouts(of, asked, table, None, asked={})


def logged(predicate, top=None, *, times=1, at=None):
    """A filter that entries of the whole log have, or of its parts *at*."""
    at = range(SLICES) if at is None else at
    weights = tuple(times / len(at) if n in at else 0.0 for n in range(SLICES))
    return LoggedFilter(predicate, f"{text(predicate)} {top}", weights, times, top)


def equal(**values):
    """A condition on the values of some columns."""
    return And(tuple(is_(name, "=", value, pa.int64()) for name, value in values.items()))


def newest(count=10):
    """The order of the last rows."""
    return Top(TS, count, descending=True)


def between(low, **values):
    """A condition on a range of the time, and on the values of other columns."""
    ends = (is_("ts", ">=", low, pa.int64()), is_("ts", "<=", low + 30, pa.int64()))
    return And((*ends, *equal(**values).parts))


RANGES = [between(n * 24 % 960, tenant=n * 37 % 1_000) for n in range(40)]
TENANTS = [equal(tenant=n * 37 % 1_000) for n in range(40)]
NOISY = {
    "one query, a million times": ([logged(RANGES[0], times=A_MILLION)], "one kind"),
    "its last rows, a million times": ([logged(TENANTS[0], newest(), times=A_MILLION)], "one kind"),
    "the last rows of all, a million times": (
        [logged(EVERY_ROW, newest(), times=A_MILLION)],
        "one kind",
    ),
    "a template of yesterday": ([logged(each, at=[SLICES - 1]) for each in RANGES], "one kind"),
    "the last rows of each tenant, yesterday": (
        [logged(each, newest(1), at=[SLICES - 1]) for each in TENANTS],
        "one kind",
    ),
    "five queries": (
        [
            *(logged(equal(**{name: 7}), newest(3)) for name in COLUMNS[1:]),
            logged(RANGES[1]),
            logged(equal(tenant=3, kind=4), newest(3)),
        ],
        "5 filters, and 20 are needed",
    ),
    "one query, with twenty limits": (
        [
            *(logged(EVERY_ROW, newest(count)) for count in range(1, 21)),
            *(logged(equal(**{name: 7})) for name in COLUMNS),
        ],
        "filters, and 20 are needed",
    ),
}


@pytest.mark.parametrize(("log", "reason"), NOISY.values(), ids=NOISY)
def test_a_noisy_log_gets_the_plain_layout(table, log, reason):
    """Its queries read less of a tree that is fitted to them, which says nothing of others."""
    found = advised(table, log)

    assert found.chosen.name == IN_TURN
    assert found.best == found.chosen.keys
    assert found.best.filters == ()
    assert found.chosen.share < found.today.share
    assert {each.new_share for each in found.candidates} == {None}
    said = found.facts()
    assert said["advice"].startswith(IN_TURN)
    assert said["new queries"].startswith("unknown: the log has ")
    assert reason in said["new queries"]


def kinds(times=1):
    """Filters of six kinds in the upper part of three columns, which a tree is safe for."""
    pairs = [("ts",), ("tenant",), ("kind",), ("ts", "tenant"), ("ts", "kind"), ("tenant", "kind")]
    found = []
    for names in pairs:
        for n in range(8):
            lows = [600 + n * (place * 53 + 17) % 360 for place in range(1, len(names) + 1)]
            ends = [
                is_(name, op, end, pa.int64())
                for name, low in zip(names, lows, strict=True)
                for op, end in ((">=", low), ("<=", low + 30))
            ]
            found.append(logged(And(tuple(ends)), times=times))
    return found


def of(found, name):
    """A candidate by its name."""
    return next(each for each in found.candidates if each.name == name)


def read(table, candidate, filters):
    """What filters read of a layout, by file and by row group."""
    asked = to_boxes(filters)
    return [mean_share(part.shares(asked), asked) for part in table.divide_rows(candidate.keys)]


@pytest.mark.parametrize(
    "noise",
    [
        logged(between(300, tenant=5), times=A_MILLION),
        logged(equal(tenant=5), newest(), times=A_MILLION),
        logged(EVERY_ROW, newest(), times=A_MILLION),
    ],
    ids=["a range", "the last rows of a tenant", "the last rows"],
)
def test_a_query_that_is_run_a_million_times_hides_no_others(table, noise):
    """Those of the same log read no more of what is advised than of the plain layout."""
    rest = kinds()
    found = advised(table, [noise, *rest])

    plain = of(found, IN_TURN)
    assert found.chosen.name in {IN_TURN, STEADY}
    for mine, other in zip(read(table, found.chosen, rest), read(table, plain, rest), strict=True):
        assert mine <= 1.02 * other
    assert not found.chosen.new_share > (1 + SLACK) * plain.new_share
    assert "'learned from the log' is not advised" in found.facts()["new queries"]


@pytest.mark.parametrize(
    "template",
    [
        [(equal(other=n * 24), None) for n in range(40)],
        [(EVERY_ROW, Top(("other",), count, descending=True)) for count in range(10, 50)],
    ],
    ids=["values", "last rows"],
)
def test_a_template_of_yesterday_does_not_choose_the_columns(table, template):
    """The columns that were judged are written, also if it is the most frequent one by now."""
    yesterday = [logged(*each, times=12, at=[SLICES - 1]) for each in template]

    found = advised(table, [*kinds(times=16), *yesterday])

    assert found.chosen.name == STEADY
    assert list(found.best.weights) == list(found.chosen.keys.weights)
    assert "other" not in found.best.weights
    assert len(found.best.filters) >= len(kinds())
    assert found.newer_columns == ("other",)
    assert "queries filter other, but older ones do not" in found.facts()["only newer"]


def test_a_limit_above_all_rows_is_no_filter(table):
    """It is counted like other queries without a condition."""
    every = logged(EVERY_ROW, newest(ROWS + 1), times=3)

    with pytest.raises(UsageError, match="3 a LIMIT of as many rows as match"):
        advised(table, [every])
    found = advised(table, [every, *map(logged, RANGES)])
    assert found.unused == {UNBOUND: 3}
    assert (found.entries, found.filters) == (43, 40)


def test_last_nights_queries_add_no_bloom_filters_to_a_layout(table):
    """It would rewrite the table; the same queries over the whole time of the log pay that."""
    of = snapshot(pa.schema({name: pa.int64() for name in COLUMNS}))
    present = Request(columns=(("other",),), weights=(1.0,), target_file_size=MIB)

    def added(at):
        filters = tuple(logged(each, at=at, times=2) for each in TENANTS)
        found = compare_layouts(of, QueryLog(filters, 40, {}), table, present, asked={}).again
        return found.bloom_filters or found.relearning.is_due

    assert not added([SLICES - 1])
    assert added(range(SLICES))


def test_a_rewrite_is_one_of_the_whole_table(table):
    """Of a table with many partitions, some are compared; all of them would be rewritten."""
    part = sum(table.files["size"].to_pylist())
    many = replace(table, size_of_all=100 * part)

    for known, size in ((table, part), (many, 100 * part)):
        _, *layouts = advised(known, kinds()).candidates
        assert {each.bytes_rewritten for each in layouts} == {size}
