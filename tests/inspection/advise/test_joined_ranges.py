"""Joins with filtered tables count as ranges of keys, where the keys have ranges."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from tests.kit.leaves import is_
from zadapter.inspection.advise.joined_ranges import KEPT_OUT, UNREAD, WIDE, bound_joins
from zadapter.inspection.advise.judging import SampledTable
from zadapter.inspection.advise.top_filters import boxes_of
from zadapter.inspection.query_log import KeyRange, LoggedFilter, QueryLog
from zadapter.layout.filters import Range
from zadapter.predicates.predicate import And

SAMPLED = 1_000
DAY, PLACE = ("day",), ("place",)
EVERY_ROW = And(())


@pytest.fixture
def table():
    """A sample whose days are 0 to 999, and whose places are 0 to 9."""
    day = np.arange(SAMPLED)
    return SampledTable(
        columns=(DAY, PLACE),
        values=(pa.array(day), pa.array(day % 10)),
        files=file_table(["0"], rows=[SAMPLED], stats={}),
        roots=((),),
        root_of=np.zeros(SAMPLED, np.int64),
        budget=np.array([1]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


def keys(low, high, column=DAY, through="dates.year", matching=0.1):
    """Keys from *low* to *high* match."""
    return KeyRange(column, through, pa.scalar(low), pa.scalar(high), matching)


def logged(*ranges, predicate=EVERY_ROW, entries=1):
    """A filter of a log with such joins."""
    return LoggedFilter(predicate, "", (float(entries),), entries, ranges=ranges)


def bound(table, *filters):
    """The log as the advice counts it."""
    return bound_joins(QueryLog(tuple(filters), len(filters), {}), table)


def test_keys_in_the_order_of_the_filter_count_as_a_range(table):
    """Beside the conditions on the table itself."""
    log, [effect] = bound(table, logged(keys(100, 199), predicate=is_("place", "=", 3, pa.int64())))

    [found] = log.filters
    assert set(boxes_of(found)[0]) == {Range(PLACE, "3", "3"), Range(DAY, "100", "199")}
    assert found.ranges == ()
    assert (effect.column, effect.through) == ("day", "dates.year")
    assert (effect.queries, effect.counted) == (1, 1)
    assert effect.share == pytest.approx(0.1)
    assert effect.matching == pytest.approx(0.1)


def test_keys_in_no_order_do_not_count(table):
    """They span all rows, so a layout by the key would spare queries nothing."""
    wide = keys(3, 990)
    condition = is_("place", "=", 3, pa.int64())

    log, [effect] = bound(table, logged(wide, entries=5), logged(wide, predicate=condition))

    [found] = log.filters
    assert boxes_of(found) == ((Range(PLACE, "3", "3"),),)
    assert log.unused == {f"{KEPT_OUT}: day": 5}
    assert (effect.queries, effect.counted) == (6, 0)
    assert effect.share == pytest.approx(0.988)


@pytest.mark.parametrize(("high", "counts"), [(WIDE * SAMPLED - 2, 1), (WIDE * SAMPLED - 1, 0)])
def test_a_range_counts_up_to_a_share_of_the_rows(table, high, counts):
    """Of wider ones, hardly a file could be skipped."""
    log, [effect] = bound(table, logged(keys(0, int(high))))

    assert len(log.filters) == effect.counted == counts


def test_each_of_several_joins_counts_by_itself(table):
    """The range of one table counts where that of another one spans everything."""
    narrow, wide = keys(100, 199), keys(0, 9, PLACE, "places.region")

    log, effects = bound(table, logged(narrow, wide), logged(narrow))

    [found] = log.filters  # the same condition of both
    assert boxes_of(found) == ((Range(DAY, "100", "199"),),)
    assert found.weight == found.entries == 2
    assert [(each.column, each.queries, each.counted) for each in effects] == [
        ("day", 2, 2),
        ("place", 1, 0),
    ]


def test_tables_that_are_not_read_are_listed_and_do_not_count(table):
    """And so are those without a row that matches."""
    unread = KeyRange(DAY, "facts.a", None, None, 1.0)
    no_row = replace(unread, through="dates.year", low=pa.scalar(None, pa.int64()), matching=0.0)
    no_row = replace(no_row, high=no_row.low)

    log, effects = bound(table, logged(unread), logged(no_row))

    assert log.filters == ()
    assert log.unused == {f"{KEPT_OUT}: day": 2}
    assert [each.share for each in effects] == [1.0, None]


def test_a_log_without_joins_stays_as_it_is(table):
    """Even with conditions that are the same."""
    log = QueryLog((logged(), logged()), 2, {})

    assert bound_joins(log, table) == (log, ())


def test_a_join_that_was_not_read_is_said_with_the_reason(table):
    """Among the unused entries, beside those that count."""
    unread = KeyRange(DAY, "dates.name", None, None, 1.0, "the table cannot be read")

    log, effects = bound(table, logged(keys(100, 199)), logged(unread, entries=3))

    assert log.unused == {f"{UNREAD}: day": 3}
    assert [(each.through, each.counted, each.share is None) for each in effects] == [
        ("dates.name", 0, True), ("dates.year", 1, False)
    ]  # fmt: skip
    assert [each.unread for each in effects] == ["the table cannot be read", ""]
