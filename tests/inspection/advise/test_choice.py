"""A learned layout is measured by what it promised, and by what is asked of it now."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from zadapter.inspection.advice import IN_TURN, STEADY
from zadapter.inspection.advise.choice import (
    LEAST_WEIGHT,
    SLACK,
    Judge,
    drift,
    steady_keys,
)
from zadapter.inspection.advise.judging import SampledRowGroups, SampledTable
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.filters import Filter, Range
from zadapter.layout.layout import Request

ROWS, FILES = 20_000, 32
A, B, C = ("a",), ("b",), ("c",)
RANDOM = np.random.default_rng(3)
VALUES = {parts: RANDOM.integers(0, 1_000, ROWS) for parts in (A, B, C)}


def within(column, low, high, weight=1.0):
    """A filter on a range."""
    return Filter(((Range(column, str(low), str(high)),),), weight)


LEARNED = tuple(within(A, low, low + 40) for low in range(0, 960, 40))


def request(*columns, filters=LEARNED):
    """A request for some columns."""
    return Request(columns=columns, weights=(1.0,) * len(columns), target_file_size=1 << 20,
                   filters=filters)  # fmt: skip


def table(file_of):
    """The rows in files."""
    stats = {
        parts[0]: (
            pa.array([int(values[file_of == at].min()) for at in range(FILES)], pa.int64()),
            pa.array([int(values[file_of == at].max()) for at in range(FILES)], pa.int64()),
            pa.array([0] * FILES, pa.int64()),
        )
        for parts, values in VALUES.items()
    }
    rows = np.bincount(file_of, minlength=FILES)
    return SampledTable(
        columns=tuple(VALUES),
        values=tuple(pa.array(values) for values in VALUES.values()),
        files=file_table([str(at) for at in range(FILES)], rows=rows, stats=stats),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def clustered():
    """The rows in the files of the layout that is learned from LEARNED."""
    sample = [pa.array(VALUES[A]), pa.array(VALUES[B])]
    root_of = np.zeros(ROWS, np.int64)
    layout = fit(request(A, B), sample, [()], root_of, [FILES])
    return table(assign.files(layout, assign.leaves(layout, sample, root_of), np.arange(ROWS)))


def scattered():
    """The rows in no order."""
    return table(np.arange(ROWS) % FILES)


def test_a_table_as_it_was_written_keeps_its_promise():
    """The queries that it was learned from read what was promised."""
    found = drift(clustered(), request(A, B), LEARNED)

    assert found.filters == len(LEARNED)
    assert found.promised < 0.15
    assert found.held == pytest.approx(found.promised, abs=0.03)
    assert found.elsewhere == 0


def test_a_promise_is_for_no_more_files_than_there_are():
    """The budget follows from bytes and the target size, which written files may exceed."""
    whole = clustered()

    assert drift(replace(whole, budget=np.array([4 * FILES])), request(A, B), LEARNED) == drift(
        whole, request(A, B), LEARNED
    )


def test_rows_in_no_order_break_the_promise():
    """As appends do: the layout still promises as much, and the queries read everything."""
    found = drift(scattered(), request(A, B), LEARNED)

    assert found.promised < 0.15
    assert found.held == 1


def test_queries_by_other_columns_are_counted_by_weight():
    """A filter with a box that has none of the layout's columns can be spared nothing."""
    either = Filter((LEARNED[0].boxes[0], (Range(C, "1", "2"),)), 1.0)
    found = drift(clustered(), request(A, B), [*LEARNED[:5], within(C, 1, 2, 2.0), either])

    assert found.elsewhere == pytest.approx(3 / 8)


def test_a_layout_without_filters_promised_nothing():
    """Nor did a table without a layout."""
    assert drift(clustered(), request(A, B, filters=()), LEARNED) is None
    assert drift(clustered(), None, LEARNED) is None


def ranked(filters):
    """The layouts of the rows in no order for a log, best first, and the best of all."""
    found, best = Judge(scattered(), filters, filters, [A, B, C]).rank_layouts()
    return [each.candidate for each in found], best.candidate


def at(**ranges):
    """A filter on a range of each of some columns."""
    box = tuple(Range((name,), str(low), str(low + 30)) for name, low in ranges.items())
    return Filter((box,), 1.0)


@pytest.mark.parametrize(
    "log",
    [
        LEARNED[:5],
        [replace(LEARNED[3], weight=1e6)],
        LEARNED,
        [at(a=low, b=low) for low in range(0, 900, 30)],
    ],
    ids=["five queries", "one query, a million times", "one template", "a template of two columns"],
)
def test_thin_logs_get_the_most_filtered_columns(log):
    """However little their queries read of a layout that is fitted to them."""
    found, best = ranked(log)

    assert best.name == found[0].name == IN_TURN
    assert {each.new_share for each in found} == {None}


def test_a_layout_that_loses_by_row_group_is_not_advised():
    """Files hold all values of a, and each of their row groups one: no 512 row groups do better."""
    points = [within(A, value, value) for value in range(0, 1_000, 25)]
    ones = pa.array(np.arange(1_000), pa.int64())
    groups = file_table([*map(str, range(1_000))], rows=[ROWS // 1_000] * 1_000,
                        stats={"a": (ones, ones, pa.array([0] * 1_000, pa.int64()))})  # fmt: skip
    files = scattered()
    sorted_inside = replace(files, row_groups=SampledRowGroups(files.files, groups))
    _, best = Judge(files, points, points, [A]).rank_layouts()
    assert best.candidate.name == IN_TURN
    judge = Judge(sorted_inside, points, points, [A])
    found, best = judge.rank_layouts()
    assert best is judge.current
    assert found[0].candidate.share < best.candidate.share / 10


def test_a_layout_that_new_queries_lose_by_is_not_advised():
    """Most queries filter one column, and a layout by it alone is best for them."""
    mixed = [replace(at(a=n), weight=50.0) for n in range(0, 900, 90)]
    for kind in (("b",), ("c",), ("a", "c"), ("b", "c"), ("a", "b")):
        mixed += [at(**dict.fromkeys(kind, n)) for n in range(0, 900, 225)]

    found, best = ranked(mixed)

    [plain] = [each for each in found if each.name == IN_TURN]
    assert best.new_share <= plain.new_share
    assert best.new_row_group_share <= plain.new_row_group_share
    tempting = [each for each in found if each.row_group_share < 0.8 * best.row_group_share]
    assert tempting
    assert all(found.index(best) < found.index(each) for each in tempting)


def test_what_all_templates_have_in_common_is_fitted_to():
    """All queries ask for the newest rows, which a new kind of queries will do, too."""
    kinds = [
        [],
        [("b", "100", "300")],
        [("b", None, "500")],
        [("c", "2", "400")],
        [("c", "5", None)],
    ]
    newest = [
        Filter(
            (tuple(Range((name,), *bounds) for name, *bounds in [("a", str(n), None), *more]),), 1.0
        )
        for n in range(950, 990, 5)
        for more in kinds
    ]

    found, best = ranked(newest)

    [plain] = [each for each in found if each.name == IN_TURN]
    assert best.name != IN_TURN
    assert best.new_share < 0.8 * plain.new_share
    assert best.share < 0.8 * plain.share


def test_cuts_are_learned_where_the_columns_are_to_stay():
    """Queries ask for the upper part of all columns. Trees of their kinds alone are a risk."""
    kinds = [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    upper = [
        at(**{name: 600 + n * (place * 53 + 17) % 360 for place, name in enumerate(kind, 1)})
        for kind in kinds
        for n in range(8)
    ]

    found, best = ranked(upper)

    by_name = {each.name: each for each in found}
    plain, learned = by_name[IN_TURN], by_name["learned from the log"]
    assert best.name == STEADY
    assert best.share < 0.8 * plain.share
    assert best.row_group_share < 0.9 * plain.row_group_share
    assert best.new_share < (1 + SLACK) * plain.new_share
    assert learned.row_group_share < best.row_group_share
    assert learned.new_row_group_share > plain.new_row_group_share


def test_steady_columns_have_turns_by_the_roots_of_their_queries():
    """Each of the three has at least half the turns of the most filtered one, and others none."""
    weights = {("a",): 100.0, ("b",): 64.0, ("c",): 4.0, ("d",): 3.0}

    keys = steady_keys(LEARNED, weights)

    assert keys is not None
    assert keys.weights == {"a": 2.0, "b": 1.8, "c": 1.5, "d": LEAST_WEIGHT}
