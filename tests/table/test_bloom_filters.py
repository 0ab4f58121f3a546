"""Which columns may have Bloom filters, and how large these are."""

import pyarrow as pa
import pytest

from zadapter.table.bloom_filters import FPP, refusal, size_of, writable
from zadapter.table.encoding import Encoding

TIME = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "type_", [pa.int8(), pa.int64(), pa.decimal128(18, 2), pa.date32(), TIME, pa.string()]
)
def test_equal_values_of_these_types_have_equal_bytes(type_):
    assert refusal(("a",), type_, {}) is None


@pytest.mark.parametrize(
    ("type_", "reason"),
    [
        (pa.float64(), "rows with -0.0"),
        (pa.float32(), "rows with -0.0"),
        (pa.bool_(), "two values"),
        (pa.struct({"b": pa.int64()}), "pass one of its fields"),
        (pa.binary(), "its type (binary)"),
        (pa.list_(pa.int64()), "its type (list"),
        (pa.map_(pa.string(), pa.int64()), "its type (map"),
    ],
)
def test_readers_would_miss_rows_of_others(type_, reason):
    """Parquet's writer would make a filter without any value, or of other bytes than are asked."""
    assert reason in refusal(("a",), type_, {})


def test_the_writer_does_not_find_a_name_with_a_dot():
    """Its own name in the files counts."""
    assert "the dot in `x.y`" in refusal(("a", "x.y"), pa.int64(), {})
    assert refusal(("x.y",), pa.int64(), {("x.y",): ("col-1",)}) is None


def test_columns_that_are_gone_or_others_get_none():
    """A later call writes the filters of the columns that are left."""
    schema = pa.schema({"a": pa.int64(), "b": pa.float64(), "s": pa.struct({"c": pa.string()})})

    assert writable([("a",), ("b",), ("gone",), ("s", "c")], schema, {}) == {("a",), ("s", "c")}


@pytest.mark.parametrize("values", [1, 10, 999, 1_000, 65_536, 3_000_000])
def test_a_filter_is_large_enough_and_no_larger_than_needed(values):
    """The formula of Putze et al. for eight bits a value, and the next power of two."""
    size = size_of(values)

    share = (1 - (1 - 8 / (8 * size)) ** values) ** 8
    assert share <= FPP or size == 32
    assert size & (size - 1) == 0
    assert size == 32 or size / 2 < 1.3 * values


def test_settings_of_the_writer():
    """By the names in the files; every row may be another value."""
    encoding = Encoding(row_group=1_000, bloom_filters=frozenset({("a",), ("s", "c")}))

    settings = encoding.settings({("a",): ("col-1",)})

    assert settings["parquet.bloom.filter.enabled#col-1"] == "true"
    assert settings["parquet.bloom.filter.expected.ndv#s.c"] == "1000"
    assert settings["parquet.bloom.filter.max.bytes"] == "2048"
    assert not [name for name in Encoding(row_group=1_000).settings({}) if "bloom" in name]
