"""Which constants become values of a column's type; the ids are those of the catalogue."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from zadapter.filters.datetimes import zone
from zadapter.filters.predicate import Comparison, Constant, In, Unknown
from zadapter.filters.sql import parse

LTZ, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
NEW_YEAR = datetime.fromisoformat("2024-01-01")


def value(literal, type_, **settings):
    """Return what a column of *type_* is compared with, None if that is unknown."""
    schema = pa.schema([("x", type_)])
    found = parse(f"x = {literal}", schema, **settings)
    mirrored = parse(f"{literal} = x", schema, **settings)
    if isinstance(found, Unknown):
        assert isinstance(mirrored, Unknown)
        return None
    assert isinstance(found, Comparison)
    assert found.value.type == type_
    assert repr(found) == repr(mirrored)
    return found.value.as_py()


def utc(text):
    """Write a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_s18_integers_are_exact_and_in_range(type_):
    """The first and the last value are, the ones beyond are not."""
    last = 2 ** (type_.bit_width - 1) - 1

    assert value(last, type_) == last
    assert value(-last - 1, type_) == -last - 1
    assert value(last + 1, type_) is None
    assert value(-last - 2, type_) is None


@pytest.mark.parametrize(
    "literal",
    ["'1'", "1.5", "1.0", "1e0", "1D", "1F", "1BD", "TRUE", "DATE '2024-01-01'", "X'01'", "''"],
)
@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_s18_only_integers_are_compared_as_integers(literal, type_):
    """Spark casts the column for anything else."""
    assert value(literal, type_) is None


@pytest.mark.parametrize(
    ("literal", "type_", "expected"),
    [
        ("1L", pa.int32(), 1),
        ("1S", pa.int64(), 1),
        ("-1Y", pa.int8(), -1),
        ("128Y", pa.int32(), None),
        ("CAST(1 AS INT)", pa.int64(), 1),
        ("CAST(300 AS TINYINT)", pa.int32(), None),
        ("CAST(1.7 AS INT)", pa.int32(), None),
        ("CAST('1' AS INT)", pa.int32(), None),
        ("CAST(TRUE AS INT)", pa.int32(), None),
        ("CAST(1 AS STRING)", pa.string(), None),
        ("TRUE", pa.bool_(), True),
        ("1", pa.bool_(), None),
        ("'true'", pa.bool_(), None),
        ("-TRUE", pa.bool_(), None),
        ("'a'", pa.large_string(), "a"),
        ("1", pa.string(), None),
        ("DATE '2024-01-01'", pa.string(), None),
        ("X'0aFF'", pa.binary(), b"\x0a\xff"),
        ("X'123'", pa.large_binary(), b"\x01\x23"),
        ("'a'", pa.binary(), None),
        ("1", pa.time64("us"), None),
        ("1", pa.list_(pa.int32()), None),
        ("1", pa.float16(), None),
        ("1", pa.decimal256(40, 0), None),
    ],
)
def test_s18_constants_keep_their_family(literal, type_, expected):
    """Suffixes and casts that lose nothing are read; others are not guessed."""
    assert value(literal, type_) == expected


@pytest.mark.parametrize(
    ("literal", "single", "double"),
    [
        ("0.5", 0.5, 0.5),
        ("0.1", None, 0.1),
        ("0.1D", None, 0.1),
        ("0.1F", 0.10000000149011612, 0.10000000149011612),
        ("CAST(0.1 AS FLOAT)", 0.10000000149011612, 0.10000000149011612),
        ("16777217", None, 16777217.0),
        ("16777217F", None, None),
        ("1e300", None, 1e300),
        ("1e39F", None, None),
        ("-1.5e0", -1.5, -1.5),
        ("double('Infinity')", math.inf, math.inf),
        ("CAST('-inf' AS FLOAT)", -math.inf, -math.inf),
        ("CAST('0.5' AS DOUBLE)", None, None),
        ("'0.5'", None, None),
        ("TRUE", None, None),
    ],
)
def test_s17_a_float_is_compared_with_what_it_can_be(literal, single, double):
    """Spark compares single precision with 0.1 as doubles, and then none is equal."""
    assert value(literal, pa.float32()) == single
    assert value(literal, pa.float64()) == double


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("literal", ["double('NaN')", "CAST('nan' AS FLOAT)", "-double('NaN')"])
def test_s01_nan_has_literals(literal, type_):
    """However it is written, it is NaN."""
    assert math.isnan(value(literal, type_))


@pytest.mark.parametrize(
    ("literal", "precision", "scale", "expected"),
    [
        ("1", 5, 2, "1.00"),
        ("1.5", 5, 2, "1.50"),
        ("1.500", 5, 2, "1.50"),
        ("1.505", 5, 2, None),
        ("1000", 5, 2, None),
        ("CAST(1.5 AS DECIMAL)", 5, 2, None),
        ("CAST(1 AS DECIMAL(38, 18))", 5, 2, None),
        ("1.5D", 5, 2, None),
        ("1e0", 5, 2, None),
        ("'1'", 5, 2, None),
        ("TRUE", 5, 2, None),
        ("9007199254740993", 18, 0, "9007199254740993"),
        ("9" * 38, 38, 0, "9" * 38),
        ("-" + "9" * 38, 38, 0, "-" + "9" * 38),
        ("9" * 20 + "." + "9" * 18, 38, 18, "9" * 20 + "." + "9" * 18),
        ("-" + "9" * 20 + "." + "9" * 18, 38, 18, "-" + "9" * 20 + "." + "9" * 18),
        ("1.00", 38, 0, None),
        ("1", 38, 30, None),
    ],
)
def test_s16_decimals_are_exact(literal, precision, scale, expected):
    """Digits are never rounded, neither the literal's nor those of the column."""
    found = value(literal, pa.decimal128(precision, scale))

    assert found == (expected and Decimal(expected))


@pytest.mark.parametrize("literal", ["1.5", "0.05", "100", "999.99", "1.50"])
def test_s16_decimals_with_a_suffix_are_exact_or_unknown(literal):
    """Some releases of the parser write them as a cast that would round."""
    assert value(f"{literal}BD", pa.decimal128(5, 2)) in {None, Decimal(literal)}


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("DATE '2024-02-29'", date(2024, 2, 29)),
        ("'2024-02-29'", date(2024, 2, 29)),
        ("'2024-2-9'", date(2024, 2, 9)),
        ("CAST('2024-02-29' AS DATE)", date(2024, 2, 29)),
        ("'0001-01-01'", date(1, 1, 1)),
        ("'9999-12-31'", date(9999, 12, 31)),
        *(("'2023-02-29'", None), ("'2024'", None), ("'2024-02'", None), ("'24-02-29'", None)),
        *(("'2024-02-29 00:00:00'", None), ("' 2024-02-29'", None), ("'today'", None), ("1", None)),
        *(("'\uff12024-02-29'", None), ("TIMESTAMP '2024-02-29 00:00:00'", None)),
        *(("DATE '2024-02-29' + 1", None), ("to_date('2024-02-29')", None)),
    ],
)
def test_dates_are_read_in_one_form(literal, expected):
    """Spark turns the string into a date; forms that it takes beyond ISO are not relied on."""
    assert value(literal, pa.date32()) == expected


@pytest.mark.parametrize(
    ("literal", "local", "instant"),
    [
        ("'2024-07-01'", "2024-07-01", "2024-06-30T22:00"),
        ("DATE '2024-07-01'", "2024-07-01", "2024-06-30T22:00"),
        ("'2024-07-01 12:30:15.5'", "2024-07-01T12:30:15.500", "2024-07-01T10:30:15.500"),
        ("TIMESTAMP_NTZ '2024-07-01 12:00:00'", "2024-07-01T12:00", "2024-07-01T10:00"),
        ("TIMESTAMP_LTZ '2024-07-01T12:00:00'", None, "2024-07-01T10:00"),
        ("TIMESTAMP '2024-07-01 12:00:00'", None, "2024-07-01T10:00"),
        ("'2024-07-01T12:00:00Z'", None, "2024-07-01T12:00"),
        ("'2024-07-01 12:00:00-03:30'", None, "2024-07-01T15:30"),
        ("'2024-07-01 12:00:00.1234567'", None, None),
        ("'2024-07-01 25:00:00'", None, None),
        ("'2024-07-01 12:00:00 Asia/Tokyo'", None, None),
        ("'12:00:00'", None, None),
        ("1719828000", None, None),
    ],
)
def test_s12_times_without_a_zone_are_in_the_sessions(literal, local, instant):
    """A column with a zone is compared with an instant, one without by the clock on the wall."""
    berlin = {"timezone": "Europe/Berlin"}

    assert value(literal, NTZ, **berlin) == (local and datetime.fromisoformat(local))
    assert value(literal, LTZ, **berlin) == (instant and utc(instant))


@pytest.mark.parametrize(
    ("literal", "instant"),
    [
        ("'2021-10-31 02:30:00'", "2021-10-31T00:30"),
        ("'2021-10-31 03:00:00'", "2021-10-31T02:00"),
        ("'2021-03-28 02:30:00'", "2021-03-28T01:30"),
        ("'2021-03-28 03:30:00'", "2021-03-28T01:30"),
        ("'1970-01-02'", "1970-01-01T23:00"),
    ],
)
def test_s12_gaps_and_overlaps_are_resolved_as_java_does(literal, instant):
    """A time that occurs twice is the earlier; one that does not occur is put off."""
    assert value(literal, LTZ, timezone="Europe/Berlin") == utc(instant)


def test_s12_regions_are_not_relied_on_before_1970():
    """Copies of the zone database disagree there, but not about offsets."""
    assert value("'1969-12-31 12:00:00'", LTZ, timezone="Europe/Amsterdam") is None
    assert value("'1969-12-31 12:00:00'", LTZ, timezone="+01:00") == utc("1969-12-31T11:00")
    assert value("'0001-01-01'", LTZ, timezone="+01:00") is None


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("GMT+8", 8),
        ("-03:30", -3.5),
        ("UTC+1", 1),
        ("+0530", 5.5),
        ("Etc/GMT+5", -5),
    ],
)
def test_s12_zones_are_named_as_in_spark(name, hours):
    """Offsets are told as Java writes them."""
    assert NEW_YEAR.replace(tzinfo=zone(name)).utcoffset() == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["PST", "Mars/Phobos", "../UTC", "", "/etc/localtime"])
def test_s12_a_zone_that_is_not_known_makes_times_unknown(name):
    """It is Spark's, and it may know it; times that name their own zone stay known."""
    assert value("'2024-01-01'", LTZ, timezone=name) is None
    assert value("'2024-01-01T00:00:00Z'", LTZ, timezone=name) == utc("2024-01-01")
    assert value("'2024-01-01'", NTZ, timezone=name) == NEW_YEAR


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_s11_other_units_take_what_they_can_hold(unit):
    """A microsecond is no millisecond, and the year 9999 does not fit nanoseconds."""
    type_ = pa.timestamp(unit)

    assert value("'2024-01-01'", type_) == NEW_YEAR
    assert (value("'2024-01-01 00:00:00.000001'", type_) is None) == (unit != "ns")
    assert (value("'9999-12-31'", type_) is None) == (unit == "ns")


@pytest.mark.parametrize(
    ("listed", "type_", "known"),
    [
        ("'2024-01-01', '2024-01-02', NULL", pa.date32(), True),
        ("'2024-1-1'", pa.date32(), False),
        ("DATE '2024-01-01', DATE '2024-1-2'", pa.date32(), True),
        ("DATE '2024-01-01', '2024-01-02'", pa.date32(), False),
        ("'2024-01-01 00:00:00'", LTZ, False),
        ("'2024-01-01 00:00:00'", NTZ, False),
        ("TIMESTAMP '2024-01-01 00:00:00', DATE '2024-01-02'", LTZ, True),
        ("1, 2.5", pa.int32(), False),
        ("1, 2.5", pa.decimal128(9, 2), True),
        ("0.5, 0.1", pa.float32(), False),
    ],
)
def test_s18_lists_are_known_as_a_whole(listed, type_, known):
    """Spark finds one type for a list; without ANSI mode, strings make the column a string."""
    found = parse(f"x IN ({listed})", pa.schema([("x", type_)]))

    assert isinstance(found, In if known else Unknown)


def test_a_cast_of_null_is_not_evaluated():
    """Only NULL itself is read as null."""
    schema = pa.schema([("x", pa.int32())])

    assert parse("x = NULL", schema) == Constant(value=None)
    assert isinstance(parse("x = CAST(NULL AS INT)", schema), Unknown)
