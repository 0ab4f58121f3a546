"""Which columns are written without a dictionary."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.encoding import REPEATED, SEEN, dictionary_given_up, repeated

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


def drawn(values, seed=1):
    """A sample of GROUPS row groups of GROUP rows with so many values each, and of which one."""
    group = np.arange(SAMPLED) % GROUPS
    numbers = np.random.default_rng(seed).integers(0, values, SAMPLED)
    return pa.array(numbers + group * values), group


@pytest.mark.parametrize("rows_a_value", [1.1, 1.6, 2.5, 5, 100, GROUP])
def test_numbers_that_come_back_are_told_by_a_sample(rows_a_value):
    """Though of a row group's 30 000 rows only 200 are seen."""
    values, group = drawn(int(GROUP / rows_a_value))

    assert repeated(values, group, GROUP) == (rows_a_value > REPEATED)


def test_numbers_that_lie_in_other_row_groups_do_not_come_back():
    """Every value is there often, but once in each row group."""
    values = pa.array(np.arange(SAMPLED) // GROUPS)

    assert not repeated(values, np.arange(SAMPLED) % GROUPS, GROUP)


def test_nulls_are_no_values():
    """They need no place in a dictionary."""
    unique = [None if number % 2 else number for number in range(SAMPLED)]

    assert not repeated(pa.array(unique, pa.int64()), np.zeros(SAMPLED, np.int64), GROUP)


@pytest.mark.parametrize("values", [[], [1], [None, None], ["a", "b"], [b"a", b"b"]])
def test_a_dictionary_is_tried_where_nothing_is_known(values):
    """Of too few values, and of texts, which are longer than their place in it."""
    assert repeated(pa.array(values), np.zeros(len(values), np.int64), GROUP)
