"""Values are written as Iceberg's spec has them (Appendix D), for other readers to believe."""

import json
import math
from datetime import date, datetime, timezone
from decimal import Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyiceberg import types as iceberg
from pyiceberg.conversions import from_bytes, to_bytes

from zadapter_iceberg.stats.binary_values import encode_bounds, json_values

MICROS, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")
INT, LONG = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
TYPES = {
    "boolean": (pa.bool_(), iceberg.BooleanType(), st.booleans()),
    "byte": (pa.int8(), iceberg.IntegerType(), st.integers(-128, 127)),
    "short": (pa.int16(), iceberg.IntegerType(), st.integers(-(1 << 15), (1 << 15) - 1)),
    "integer": (pa.int32(), iceberg.IntegerType(), INT),
    "long": (pa.int64(), iceberg.LongType(), LONG),
    "float": (pa.float32(), iceberg.FloatType(), st.floats(width=32, allow_nan=False)),
    "double": (pa.float64(), iceberg.DoubleType(), st.floats(allow_nan=False)),
    "string": (pa.string(), iceberg.StringType(), st.text()),
    "date": (pa.date32(), iceberg.DateType(), INT),
    "timestamp": (MOMENT, iceberg.TimestamptzType(), LONG),
    "timestamp_ntz": (MICROS, iceberg.TimestampType(), LONG),
}
JANUARY = date(2024, 1, 31)


@st.composite
def columns(draw):
    """A column of any primitive type but decimal, and its values as Iceberg takes them."""
    arrow, type_, values = TYPES[draw(st.sampled_from([*TYPES]))]
    drawn = draw(st.lists(st.none() | values))
    storage = {pa.date32(): pa.int32(), MOMENT: pa.int64(), MICROS: pa.int64()}.get(arrow, arrow)
    return pa.array(drawn, storage).cast(arrow), type_, drawn


@st.composite
def decimals(draw):
    """A precision, a scale, and numbers that fit."""
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    unscaled = draw(st.lists(st.none() | st.integers(-most, most) | st.sampled_from([most, -most])))
    exact = Context(prec=38)
    return (
        precision,
        scale,
        [n if n is None else Decimal(n).scaleb(-scale, exact) for n in unscaled],
    )


@given(columns())
def test_bounds_are_the_bytes_of_pyiceberg(column):
    """Whatever the type; null stays null."""
    array, type_, drawn = column

    assert encode_bounds(array) == [None if v is None else to_bytes(type_, v).hex() for v in drawn]


@given(decimals())
@example((38, 0, [Decimal(1 - 10**38), None, Decimal(128), Decimal(-128), Decimal(-129)]))
def test_bounds_of_decimals_are_the_fewest_bytes(case):
    """In two's complement, the sign included, the most significant first."""
    precision, scale, drawn = case
    array = pa.array(drawn, pa.decimal128(precision, scale))
    type_ = iceberg.DecimalType(precision, scale)

    found = encode_bounds(array)

    assert found == [None if v is None else to_bytes(type_, v).hex() for v in drawn]
    assert [f and from_bytes(type_, bytes.fromhex(f)) for f in found] == drawn


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_no_bound_is_nan(type_):
    """Nor is one made up for it; infinity is a bound."""
    array = pa.array([math.nan, -math.inf, None, -0.0], type_)
    zero = bytes(type_.bit_width // 8 - 1).hex() + "80"

    found = encode_bounds(array)

    assert found[0] is None is found[2]
    assert from_bytes(iceberg.DoubleType() if len(zero) > 8 else iceberg.FloatType(),
                      bytes.fromhex(found[1])) == -math.inf  # fmt: skip
    assert found[3] == zero


@pytest.mark.parametrize("type_", [pa.binary(), pa.list_(pa.int64()), pa.null(), pa.time64("us")])
def test_other_types_have_no_bounds(type_):
    assert encode_bounds(pa.nulls(2, type_)) == [None, None]


def test_slices_have_their_own_values():
    array = pa.array([1, None, 3, None], pa.int32()).slice(2)

    assert encode_bounds(array) == ["03000000", None]


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (pa.bool_(), [True, False], [True, False]),
        (pa.int8(), [-1, 127], [-1, 127]),
        (pa.int64(), [-(1 << 63), 1 << 62], [-(1 << 63), 1 << 62]),
        (pa.float32(), [0.5, -0.25], [0.5, -0.25]),
        (pa.float64(), [0.1], [0.1]),
        (pa.string(), ["", "ä b", 'x"'], ["", "ä b", 'x"']),
        (pa.binary(), [b"", b"\x00\xff"], ["", "00ff"]),
        (pa.decimal128(9, 2), [Decimal("14.20"), Decimal("-0.01")], ["14.20", "-0.01"]),
        (pa.decimal128(9, 2), [Decimal("0.00")], ["0.00"]),
        (pa.decimal128(38, 10), [Decimal("0E-10")], ["0.0000000000"]),
        (pa.decimal128(38, 0), [Decimal(-(10**37))], ["-1" + "0" * 37]),
        (pa.date32(), [JANUARY, date(1, 1, 1)], ["2024-01-31", "0001-01-01"]),
        (
            MICROS,
            [datetime(2017, 11, 16, 22, 31, 8), datetime(1969, 12, 31, 23, 59, 59, 999_999)],  # noqa: DTZ001
            ["2017-11-16T22:31:08.000000", "1969-12-31T23:59:59.999999"],
        ),
        (
            MOMENT,
            [datetime(1969, 12, 31, 23, 59, 59, 1, timezone.utc)],
            ["1969-12-31T23:59:59.000001+00:00"],
        ),
    ],
)
def test_partition_values_are_the_json_of_the_spec(type_, values, expected):
    """And null is null."""
    array = pa.array([*values, None], type_)

    assert json_values(array, type_) == [*expected, None]
    assert json.loads(json.dumps(json_values(array, type_))) == [*expected, None]


@given(st.lists(st.none() | st.datetimes()))
def test_timestamps_are_read_back_as_they_were(drawn):
    """With their microseconds; those that stand for a moment are in UTC."""
    aware = [each and each.replace(tzinfo=timezone.utc) for each in drawn]

    plain = json_values(pa.array(drawn, MICROS), MICROS)
    moments = json_values(pa.array(aware, MOMENT), MOMENT)

    assert [text and datetime.fromisoformat(text) for text in plain] == drawn
    assert [text and datetime.fromisoformat(text) for text in moments] == aware
    assert all(text is None or text.endswith("+00:00") for text in moments)


@given(st.lists(st.none() | st.dates()))
def test_days_are_read_back_as_they_were(drawn):
    found = json_values(pa.array(drawn, pa.date32()), pa.date32())

    assert [text and date.fromisoformat(text) for text in found] == drawn


def test_years_of_more_or_less_than_four_digits_have_a_sign():
    """As ISO 8601 wants it, and Java with it."""
    days = pa.array([2_932_896, 2_932_897, -719_529], pa.int32()).cast(pa.date32())
    moments = pa.array([(1 << 63) - 1], pa.int64()).cast(MICROS)

    assert json_values(days, pa.date32()) == ["9999-12-31", "+10000-01-01", "-0001-12-31"]
    assert json_values(moments, MICROS) == ["+294247-01-10T04:00:54.775807"]
