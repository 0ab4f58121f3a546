"""Proof that two tables hold the same, as far as no engine is needed for it."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.builders import file_table
from zadapter.base.locations import bare
from zadapter.errors import VerificationError
from zadapter.migration.verify import _names as names
from zadapter.migration.verify import _pool as pool
from zadapter.migration.verify import _range as range_of
from zadapter.migration.verify import check_columns


def column(name, type_="long", *, nullable=True, **metadata):
    return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}


def files_of(low, high):
    return file_table(
        [f"{n}" for n in range(len(low))],
        stats={"a": (low, high, pa.nulls(len(low), pa.int64()))},
    )


@pytest.mark.parametrize(
    ("path", "uri", "name"),
    [
        ("a.parquet", "file:/t/a.parquet", "file:///t/a.parquet"),
        ("x%20y.parquet", "file:/t/x%20y.parquet", "file:///t/x%20y.parquet"),
        ("x%20y.parquet", "file:/t/x%20y.parquet", "/t/x y.parquet"),
        ("file:/t/p=x y/a.parquet", "file:/t/p=x%20y/a.parquet", "file:/t/p=x y/a.parquet"),
        ("s3://b/t/a.parquet", "s3a://b/t/a.parquet", "s3a://b/t/a.parquet"),
        ("hdfs://h:1/t/a", "hdfs://h:1/t/a", "hdfs://h:1/t/a"),
        ("p=1%3A2/a", "file:/t/p=1%253A2/a", "file:///t/p=1%253A2/a"),
        ("p=1%3A2/a", "file:/t/p=1%253A2/a", "/t/p=1%3A2/a"),
    ],
)
def test_a_file_is_known_by_all_of_its_names(path, uri, name):
    """Logs, URIs and Spark's ``input_file_name`` escape it or not, with and without its store."""
    known = names(["other", path], ["file:/t/other", uri])

    assert known[bare(name)] == 1


def test_the_name_that_spark_writes_wins():
    """One file's URI may be what another one is called: Spark says the URI."""
    paths = ["/t/x%20y", "/t/x y"]

    known = names(paths, ["file:/t/x%2520y", "file:/t/x%20y"])

    assert known[bare("file:///t/x%20y")] == 1
    assert known[bare("file:///t/x%2520y")] == 0


@given(st.integers(1, 40), st.integers())
def test_ranges_lie_within_what_is_known(count, seed):
    """They begin where they end, or before."""
    low, high = range_of(random.Random(seed), pa.array(range(count)))

    assert 0 <= low <= high < count


def test_ranges_are_the_same_each_time():
    values = pa.array(range(100))
    first, second = (
        [range_of(draw, values) for _ in range(9)] for draw in (random.Random(7), random.Random(7))
    )

    assert first == second
    assert len(set(first)) > 1


@given(st.lists(st.tuples(st.none() | st.integers(-9, 9), st.none() | st.integers(-9, 9))))
def test_filters_begin_and_end_at_bounds(bounds):
    """Each once, ascending, and none that is unknown."""
    low, high = (pa.array([pair[side] for pair in bounds], pa.int64()) for side in (0, 1))

    found = pool(files_of(low, high), ("a",)).to_pylist()

    assert found == sorted({value for pair in bounds for value in pair} - {None})


def test_bounds_that_are_nan_come_once():
    """Last, as Spark orders them."""
    low, high = pa.array([1.0, np.nan]), pa.array([np.nan, np.nan])

    first, *rest = pool(files_of(low, high), ("a",)).to_pylist()

    assert first == 1.0
    assert all(map(math.isnan, rest))
    assert len(rest) <= 1


def test_columns_without_usable_bounds_give_no_filters():
    """Bytes have no text that both engines compare alike."""
    raw = pa.array([b"a"])

    assert len(pool(files_of(raw, raw), ("a",))) == 0
    assert len(pool(file_table(["0"]), ("a",))) == 0


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
