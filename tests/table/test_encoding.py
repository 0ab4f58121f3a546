"""Which columns are written without a dictionary."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from zadapter.base.ranks import rank
from zadapter.table.encoding import (
    SAVED,
    SEEN,
    _encode_plain,
    dictionary_pays,
    find_abandoned_dictionaries,
)

ROWS = 2 * SEEN


def footer_of(folder, columns, **options):
    """The footer of a file of *columns*."""
    path = folder / "file.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return pq.read_metadata(path)


@pytest.fixture
def columns():
    return {"id": range(ROWS), "kind": ["a", "b"] * SEEN}


def test_a_column_whose_writer_gave_the_dictionary_up(tmp_path, columns):
    footer = footer_of(tmp_path, columns, use_dictionary=["kind"])

    assert find_abandoned_dictionaries(footer) == {"id"}


def test_a_writer_that_never_tries_says_nothing(tmp_path, columns):
    assert find_abandoned_dictionaries(footer_of(tmp_path, columns, use_dictionary=False)) == set()


def test_few_values_say_nothing(tmp_path, columns):
    options = {"use_dictionary": ["kind"], "row_group_size": SEEN - 1}

    assert find_abandoned_dictionaries(footer_of(tmp_path, columns, **options)) == set()


def test_nothing_is_known_of_an_empty_file(tmp_path):
    assert (
        find_abandoned_dictionaries(footer_of(tmp_path, {"a": pa.array([], pa.int64())})) == set()
    )


SAMPLED, GROUPS, GROUP = 40_000, 200, 30_000
RANDOM = np.random.default_rng(1)


def written(numbers, dictionary):
    """Bytes of a row group with these rows."""
    sink = pa.BufferOutputStream()
    table = pa.table({"key": numbers})
    limit = 1 << 30  # none that a dictionary may have
    pq.write_table(table, sink, use_dictionary=dictionary, dictionary_pagesize_limit=limit)
    return pq.read_metadata(sink.getvalue()).row_group(0).column(0).total_compressed_size


def sampled(make, type_="int64"):
    """A row group's rows, and a sample of all: of 30 000 rows 200 are seen, of each row group."""
    made = [make(number) for number in range(GROUPS)]
    seen = [RANDOM.choice(each, SAMPLED // GROUPS, replace=False) for each in made]
    group = np.repeat(np.arange(GROUPS), SAMPLED // GROUPS)
    return pa.array(made[0]).cast(type_), pa.array(np.concatenate(seen)).cast(type_), group


def of_equal_chance(rows_a_value, spread):
    """Make row groups of values that are there as often as chance has it."""
    return lambda number: RANDOM.choice(
        RANDOM.integers(0, spread, int(GROUP / rows_a_value)) + number * spread, GROUP
    )


def pays(values, group):
    """Whether a dictionary is tried."""
    return dictionary_pays(rank(values), group, GROUP)


def judged_rightly(rows, values, group):
    """Parquet's own writer is the judge."""
    ratio = written(rows, dictionary=True) / written(rows, dictionary=False)
    return ratio < 1 if pays(values, group) else ratio > 1 - 2 * SAVED


@pytest.mark.parametrize("spread", [50_000, 1 << 50], ids=["near", "far"])
@pytest.mark.parametrize("rows_a_value", [0.5, 1, 2, 4, 10, 100, 3_000])
def test_a_dictionary_that_makes_numbers_smaller_is_kept(rows_a_value, spread):
    """And one that makes them larger is not."""
    assert judged_rightly(*sampled(of_equal_chance(rows_a_value, spread)))


@pytest.mark.parametrize("hot", [0.1, 0.3, 0.5, 0.8, 0.95])
def test_one_value_that_many_rows_have_says_nothing_of_the_others(hot):
    """A dictionary has to hold those as well."""
    rare = of_equal_chance(1, 1 << 50)

    assert judged_rightly(
        *sampled(lambda number: np.where(RANDOM.random(GROUP) < hot, 7, rare(number)))
    )


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.int32()], ids=str)
@pytest.mark.parametrize("values", [30, 100, 250, 3_000])
def test_small_numbers_are_as_wide_as_a_file_has_them(type_, values):
    """Parquet has nothing between bits and 32 of them."""
    low = -min(values, 1 << type_.bit_width) // 2

    assert judged_rightly(
        *sampled(lambda _: low + RANDOM.integers(0, min(values, -2 * low), GROUP), type_)
    )


NUMBERS = [
    *(pa.timestamp("us"), pa.date32(), pa.float32(), pa.float64()),
    *(pa.decimal128(20, 0), pa.decimal128(19, 0)),
]


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_all_numbers_are_judged(type_):
    """Whatever they count."""
    whole = pa.int32() if pa.types.is_date(type_) else pa.int64()
    for rows_a_value in (0.5, 3_000):
        rows, values, group = sampled(of_equal_chance(rows_a_value, 50_000), whole)
        rows, values = rows.cast(type_), values.cast(type_)

        assert judged_rightly(rows, values, group)
        assert pays(values, group) == (rows_a_value > 1)


@pytest.mark.parametrize("digits", [9, 18, 19])
def test_a_decimal_is_as_wide_as_its_digits_ask_for(digits):
    """As by Spark and Iceberg, who write 32 and 64 bits where these are enough."""
    numbers = RANDOM.integers(0, 10**9 if digits == 9 else 10**18, 1_000)
    decimals = pa.array([Decimal(int(number)) for number in numbers], pa.decimal128(digits, 0))

    assert len(_encode_plain(decimals)) == {9: 4, 18: 8, 19: 16}[digits] * 1_000


def test_numbers_that_lie_in_other_row_groups_do_not_come_back():
    """Every value is there often, but once in each row group."""
    values = pa.array(np.arange(SAMPLED) // GROUPS)

    assert not pays(values, np.arange(SAMPLED) % GROUPS)


def test_nulls_are_no_values():
    """They need no place in a dictionary, and of few values in between few come back."""
    _, values, group = sampled(of_equal_chance(2, 50_000))
    holes = RANDOM.random(SAMPLED) < 0.9

    with_holes = pc.if_else(pa.array(holes), None, values)

    assert not pays(with_holes, group)


UNKNOWN = [
    *map(pa.array, ([], [1], [None, None], ["a", "b"], [b"a", b"b"], [True, False])),
    pa.array(["a", "b"], pa.large_string()),
]


@pytest.mark.parametrize("values", UNKNOWN)
def test_a_dictionary_is_tried_where_nothing_is_known(values):
    """Of too few values, and of texts, which are longer than their place in it."""
    assert pays(values, np.zeros(len(values), np.int64))
