"""The table of key types, and values as text: they come back bit by bit, as Spark reads them."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zadapter.base.key_types import (
    KEY_TYPES,
    KINDS,
    find_by_name,
    find_by_sql_name,
    find_key_type,
    is_key,
    kind_of,
    read_type,
    texts,
    to_arrow_type,
    to_integers,
    values,
    write_type,
)
from zadapter.base.ranks import rank

DAY = 86_400_000_000
INTEGERS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
ZONED = pa.timestamp("us", "UTC")
INSTANTS = [pa.timestamp("us"), ZONED]
DECIMALS = [(1, 0), (9, 2), (18, 18), (19, 0), (38, 0), (38, 10), (38, 38)]

DATE = r"-?\d{4,7}-\d\d-\d\d"
TIMESTAMP = r"-?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}"

micros = st.integers(-(1 << 63) + 1, (1 << 63) - 1)
days = st.integers(-(1 << 31), (1 << 31) - 1)


def back(array):
    """What becomes of *array* on the way through text."""
    return values(texts(array), array.type)


def as_bits(array):
    """The bits of each value, all NaNs being one; null is None."""
    present = array.is_valid().to_pylist()
    floats = array.fill_null(0).to_numpy(zero_copy_only=False)
    unsigned = np.where(np.isnan(floats), np.nan, floats).astype(floats.dtype)
    integers = unsigned.view(f"uint{8 * floats.itemsize}").tolist()
    return [bits if valid else None for bits, valid in zip(integers, present, strict=True)]


def nullable(strategy):
    return st.lists(st.none() | strategy, max_size=8)


def unscaled(digits, scale):
    """The decimal of these digits, exact beyond the precision of arithmetic."""
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_integers_come_back(type_, data):
    """Up to both ends of their width."""
    end = 1 << INTEGERS[type_] - 1
    array = pa.array(data.draw(nullable(st.integers(-end, end - 1))), type_)

    assert back(array).equals(array)
    assert back(pa.array([-end, end - 1, None], type_)).to_pylist() == [-end, end - 1, None]


@pytest.mark.parametrize("width", [32, 64])
@given(data=st.data())
@settings(deadline=None, max_examples=200)
def test_floats_come_back_with_every_bit(width, data):
    """The smallest subnormal, the largest number, either zero, infinities; NaN stays NaN."""
    type_ = pa.float32() if width == 32 else pa.float64()
    drawn = data.draw(nullable(st.floats(width=width)))
    array = pa.array(drawn, type_, from_pandas=False)

    assert as_bits(back(array)) == as_bits(array)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_bits_are_a_float_that_comes_back(dtype):
    """Twenty thousand random patterns, the edges of both ranges among them."""
    unsigned = np.dtype(dtype.replace("float", "uint"))
    random = np.random.default_rng(1).integers(0, np.iinfo(unsigned).max, 20_000, unsigned)
    edges = np.finfo(dtype)
    known = [edges.max, edges.min, edges.tiny, edges.smallest_subnormal, -0.0, np.inf, -np.inf]
    array = pa.array(np.append(random.view(dtype), np.array(known, dtype)), from_pandas=False)

    assert as_bits(back(array)) == as_bits(array)


@pytest.mark.parametrize(("precision", "scale"), DECIMALS)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_decimals_come_back(precision, scale, data):
    """To 38 digits, all of them behind the point if need be, without an exponent."""
    end = 10**precision - 1
    digits = st.integers(-end, end) | st.sampled_from([-end, -1, 0, 1, end])
    drawn = data.draw(nullable(digits))
    type_ = pa.decimal128(precision, scale)
    array = pa.array([None if d is None else unscaled(d, scale) for d in drawn], type_)

    assert back(array).equals(array)
    assert all(text is None or re.fullmatch(r"-?\d+(\.\d+)?", text) for text in texts(array))


@given(drawn=nullable(days))
@example(drawn=[-(1 << 31), (1 << 31) - 1, -719_162, -719_163, -719_529, 2_932_896, 2_932_897])
@settings(deadline=None)
def test_dates_come_back(drawn):
    """All that 32 bits of days hold: far beyond the years that Python knows."""
    array = pa.array(drawn, pa.int32()).cast(pa.date32())

    assert back(array).equals(array)
    assert all(text is None or re.fullmatch(DATE, text) for text in texts(array))


@pytest.mark.parametrize("type_", INSTANTS, ids=str)
@given(drawn=nullable(micros | st.integers(-800_000, 3_000_000).map(lambda day: day * DAY)))
@example(drawn=[-(1 << 63) + 1, (1 << 63) - 1, -1, 0, 1, -719_162 * DAY, -719_163 * DAY - 1])
@settings(deadline=None)
def test_timestamps_come_back(type_, drawn):
    """Every microsecond that 64 bits hold but the very first, which numpy takes for "no time"."""
    array = pa.array(drawn, pa.int64()).cast(type_)

    assert back(array).equals(array)
    zone = "Z" if type_ == ZONED else ""
    assert all(text is None or re.fullmatch(TIMESTAMP + zone, text) for text in texts(array))


@given(drawn=nullable(st.text()))
@settings(deadline=None)
def test_strings_are_their_own_text(drawn):
    """Byte for byte, whatever the script."""
    array = pa.array(drawn, pa.string())

    assert texts(array) == drawn
    assert back(array).equals(array)


@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary(3)], ids=str)
@given(drawn=nullable(st.binary(min_size=3, max_size=3)))
@settings(deadline=None, max_examples=40)
def test_binary_is_written_as_spark_writes_hex(type_, drawn):
    """Upper case, so that text and ``hex(column)`` compare alike."""
    array = pa.array(drawn, type_)

    assert texts(array) == [None if b is None else "".join(f"{x:02X}" for x in b) for b in drawn]
    assert back(array).equals(array)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (float("nan"), pa.float64(), "NaN"),
        (float("-inf"), pa.float32(), "-Infinity"),
        (-0.0, pa.float64(), "-0.0"),
        (0.1, pa.float32(), "0.1"),
        (Decimal("1E-38"), pa.decimal128(38, 38), "0." + "0" * 37 + "1"),
        (-141_428 * DAY - 1, pa.timestamp("us"), "1582-10-13T23:59:59.999999"),
        (495 * 146_097 * DAY, ZONED, "199970-01-01T00:00:00.000000Z"),
        (-719_529 * DAY, ZONED, "-0001-12-31T00:00:00.000000Z"),
        (-719_528, pa.date32(), "0000-01-01"),
        (b"\x00\xff", pa.binary(), "00FF"),
    ],
    ids=str,
)
def test_known_texts(value, type_, text):
    """As Spark's casts read them, in its calendar: Gregorian for ever, with a year 0."""
    integer = isinstance(value, int) and not isinstance(value, bool)
    array = pa.array([value], from_pandas=False)
    if integer:
        array = pa.array([value], pa.int32() if type_ == pa.date32() else pa.int64())

    assert texts(array.cast(type_)) == [text]


@pytest.mark.parametrize(
    "type_",
    [pa.bool_(), *INTEGERS, pa.float32(), pa.float64(), pa.date32(), *INSTANTS, pa.string()],
    ids=str,
)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_nulls_come_back_in_their_type(type_, count):
    """Also where there is nothing else, or nothing at all."""
    array = pa.nulls(count, type_)

    assert texts(array) == [None] * count
    assert back(array).equals(array)


def test_rows_are_found_by_every_name():
    """And by Arrow's type, in whatever zone; kinds do not overlap."""
    for row in KEY_TYPES:
        assert (
            find_by_name(row.name) is find_by_sql_name(row.sql) is find_key_type(row.arrow) is row
        )
        assert kind_of(row.arrow) is row.kind
        assert read_type(write_type(row.arrow)) == row.arrow
    ids = [type_.id for kind in KINDS for type_ in kind.arrow]
    assert len(set(ids)) == len(ids)
    tokyo = pa.timestamp("us", "Asia/Tokyo")
    assert find_key_type(tokyo) is find_by_name("timestamp")
    assert read_type(write_type(tokyo)) == ZONED
    assert not any(is_key(pa.timestamp("ns", zone)) for zone in (None, "UTC"))


@pytest.mark.parametrize(("precision", "scale"), DECIMALS)
def test_decimals_have_one_row(precision, scale):
    """With their digits, which both texts keep."""
    type_, name = pa.decimal128(precision, scale), f"decimal({precision},{scale})"

    assert (
        find_key_type(type_)
        is find_by_name(name)
        is find_by_sql_name(name)
        is find_by_name("decimal")
    )
    assert to_arrow_type(name) == read_type(write_type(type_)) == type_


@pytest.mark.parametrize(
    "type_",
    [
        *(pa.null(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])),
        *(pa.float16(), pa.date64(), pa.time64("us"), pa.duration("us")),
    ],
    ids=str,
)
def test_other_types_have_no_kind(type_):
    """Neither keys nor bounds."""
    assert kind_of(type_) is find_key_type(type_) is None
    assert not is_key(type_)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_values_of_a_kind_are_counted_in_their_order(kind):
    """As numbers that Arrow casts to floats, unless they are bytes."""
    type_ = kind.arrow[0]
    array = pa.array([None, 0, 1], kind.stored_as or (pa.int64() if not kind.is_bytes else None))
    array = pa.array([None, b"0", b"1"], type_) if kind.is_bytes else array.cast(type_)

    numbers = to_integers(array)

    if not kind.is_bytes:
        assert numbers.cast(pa.float64(), safe=False).to_pylist() == [None, 0.0, 1.0]
    assert rank(numbers).ranks.tolist() == rank(array).ranks.tolist() == [0, 1, 2]
