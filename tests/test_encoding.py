"""Which columns are written without a dictionary."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from zadapter.encoding import SAVED, SEEN, dictionary_given_up, dictionary_pays

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

    assert dictionary_given_up(footer) == {"id"}


def test_a_writer_that_never_tries_says_nothing(tmp_path, columns):
    assert dictionary_given_up(footer_of(tmp_path, columns, use_dictionary=False)) == set()


def test_few_values_say_nothing(tmp_path, columns):
    options = {"use_dictionary": ["kind"], "row_group_size": SEEN - 1}

    assert dictionary_given_up(footer_of(tmp_path, columns, **options)) == set()


def test_nothing_is_known_of_an_empty_file(tmp_path):
    assert dictionary_given_up(footer_of(tmp_path, {"a": pa.array([], pa.int64())})) == set()


SAMPLED, GROUPS, GROUP = 40_000, 200, 30_000
RANDOM = np.random.default_rng(1)


def written(numbers, dictionary):
    """Bytes of a row group with these rows."""
    sink = pa.BufferOutputStream()
    table = pa.table({"key": numbers})
    limit = 1 << 30  # none that a dictionary may have
    pq.write_table(table, sink, use_dictionary=dictionary, dictionary_pagesize_limit=limit)
    return pq.read_metadata(sink.getvalue()).row_group(0).column(0).total_compressed_size


def drawn(rows_a_value, spread, type_="int64"):
    """A row group's rows, and a sample of all: of 30 000 rows 200 are seen, of each row group."""
    values = [
        RANDOM.integers(0, spread, int(GROUP / rows_a_value)) + number * spread
        for number in range(GROUPS)
    ]
    seen = [RANDOM.choice(each, SAMPLED // GROUPS) for each in values]
    group = np.repeat(np.arange(GROUPS), SAMPLED // GROUPS)
    rows = pa.array(RANDOM.choice(values[0], GROUP))
    return rows.cast(type_), pa.array(np.concatenate(seen)).cast(type_), group


@pytest.mark.parametrize("spread", [50_000, 1 << 50], ids=["near", "far"])
@pytest.mark.parametrize("rows_a_value", [0.5, 1, 2, 4, 10, 100, 3_000])
def test_a_dictionary_that_makes_numbers_smaller_is_kept(rows_a_value, spread):
    """And one that makes them larger is not; Parquet's own writer is the judge."""
    rows, values, group = drawn(rows_a_value, spread)

    ratio = written(rows, dictionary=True) / written(rows, dictionary=False)

    assert dictionary_pays(values, group, GROUP) or ratio > 1 - 2 * SAVED
    assert not dictionary_pays(values, group, GROUP) or ratio < 1


@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.decimal128(20, 0), pa.float64()], ids=str)
def test_all_numbers_are_judged(type_):
    """Whatever they count."""
    _, seldom, group = drawn(0.5, 50_000, type_)
    _, often, _ = drawn(3_000, 50_000, type_)

    assert not dictionary_pays(seldom, group, GROUP)
    assert dictionary_pays(often, group, GROUP)


def test_numbers_that_lie_in_other_row_groups_do_not_come_back():
    """Every value is there often, but once in each row group."""
    values = pa.array(np.arange(SAMPLED) // GROUPS)

    assert not dictionary_pays(values, np.arange(SAMPLED) % GROUPS, GROUP)


def test_nulls_are_no_values():
    """They need no place in a dictionary, and of few values in between few come back."""
    _, values, group = drawn(2, 50_000)
    holes = RANDOM.random(SAMPLED) < 0.9

    with_holes = pc.if_else(pa.array(holes), None, values)

    assert not dictionary_pays(with_holes, group, GROUP)


UNKNOWN = [
    *map(pa.array, ([], [1], [None, None], ["a", "b"], [b"a", b"b"], [True, False])),
    pa.array(["a", "b"], pa.large_string()),
]


@pytest.mark.parametrize("values", UNKNOWN)
def test_a_dictionary_is_tried_where_nothing_is_known(values):
    """Of too few values, and of texts, which are longer than their place in it."""
    assert dictionary_pays(values, np.zeros(len(values), np.int64), GROUP)
