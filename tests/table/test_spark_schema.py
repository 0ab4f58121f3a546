"""Spark's schemas in Arrow's types."""

import pyarrow as pa
import pytest

from zadapter.table.spark_schema import arrow_schema


def field(type_, **metadata):
    return {"name": "a", "type": type_, "nullable": True, "metadata": metadata}


def type_of(type_, **metadata):
    return arrow_schema({"type": "struct", "fields": [field(type_, **metadata)]}).field("a").type


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("long", pa.int64()),
        ("decimal(38,10)", pa.decimal128(38, 10)),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("varchar(3)", pa.string()),
        ("variant", pa.null()),
        ({"type": "struct", "fields": [field("string")]}, pa.struct([("a", pa.string())])),
        ({"type": "array", "elementType": "short"}, pa.list_(pa.int16())),
        ({"type": "udt", "class": "x"}, pa.null()),
    ],
)
def test_types_have_their_match(type_, expected):
    """Types without one are null, of which nothing is assumed."""
    assert type_of(type_) == expected


@pytest.mark.parametrize("written", ["char(5)", "array<char(2)>", "struct<x:char(3)>"])
def test_texts_that_are_padded_before_they_are_compared_have_no_order(written):
    """Bounds are of the texts as they are stored, filters of the texts as they are padded."""
    nested = {"type": "struct", "fields": [field("string")]}

    assert type_of("string", __CHAR_VARCHAR_TYPE_STRING=written) == pa.null()
    assert type_of(nested, __CHAR_VARCHAR_TYPE_STRING=written) == pa.struct([("a", pa.null())])


def test_varchar_and_plain_texts_are_ordered_by_their_bytes():
    """Collations are not."""
    assert type_of("string", __CHAR_VARCHAR_TYPE_STRING="varchar(9)") == pa.string()
    assert type_of("string", __COLLATIONS={"a": "icu.UNICODE"}) == pa.null()
