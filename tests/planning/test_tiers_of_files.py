"""The tier of a file follows from its newest value, whatever the column's type."""

from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from tests.kit.builders import file_table
from zadapter.planning.tiers import Tier, Tiers, has_age

NOW = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)
HOT, WARM, COLD = Tier.HOT, Tier.WARM, Tier.COLD
TIERS = Tiers(
    column=("t",), hot_after=NOW - timedelta(days=2), cold_before=NOW - timedelta(days=30)
)
MOMENTS = [
    (NOW, HOT),
    (NOW + timedelta(days=900), HOT),
    (NOW - timedelta(days=2), WARM),
    (NOW - timedelta(days=29, hours=23), WARM),
    (NOW - timedelta(days=30), COLD),
    (datetime(1, 1, 1, tzinfo=timezone.utc), COLD),
    (None, WARM),
]
"""Newest values, and the tier of files that have them."""


def by_bounds(values):
    """A file table with these upper bounds of t."""
    count = len(values)
    none = pa.nulls(count, values.type)
    nulls = pa.array([0] * count, pa.int64())
    return file_table(
        [str(number) for number in range(count)],
        sizes=[1] * count,
        stats={"t": (none, values, nulls)},
    )


def by_partition(values):
    return file_table(
        [str(number) for number in range(len(values))],
        sizes=[1] * len(values),
        partition={"t": values},
    )


@pytest.mark.parametrize("table", [by_bounds, by_partition])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps(table, unit, zone):
    """Of any unit and zone; those without a zone count as UTC, and unknown ones are warm."""
    known = [each for each in MOMENTS if unit != "ns" or each[0] is None or each[0].year > 1]
    given = pa.array([moment for moment, _ in known], pa.timestamp("us", "UTC"))
    values = given.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp(unit, zone))

    assert TIERS.of(table(values)).tolist() == [tier for _, tier in known]


@pytest.mark.parametrize("table", [by_bounds, by_partition])
def test_days(table):
    """A day is as new as its last moment, so that no file becomes cold too early."""
    days = pa.array([date(2025, 2, 27), date(2025, 2, 26), date(2025, 1, 30), date(2025, 1, 29)])

    assert TIERS.of(table(days)).tolist() == [HOT, WARM, WARM, COLD]


def test_texts_of_partitions():
    """Days, or days with a time; a text that is none is of unknown age."""
    texts = ["2025-02-28", "2025-02-01 07:00", "2025-01-29T23", "20250101", "", "2025-13-01", None]

    table = by_partition(pa.array(texts))
    assert TIERS.of(table).tolist() == [HOT, WARM, COLD, WARM, WARM, WARM, WARM]
    assert TIERS.counts(table) == {"hot": 1, "warm": 5, "cold": 1, "unknown": 4}


def test_either_limit_may_be_left_out():
    """Then no file is hot, or none is cold."""
    table = by_bounds(pa.array([NOW, NOW - timedelta(days=400)]))

    only_hot = Tiers(column=("t",), hot_after=NOW - timedelta(days=1), cold_before=None)
    only_cold = Tiers(column=("t",), hot_after=None, cold_before=NOW - timedelta(days=1))
    assert only_hot.of(table).tolist() == [HOT, WARM]
    assert only_cold.of(table).tolist() == [WARM, COLD]


def test_files_without_stats_of_the_column_are_warm():
    """They may hold rows of any age."""
    table = file_table(["0"], sizes=[1])

    assert TIERS.of(table).tolist() == [WARM]
    assert TIERS.add_tier(table)["tier"].to_pylist() == ["warm"]


def test_types_without_an_age():
    """Texts have one as partition values only: bounds of texts may be shortened."""
    assert has_age(pa.date32(), is_partition=False)
    assert has_age(pa.string(), is_partition=True)
    assert not has_age(pa.string(), is_partition=False)
    assert not has_age(pa.int32(), is_partition=True)
