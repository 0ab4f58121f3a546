"""Ranks order values as Spark does."""

import math
from datetime import timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zadapter.base.ranks import narrow, rank


def in_sparks_order(value):
    """A key that compares as Spark does: NaN above all numbers, strings by their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value


def cents(precision):
    end = 10**precision - 1
    return st.integers(-end, end).map(lambda n: Decimal((int(n < 0), _digits(n), -2)))


def _digits(number):
    return tuple(map(int, str(abs(number))))


few_floats = st.sampled_from([-0.0, 0.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324])
TYPED = [
    pytest.param(type_, strategy, id=str(type_))
    for type_, strategy in [
        (pa.bool_(), st.booleans()),
        (pa.int8(), st.integers(-128, 127)),
        (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 2)),
        (pa.float32(), st.floats(width=32) | few_floats.filter(lambda x: x != 5e-324)),
        (pa.float64(), st.floats() | few_floats),
        (pa.decimal128(38, 2), cents(38) | cents(1)),
        (pa.date32(), st.dates()),
        (pa.timestamp("us"), st.datetimes()),
        (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(timezone.utc))),
        (pa.string(), st.text(max_size=3)),
        (pa.large_string(), st.text(max_size=3)),
        (pa.binary(), st.binary(max_size=3)),
        (pa.binary(2), st.binary(min_size=2, max_size=2)),
    ]
]
EVERY_TYPE = pytest.mark.parametrize(("type_", "strategy"), TYPED)


def array_of(data, type_, strategy):
    drawn = data.draw(st.lists(st.none() | strategy, max_size=12))
    return drawn, pa.array(drawn, type_, from_pandas=False)


@EVERY_TYPE
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_ranks_are_dense_and_in_order(type_, strategy, data):
    """Null has 0, the smallest value 1, and so on; equal values have equal ranks."""
    drawn, array = array_of(data, type_, strategy)

    ranks = rank(array).ranks

    keys = [None if value is None else in_sparks_order(value) for value in drawn]
    ascending = sorted({key for key in keys if key is not None})
    assert ranks.tolist() == [0 if key is None else ascending.index(key) + 1 for key in keys]


@EVERY_TYPE
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_a_rank_stands_for_its_value(type_, strategy, data):
    """What the ranks stand for is what was ranked, but that a zero has lost its sign."""
    drawn, array = array_of(data, type_, strategy)
    ranked = rank(array)

    again = ranked.value_of(ranked.ranks)

    assert again.type == type_
    assert [v is None or in_sparks_order(v) for v in again.to_pylist()] == [
        v is None or in_sparks_order(v) for v in drawn
    ]
    assert rank(again).ranks.tolist() == ranked.ranks.tolist()


@EVERY_TYPE
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_other_values_lie_between_ranks(type_, strategy, data):
    """The ceiling is the first rank not below a value, the floor the last one not above it."""
    drawn, known = array_of(data, type_, strategy)
    asked, others = array_of(data, type_, strategy)
    ranked = rank(known)
    ascending = sorted({in_sparks_order(value) for value in drawn if value is not None})

    ceiling, floor = ranked.ceiling(others).tolist(), ranked.floor(others).tolist()

    for value, above, below in zip(asked, ceiling, floor, strict=True):
        if value is None:
            assert (above, below) == (0, 0)
            continue
        key = in_sparks_order(value)
        assert above == 1 + sum(other < key for other in ascending)
        assert below == sum(other <= key for other in ascending)


@EVERY_TYPE
@given(data=st.data())
@settings(deadline=None, max_examples=20)
def test_ranks_among_more_values_are_those_of_all_values(type_, strategy, data):
    drawn, known = array_of(data, type_, strategy)
    _, others = array_of(data, type_, strategy)

    extended = rank(known).extend(others.drop_null())

    every = rank(pa.concat_arrays([known, others]))
    assert extended.ranks.tolist() == every.ranks[: len(drawn)].tolist()
    assert len(extended.distinct) == len(every.distinct)


def test_the_least_timestamp_comes_first():
    """NumPy takes its integer for a missing time, and sorts it last."""
    least = -(1 << 63)
    known, asked = (
        pa.array(v, pa.int64()).cast(pa.timestamp("us")) for v in ([least, 0, 9], [0, least])
    )

    assert rank(known).ceiling(asked).tolist() == [2, 1]


@given(st.text(max_size=2), st.text(max_size=2))
@example("\ue000", "\U00010000")
@example("\ufffd", "\U0001f600")
def test_strings_compare_as_unsigned_bytes(a, b):
    """U+E000 comes before U+10000, which it does not in UTF-16."""
    first, second = rank(pa.array([a, b])).ranks

    assert (first < second, first == second) == (a.encode() < b.encode(), a == b)
    assert rank(pa.array([a])).floor(pa.array([b])).tolist() == [int(a.encode() <= b.encode())]


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda array: pa.chunked_array([array[:2], array[2:]]),
        lambda array: array.dictionary_encode(),
        lambda array: pa.chunked_array([array.dictionary_encode()]),
        lambda array: pa.concat_arrays([array[:1], array])[1:],
    ],
    ids=["chunks", "dictionary", "chunks of dictionary", "slice"],
)
def test_the_container_does_not_matter(wrapped):
    """Chunks, dictionaries and slices hold the same values."""
    array = pa.array(["b", None, "a", "b"])

    ranked = rank(wrapped(array))

    assert ranked.ranks.tolist() == [2, 0, 1, 2]
    assert ranked.distinct.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "type_", [pa.null(), pa.int32(), pa.float64(), pa.string(), pa.decimal128(5, 2)]
)
@pytest.mark.parametrize("count", [0, 3])
def test_nulls_alone_have_no_values(type_, count):
    """Neither has an empty array."""
    ranked = rank(pa.nulls(count, type_))

    assert ranked.ranks.tolist() == [0] * count
    assert ranked.value_of(np.zeros(2, np.int64)).equals(pa.nulls(2, type_))


@pytest.mark.parametrize("largest", [255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, 1 << 62])
def test_short_numbers_are_the_same_numbers(largest):
    """A type that is one number too small would wrap it to 0, and sort it first."""
    numbers = np.array([largest, 0, largest - 1])

    assert narrow(numbers).tolist() == numbers.tolist()
    assert np.argsort(narrow(numbers)).tolist() == [1, 2, 0]


def test_no_numbers_are_short():
    """As of an empty sample."""
    assert len(narrow(np.zeros(0, np.int64))) == 0
