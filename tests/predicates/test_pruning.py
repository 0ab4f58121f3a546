"""Which truth values the stats of values leave possible; the ids are those of the catalogue."""

import math
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.kit.file_tables import ANY, asked, bounds, outcomes, table_of
from zadapter.predicates.predicate import Comparison
from zadapter.table.file_stats import Bounds


@pytest.mark.parametrize(
    ("condition", "with_nan", "without"),
    [
        ("x == nan", "TF", "F"),
        ("x > 5", "TF", "F"),
        ("x >= 5", "TF", "F"),
        ("x < 5", "TF", "T"),
        ("~(x < 5)", "TF", "F"),
        ("x <= nan", "T", "T"),
        ("x < nan", "TF", "T"),
        ("x > nan", "F", "F"),
        ("x.isin(5, nan)", "TF", "F"),
        ("~x.isin(5)", "T", "T"),
        ("x != 5", "T", "T"),
        ("x.same(nan)", "TF", "F"),
    ],
)
def test_nan_is_above_every_number(condition, with_nan, without):
    """NaN equals NaN and nothing else, whatever the bounds of the other values are."""
    uncounted, counted = bounds(1.0, 3.0, nans=None), bounds(1.0, 3.0, nans=2)
    told_by_max = bounds(1.0, math.nan, nans=None)

    found = asked(condition, pa.float64(), uncounted, counted, bounds(1.0, 3.0))

    assert found == [with_nan, with_nan, without]
    assert set(with_nan) <= set(*asked(condition, pa.float64(), told_by_max))


def test_a_bound_that_is_nan_is_no_bound():
    """It says that NaN may occur, whatever was counted; the other bound still holds."""
    stats = bounds(1.0, math.nan)

    assert asked("x < 1", pa.float64(), stats) == ["F"]
    assert asked("x == 5", pa.float64(), stats) == ["TF"]
    assert asked("x == nan", pa.float64(), stats) == ["TF"]
    assert asked("x == 5", pa.float64(), bounds(math.nan, 3.0)) == ["F"]


def test_a_file_of_nothing_but_nulls():
    """It has no NaN either, counted or not."""
    assert asked("x > 5", pa.float64(), bounds(None, None, nulls=10, nans=None)) == ["N"]


def test_a_file_of_nothing_but_nan():
    """Without another value, only the NaN decides."""
    only_nan = bounds(None, None, nulls=4, nans=6)

    assert asked("x < 5", pa.float64(), only_nan) == ["FN"]
    assert asked("x == nan", pa.float64(), only_nan) == ["TN"]


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_zeros_are_one_value(zero, type_):
    """The sign of a zero neither tells values apart nor orders them."""
    conditions = ["x == 0", "x < 0", "x >= 0", "x.isin(-0.0)", "x != -0.0", "x.isin(1, 0)"]

    found = [asked(condition, type_, bounds(zero, zero)) for condition in conditions]

    assert found == [["T"], ["F"], ["T"], ["T"], ["F"], ["T"]]


@pytest.mark.parametrize(
    ("condition", "no_nulls", "some", "all_null"),
    [
        ("x == 1", "T", "TN", "N"),
        ("x != 1", "F", "FN", "N"),
        ("~(x == 1)", "F", "FN", "N"),
        ("~x.isin(1, None)", "F", "FN", "N"),
        ("~x.isin(2, None)", "N", "N", "N"),
        ("x.isin(None)", "N", "N", "N"),
        ("x.isin(2, None)", "N", "N", "N"),
        ("x == None", "N", "N", "N"),
        ("x.same(None)", "F", "TF", "T"),
        ("x.same(1)", "T", "TF", "F"),
        ("~(x.same(1))", "F", "TF", "T"),
        ("x.isnull()", "F", "TF", "T"),
        ("~x.isnull()", "T", "TF", "F"),
        ("~((x == 1) & (x > 5))", "T", "TN", "N"),
        ("(x == 2) | null", "N", "N", "N"),
        ("(x == 1) & null", "N", "N", "N"),
    ],
)
def test_null_follows_three_valued_logic(condition, no_nulls, some, all_null):
    """Null is neither true nor false, and a file without nulls has none."""
    files = [bounds(1, 1), bounds(1, 1, nulls=3), bounds(None, None, nulls=10)]

    assert asked(condition, pa.int32(), *files) == [no_nulls, some, all_null]


def test_files_without_stats_are_kept():
    """What is not known excludes nothing, and takes nothing from the other files."""
    stats = [None, ANY, bounds(None, None, nulls=None, nans=None), bounds(7, 9)]

    assert asked("x == 5", pa.int32(), *stats) == ["TFN", "TFN", "TFN", "F"]
    assert asked("x.isnull()", pa.int32(), *stats) == ["TF", "TF", "TF", "F"]


def test_columns_without_stats_may_hold_anything():
    """A column that old files lack may read as null there, or as its default."""
    table = table_of({"y": bounds(1, 1)}, y=pa.int32())

    assert outcomes("x == 5", table, x=pa.int32()) == ["TFN"]
    assert outcomes("x.isin(5) & (y == 2)", table, x=pa.int32(), y=pa.int32()) == ["F"]
    assert outcomes("x.isnull()", table, x=pa.int32()) == ["TF"]


def test_one_bound_is_enough():
    """A file is excluded by the bound it has."""
    low, high = bounds(6, None, kind=Bounds.WIDENED), bounds(None, 4, kind=Bounds.WIDENED)

    assert asked("x == 5", pa.int32(), low, high) == ["F", "F"]
    assert asked("x.isin(4, 5, 6)", pa.int32(), low, high) == ["TF", "TF"]


def test_a_count_that_is_missing_is_not_zero():
    """Nulls and NaN may occur unless they are counted as none."""
    assert asked("x.isnull()", pa.int32(), bounds(1, 1, nulls=None)) == ["TF"]
    assert asked("x > 5", pa.float64(), bounds(1.0, 1.0, nans=None)) == ["TF"]
    assert asked("x == 1", pa.int32(), bounds(1, 1, nulls=10), rows=None) == ["TN"]


@pytest.mark.parametrize("last", ["\x7f", "\ud7ff", "\ue000", "\uffff", "😀", "\U0010ffff"])
@pytest.mark.parametrize("length", [16, 32, 64])
def test_long_strings_are_told_apart_to_the_last_byte(last, length):
    """A common prefix of any length hides nothing."""
    text = "p" * length + last
    stats = bounds(text, text + "\0")

    assert asked(f"x == '{text}'", pa.string(), stats) == ["TF"]
    assert asked(f"x < '{text}'", pa.string(), stats) == ["F"]
    assert asked(f"x.startswith('{text}')", pa.string(), stats) == ["T"]
    assert asked(f"x.startswith('{text}p')", pa.string(), stats) == ["F"]
    assert asked(f"x.startswith('{text[:-1]}')", pa.string(), stats) == ["T"]


def test_bounds_that_are_cut_still_hold():
    """Bounds may be no values of the file: then less follows from them, but nothing wrong."""
    cut = bounds("ppp", "ppq", kind=Bounds.WIDENED)

    assert asked("x == 'pppp'", pa.string(), cut) == ["TF"]
    assert asked("x > 'ppq'", pa.string(), cut) == ["F"]
    assert asked("x.startswith('pp')", pa.string(), cut) == ["T"]


def test_strings_are_ordered_by_their_utf8_bytes():
    """A surrogate pair is above U+FFFF in UTF-8, and below it in UTF-16."""
    assert asked("x > '\uffff'", pa.string(), bounds("😀", "😀")) == ["T"]
    assert asked("x < '😀'", pa.string(), bounds("\ue000", "\uffff")) == ["T"]
    assert asked("x.isin('😀')", pa.string(), bounds("\ue000", "\uffff")) == ["F"]


@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_timestamps_differ_by_microseconds(type_):
    """No time is lost between milliseconds, nor at the end of the range."""
    zone = timezone.utc if type_.tz else None
    time = datetime(2024, 1, 1, 0, 0, 0, 999, zone)
    last = pa.scalar(2**63 - 1, type_)
    table = table_of({"x": bounds(time, time)}, x=type_)
    at_the_end = table_of({"x": bounds(last, last)}, x=type_)

    assert outcomes("x == '2024-01-01 00:00:00.000999'", table, x=type_) == ["T"]
    assert outcomes("x == '2024-01-01 00:00:00.001'", table, x=type_) == ["F"]
    assert outcomes(Comparison(("x",), ">=", last), at_the_end) == ["T"]
    assert outcomes(Comparison(("x",), "<", last), at_the_end) == ["F"]


def test_the_high_bit_of_unsigned_integers_is_no_sign():
    """2^63 is above 2^63 - 1."""
    stats = bounds(2**63, 2**64 - 1)

    assert asked("x > 9223372036854775807", pa.uint64(), stats) == ["T"]
    assert asked("x == 0", pa.uint64(), stats) == ["F"]


@pytest.mark.parametrize(
    ("type_", "value", "other"),
    [
        (pa.int64(), 2**53, 2**53 + 1),
        (pa.decimal128(18, 0), Decimal(2**53), Decimal(2**53 + 1)),
        (pa.decimal128(38, 0), Decimal("9" * 38), Decimal("9" * 37 + "8")),
        (pa.decimal128(38, 18), Decimal("1." + "0" * 17 + "1"), Decimal("1." + "0" * 17 + "2")),
    ],
)
def test_long_numbers_are_compared_to_the_last_digit(type_, value, other):
    """Nothing passes through floating point."""
    stats = bounds(value, value)

    assert asked(f"x == Decimal('{value}')", type_, stats) == ["T"]
    assert asked(f"x == Decimal('{other}')", type_, stats) == ["F"]
    assert asked(f"x.isin(Decimal('{value}'), Decimal('{other}'))", type_, stats) == ["T"]
    assert asked(f"x == Decimal('-{value}')", type_, stats) == ["F"]
