"""Ordinals order bytes as Spark orders values."""

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zadapter.errors import UsageError
from zadapter.layout.zvalue import ordinal, width_of

EPOCH = datetime.fromisoformat("1970-01-01")
SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
DECIMALS = [(1, 0), (9, 2), (10, 10), (18, 3), (19, 0), (38, 0), (38, 10), (38, 38)]
UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def unscaled(digits, scale):
    """The decimal of these digits, exact beyond the precision of arithmetic."""
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


def in_sparks_order(value):
    """A key that compares as Spark does: NaN above all numbers, strings by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def typed_values():
    """Pairs of a type and a strategy of its values."""
    for bits, type_ in zip((8, 16, 32, 64), SIGNED, strict=True):
        yield type_, st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    for bits, type_ in zip((8, 16, 32, 64), UNSIGNED, strict=True):
        yield type_, st.integers(0, (1 << bits) - 1)
    for width, type_ in ((32, pa.float32()), (64, pa.float64())):
        yield type_, st.floats(width=width)
    for precision, scale in DECIMALS:
        limit = 10**precision - 1
        digits = st.integers(-limit, limit) | st.sampled_from([-limit, -1, 0, 1, limit])
        yield pa.decimal128(precision, scale), digits.map(lambda d, s=scale: unscaled(d, s))
    yield pa.date32(), st.dates()
    yield pa.timestamp("us"), st.datetimes()
    yield (
        pa.timestamp("us", "Asia/Tokyo"),
        st.datetimes().map(lambda t: t.replace(tzinfo=timezone.utc)),
    )
    yield pa.bool_(), st.booleans()
    yield pa.binary(3), st.binary(min_size=3, max_size=3)
    short = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4)
    yield pa.string(), short
    yield pa.large_string(), short
    yield pa.binary(), short.map(str.encode)


TYPED = [pytest.param(*case, id=str(case[0])) for case in typed_values()]


def keys(values, type_, width=16):
    """The ordinals of Python values."""
    array = pa.array(values, type_, from_pandas=False)
    return [row.tobytes() for row in ordinal(array, width=width)]


@pytest.mark.parametrize(("type_", "values"), TYPED)
@settings(max_examples=40)
@given(data=st.data())
def test_bytes_compare_as_the_values_do(type_, values, data):
    """Values are less, or equal, if and only if their ordinals are."""
    drawn = data.draw(st.lists(values, min_size=2, max_size=8))

    compared = list(zip(map(in_sparks_order, drawn), keys(drawn, type_), strict=True))

    for (a, a_bytes), (b, b_bytes) in product(compared, repeat=2):
        assert (a < b, a == b) == (a_bytes < b_bytes, a_bytes == b_bytes)


@pytest.mark.parametrize(("type_", "values"), TYPED)
@settings(max_examples=40)
@given(data=st.data())
def test_slices_chunks_and_nulls_change_nothing(type_, values, data):
    """A row's ordinal depends on its value alone; that of a null is zeros."""
    drawn = data.draw(st.lists(st.none() | values, max_size=8))
    cut = data.draw(st.integers(0, len(drawn)))
    array = pa.array(drawn, type_, from_pandas=False)

    alone = [keys([v], type_)[0] if v is not None else bytes(width_of(type_, 16)) for v in drawn]
    chunked = ordinal(pa.chunked_array([array[:cut], array[cut:]], type_), width=16)

    assert chunked.shape == (len(drawn), width_of(type_, 16))
    assert [row.tobytes() for row in chunked] == alone


@given(st.binary(max_size=6), st.binary(max_size=6), st.integers(1, 4))
def test_cut_bytes_never_turn_the_order_around(a, b, width):
    """Strings longer than the width may become equal, not exchanged."""
    low, high = keys(sorted([a, b]), pa.binary(), width)

    assert low <= high
    assert low == min(a, b)[:width].ljust(width, b"\0")


@pytest.mark.parametrize(
    ("type_", "value", "bytes_"),
    [
        (pa.int8(), -1, "7f"),
        (pa.int16(), 1, "8001"),
        (pa.uint32(), 99, "00000063"),
        (pa.float32(), 1.0, "bf800000"),
        (pa.float64(), -1.0, "400fffffffffffff"),
        (pa.float64(), 5e-324, "8000000000000001"),
        (pa.float64(), float("inf"), "fff0000000000000"),
        (pa.float64(), float("nan"), "fff8000000000000"),
        (pa.decimal128(5, 2), Decimal("-1.23"), "7fffff85"),
        (pa.decimal128(18, 0), Decimal(1), "8000000000000001"),
        (pa.decimal128(19, 0), Decimal(1), "80000000000000000000000000000001"),
        (pa.date32(), date(1969, 12, 31), "7fffffffffffffff"),
        (pa.timestamp("us"), EPOCH + timedelta(seconds=1), "80000000000f4240"),
        (pa.bool_(), True, "01"),
        (pa.string(), "é", "c3a9" + 14 * "00"),
    ],
)
def test_known_answers(type_, value, bytes_):
    """One a type, worked out by hand from the table of conversions."""
    assert keys([value], type_) == [bytes.fromhex(bytes_)]


@pytest.mark.parametrize(
    ("type_", "size", "patterns"),
    [
        (pa.float32(), 4, [0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF]),
        (pa.float64(), 8, [0x7FF8 << 48, 0xFFF8 << 48, (0x7FF0 << 48) + 1, (1 << 64) - 1]),
    ],
)
def test_every_nan_is_the_same_nan(type_, size, patterns):
    """Sign and payload of a NaN do not count."""
    stored = np.array(patterns, f"u{size}").view(f"f{size}")

    assert len({row.tobytes() for row in ordinal(pa.array(stored, type_))}) == 1


def test_a_text_equal_to_its_padding_shares_its_bytes():
    """The documented limit of a fixed width."""
    assert len(set(keys(["a", "a\0"], pa.string(), 4))) == 1


@given(st.integers(-9_000_000_000, 9_000_000_000))
def test_units_of_time_do_not_matter(moment):
    """The same instant has the same bytes in every unit that can hold it."""
    in_units = [keys([moment * ticks], pa.timestamp(unit)) for unit, ticks in UNITS.items()]

    assert len({tuple(key) for key in in_units}) == 1
    assert in_units[0] == keys([EPOCH + timedelta(seconds=moment)], pa.timestamp("us"))


@pytest.mark.parametrize(("unit", "ticks"), [("ns", 1), ("s", 1 << 62)])
def test_a_timestamp_is_never_rounded(unit, ticks):
    """What is no number of microseconds is refused."""
    with pytest.raises(UsageError, match=rf"timestamp\[{unit}\]"):
        ordinal(pa.array([ticks], pa.timestamp(unit)))


@pytest.mark.parametrize("width", [None, 0, -1])
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_texts_need_a_width(type_, width):
    """A string has no length of its own."""
    with pytest.raises(UsageError, match=str(type_)):
        ordinal(pa.array([], type_), width=width)


@pytest.mark.parametrize(
    "type_",
    [
        pa.null(),
        pa.list_(pa.int8()),
        pa.map_(pa.string(), pa.int8()),
        pa.struct({"a": pa.int8()}),
        pa.duration("us"),
        pa.month_day_nano_interval(),
        pa.time64("us"),
        pa.float16(),
        pa.decimal256(39, 0),
    ],
    ids=str,
)
def test_other_types_are_refused_by_name(type_):
    """A wrong order would be worse than none."""
    with pytest.raises(UsageError) as refused:
        ordinal(pa.array([], type_), width=8)

    assert str(type_) in str(refused.value)
