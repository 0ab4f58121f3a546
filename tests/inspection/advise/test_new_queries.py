"""Queries that are like none of a log are estimated by leaving whole templates out."""

from dataclasses import replace

import pytest

from zadapter.inspection.advise.new_queries import (
    FEWEST_FILTERS,
    FEWEST_TEMPLATES,
    MOST_FILTERS,
    Read,
    expect,
    group_by_template,
    template_of,
    why_too_thin,
)
from zadapter.layout.filters import Filter, Range


def asked(*ranges, weight=1.0):
    """A filter on some ranges, each of them a column, its lowest and its highest value."""
    return Filter((tuple(Range((column,), low, high) for column, low, high in ranges),), weight)


def log(templates, each=8):
    """Filters of some templates, each of a column of its own."""
    return [asked((f"c{n}", str(at), str(at + 9))) for n in range(templates) for at in range(each)]


def test_parameters_and_their_order_make_no_template():
    """But columns do, and how they are compared."""
    one = asked(("a", "1", "9"), ("b", "2", "2"))

    assert template_of(asked(("b", "7", "7"), ("a", "3", "4"))) == template_of(one)
    assert template_of(asked(("b", "7", "7"), ("b", "8", "8"), ("a", "3", "4"))) == template_of(one)
    others = [
        asked(("a", "1", "9")),
        asked(("a", "1", "9"), ("b", "2", "3")),
        asked(("a", None, "9"), ("b", "2", "2")),
        asked(("a", "1", None), ("b", "2", "2")),
        asked(("a", "1", "9"), ("c", "2", "2")),
        Filter((*one.boxes, *asked(("a", None, "3")).boxes), 1.0),
    ]
    assert len({template_of(each) for each in [one, *others]}) == 7


def test_each_template_is_left_out_once_and_never_fitted_to():
    """So what it reads is what a query reads that the log does not have."""
    judged = []

    def reader(known, unknown):
        fitted, left_out = ({template_of(each) for each in part} for part in (known, unknown))
        assert fitted.isdisjoint(left_out)
        assert len(fitted) + len(left_out) == 7
        judged.extend(left_out)
        return Read(len(left_out) / 10, None)

    found = expect(log(7), {"one": reader})

    assert len(judged) == len(set(judged)) == 7
    assert found["one"] == Read(pytest.approx((2 * 2 * 3 + 1) / 70), None)


def test_a_query_that_was_run_a_million_times_is_one_template():
    """It hides neither what the others read, nor that there are few of them."""
    filters = log(7)
    often = [replace(filters[0], weight=1e6), *filters[1:]]

    def reader(_, unknown):
        hit = sum(each.weight for each in unknown if ("c0",) in each.columns)
        return Read(hit / sum(each.weight for each in unknown), 0.5)

    assert expect(often, {"one": reader})["one"].files == pytest.approx(1 / 7)
    assert "one kind" in why_too_thin([replace(filters[0], weight=1e6)])


def test_long_logs_are_thinned_out_with_the_weight_of_all():
    """Fitting to some filters of each template takes less time."""
    seen = []

    def reader(known, _):
        seen.append(known)
        return Read(1.0, 1.0)

    expect(log(6, each=200), {"one": reader})

    for known in seen:
        assert len(known) <= MOST_FILTERS
        sums = [sum(each.weight for each in same) for same in group_by_template(known)]
        assert sums == pytest.approx([200] * len(sums))


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        (log(1, 100), "one kind of filters"),
        (log(FEWEST_TEMPLATES - 1, 100), f"{FEWEST_TEMPLATES - 1} kinds of filters"),
        (log(5, 1), f"5 filters, and {FEWEST_FILTERS} are needed"),
        (log(FEWEST_TEMPLATES, FEWEST_FILTERS), ""),
    ],
)
def test_thin_logs_say_why(filters, reason):
    """Few templates, or few filters."""
    found = why_too_thin(filters)

    assert reason in found
    assert bool(found) == bool(reason)
