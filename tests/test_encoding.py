"""Which columns are written without a dictionary."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zadapter.encoding import SEEN, dictionary_given_up

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
