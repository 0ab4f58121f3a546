"""Proof that two tables hold the same, as far as no engine is needed for it."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import file_table
from zadapter.errors import VerificationError
from zadapter.migration.row_proof import (
    FILTERS,
    _predicate,
    check_columns,
    draw_ranges,
    filters_on,
)
from zadapter.predicates.pruning import matching


def column(name, type_="long", *, nullable=True, **metadata):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


numbers = st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=30)


def drawn(*columns):
    """Ranges drawn from columns a, b and so on."""
    names = [(chr(ord("a") + number),) for number in range(len(columns))]
    return draw_ranges({n: pa.chunked_array([c]) for n, c in zip(names, columns, strict=True)})


def one_file(*columns):
    """A file table with the bounds of all values in one file."""
    bounds = {
        chr(ord("a") + number): ([pc.min(c).as_py()], [pc.max(c).as_py()], [c.null_count])
        for number, c in enumerate(columns)
    }
    rows = len(columns[0])
    return file_table(
        ["0"], rows=[rows], stats={n: tuple(map(pa.array, found)) for n, found in bounds.items()}
    )


@given(numbers)
def test_ranges_lie_between_values(values):
    """Both ends are values of the column, in order; null is none."""
    column = pa.array(values, pa.int64())

    for ranges in drawn(column):
        for _, ends in ranges:
            low, high = ends.to_pylist()
            assert low <= high
            assert {low, high} <= set(column.to_pylist())


def test_ranges_are_the_same_each_time():
    column = pa.array(range(1_000))

    assert drawn(column, column) == drawn(column, column)
    assert len({str(ranges) for ranges in drawn(column, column)}) > 9


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=30))
def test_filters_read_all_of_a_single_file(pairs):
    """However its rows lie in it: so 100 % before is 100 % now."""
    columns = [pa.array(side, pa.int64()) for side in zip(*pairs, strict=True)]
    files = one_file(*columns)

    kept = [matching(_predicate(ranges), files).tolist() for ranges in drawn(*columns)]

    assert kept == [[True]] * FILTERS


def test_values_that_are_nan_are_ends():
    """Last, as Spark orders them."""
    ends = [end for ((_, found),) in drawn(pa.array([1.0, np.nan, np.nan])) for end in found]

    assert any(math.isnan(end.as_py()) for end in ends)


@pytest.mark.parametrize("column", [pa.nulls(3, pa.int64()), pa.array([], pa.int64())])
def test_columns_without_values_give_no_filters(column):
    assert drawn(column) == []
    assert [len(ranges) for ranges in drawn(column, pa.array([1] * len(column)))] == (
        [1] * FILTERS if len(column) else []
    )


def test_columns_without_comparable_bounds_give_no_filters():
    """Bytes have no text that both engines compare alike."""
    raw = file_table(["0"], stats={"a": (pa.array([b"a"]), pa.array([b"a"]), pa.array([0]))})

    assert filters_on(raw, None, [("a",)]) == []
    assert filters_on(file_table(["0"]), None, [("a",)]) == []


def test_columns_that_are_as_they_should_be_are_counted():
    made = [column("a", comment="why"), column("b", "string", nullable=False)]

    assert check_columns(made, made) == 2
    assert check_columns([], []) == 0


@pytest.mark.parametrize(
    "found",
    [
        [column("b"), column("a")],
        [column("a"), column("b", "string")],
        [column("a"), column("b", nullable=False)],
        [column("a"), column("b", comment="why")],
        [column("a")],
        [column("a"), column("b"), column("c")],
        [],
    ],
)
def test_columns_that_differ_are_found_out(found):
    """In order, type, nullability, comment or number."""
    with pytest.raises(VerificationError, match="column"):
        check_columns([column("a"), column("b")], found)
