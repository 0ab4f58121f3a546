"""Iceberg's manifests as a file table, and its schemas and specs, without Iceberg."""

import re
import struct
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from zadapter.errors import UnsupportedError
from zadapter.table.file_stats import Bounds
from zadapter_iceberg.columns import columns, fields
from zadapter_iceberg.stats import content_file_json
from zadapter_iceberg.stats.binary_values import decode_bounds
from zadapter_iceberg.stats.manifest_stats import LAYOUT as LAYOUT_FOLDER
from zadapter_iceberg.stats.manifest_stats import (
    Wanted,
    add_no_deletes,
    entries,
    file_table,
    find_layouts,
)
from zadapter_iceberg.stats.row_deletes import Deletes

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - a timestamp without zone
MAP = pa.map_(pa.int32(), pa.binary())
LAYOUT = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("data", "type_", "value"),
    [
        (b"\x01", pa.bool_(), True),
        (struct.pack("<i", -5), pa.int32(), -5),
        (struct.pack("<q", 1 << 40), pa.int64(), 1 << 40),
        (struct.pack("<i", -5), pa.int64(), -5),
        (struct.pack("<f", 0.1), pa.float64(), struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        (struct.pack("<d", -0.0), pa.float64(), -0.0),
        (struct.pack("<d", float("nan")), pa.float64(), None),
        (struct.pack("<i", -1), pa.date32(), date(1969, 12, 31)),
        (struct.pack("<q", -1), pa.timestamp("us"), MOMENT),
        (struct.pack("<q", -1), pa.timestamp("us", "UTC"), MOMENT.replace(tzinfo=timezone.utc)),
        # a date that was promoted: its four bytes are days
        (struct.pack("<i", 7), pa.timestamp("us"), None),
        (b"\xff\x85", pa.decimal128(9, 2), Decimal("-1.23")),
        ((10**38 - 1).to_bytes(16, "big"), pa.decimal128(38, 0), Decimal(10**38 - 1)),
        (b"\x80", pa.decimal128(3, 0), Decimal(-128)),
        (b"\x00" * 17, pa.decimal128(38, 0), None),
        ("é".encode(), pa.string(), "é"),
        (b"\xc3", pa.string(), None),
        (b"\xff\x00", pa.binary(), b"\xff\x00"),
        (b"\x01\x02", pa.int32(), None),
        (None, pa.int32(), None),
        (b"\x01", pa.null(), None),
    ],
)
def test_bounds_are_read_as_the_spec_writes_them(data, type_, value):
    """Appendix D; what has another length, or is no bound, is unknown."""
    assert decode_bounds(pa.array([None, data], pa.binary()), type_).to_pylist() == [None, value]


PATHS = [
    *["s3://b/t/data/x.parquet"] * 2,
    *[f"s3://b/t/data/zadapter-{LAYOUT}/p=1/{name}.parquet" for name in "ab"],
    None,
    f"s3://b/t/data/zadapter-{'f' * 32}/p=1/ä.parquet",
    f"ä/zadapter-{'f' * 32}/p=2/a.parquet",
    f"s3://b/t/data/zadapter-{'0' * 32}",
    "",
]
OTHERS = [
    f"s3://b/t/zadapter-{LAYOUT.upper()}/a.parquet",
    f"s3://b/t/zadapter-{LAYOUT}0/a.parquet",
    f"s3://b/t/zadapter-7/zadapter-{LAYOUT}/a.parquet",
    "/zadapter-" + "/" * 60,
]
"""Paths that begin a layout's folder, and do not end it."""


BELOW = [
    f"file:/home/zadapter-demo/lake/warehouse/shop/orders/data/{name}"
    for name in (f"zadapter-{LAYOUT}/0", f"zadapter-{LAYOUT[::-1]}/1", "00000-plain")
]
"""Paths of a table that lies itself in a folder whose name begins like that of a layout."""


@pytest.mark.parametrize(
    "paths", [PATHS, [*PATHS, *OTHERS], OTHERS, PATHS[:2], BELOW, [*PATHS, *BELOW], [None], []]
)
def test_layouts_are_those_that_a_search_in_each_path_finds(paths):
    """However the paths follow each other, and in slices, too."""
    array = pa.array(["an odd one", *paths], pa.string()).slice(1)
    expected = [None if path is None else re.search(LAYOUT_FOLDER, path) for path in paths]

    found = find_layouts(array).to_pylist()

    assert found == [None if match is None else match["id"] for match in expected]


def test_entries_are_found_in_slices_too():
    """Maps without the key, empty ones and nulls have no entry."""
    maps = pa.array([[(1, b"a")], [(2, b"b"), (1, b"c")], [], None, [(1, b"d")]], MAP)

    assert entries(pa.chunked_array([maps]), 1).to_pylist() == [b"a", b"c", None, None, b"d"]
    assert entries(pa.chunked_array([maps.slice(1, 4)]), 1).to_pylist() == [b"c", None, None, b"d"]
    assert entries(pa.chunked_array([maps]), 3).null_count == 5


def contents(**changes):
    """Two data files, ten rows each."""
    counts = pa.map_(pa.int32(), pa.int64())
    known = {
        "file_path": ["s3://b/t/data/x.parquet", f"s3://b/t/data/zadapter-{LAYOUT}/p=1/y.parquet"],
        "spec_id": pa.array([0, 1], pa.int32()),
        "record_count": [10, 10],
        "file_size_in_bytes": [100, 200],
        "partition": [{"p": 1}, {"p": 1}],
        "lower_bounds": pa.array([[(5, struct.pack("<q", 3))]] * 2, MAP),
        "upper_bounds": pa.array([[(5, struct.pack("<q", 9))], []], MAP),
        "null_value_counts": pa.array([[(5, 5)], [(5, 10)]], counts),
        "nan_value_counts": pa.array([[], []], counts),
    }
    return pa.table(known | changes)


A = Wanted(("a",), 5, pa.int64())


def test_a_file_table_tells_what_manifests_tell():
    """Layout from the path, partition by the current spec, bounds where there are some."""
    files = file_table(contents(), [A], {"p": pa.int64()}, {}, 1)

    assert files["layout"].to_pylist() == [None, LAYOUT]
    assert files["partition"].to_pylist() == [None, {"p": 1}]
    assert files["rows"].to_pylist() == [10, 10]
    first, second = files["stats"].to_pylist()
    assert first["a"] == {"min": 3, "max": 9, "nulls": 5, "nans": None, "bounds": Bounds.EXACT}
    assert second["a"]["max"] is None
    assert second["a"]["nulls"] == 10


def test_files_of_an_older_spec_are_told_apart_in_a_table_without_partitions():
    """Its partition field was dropped: what was written before lies in partitions still."""
    files = file_table(contents(), [A], {}, {}, 1)

    assert files["partition"].to_pylist() == [None, {}]


def test_a_table_without_deletes_has_their_counts_at_the_end():
    """They are those that files have one by one."""
    files = file_table(contents(), [A], {}, None, 1)

    assert add_no_deletes(files).equals(file_table(contents(), [A], {}, {}, 1))


def test_deletes_make_counts_uncertain():
    """A null that was counted may be deleted, and so may the rows that were none."""
    path = contents()["file_path"][0].as_py()

    gone = {path: Deletes("dv", 5, 0.5, 1)}
    files = file_table(contents(), [A], {}, gone, 1)

    assert files["rows"].to_pylist() == [5, 10]
    assert files["deletes"].to_pylist() == ["dv", None]
    assert files["stats"][0]["a"]["nulls"].as_py() is None
    assert files["stats"][0]["a"]["bounds"].as_py() == Bounds.WIDENED
    assert files["deleted_share"].to_pylist() == [0.5, 0.0]
    unknown = file_table(contents(), [A], {}, {path: Deletes(None, None, 0.2, 3)}, 1)
    assert unknown["rows"].to_pylist() == [None, 10]
    assert unknown["deleted"].to_pylist() == [None, 0]
    assert unknown["delete_files"].to_pylist() == [3, 0]


@pytest.mark.parametrize(
    "values",
    [
        '["2023-11-14",2,"1.5","0aff",null]',
        '{"1000":"2023-11-14","1001":2,"1002":"1.5","1003":"0aff"}',
    ],
    ids=["Iceberg 1.11", "Iceberg 1.10"],
)
def test_what_was_just_written_has_the_same_shape(values):
    """The JSON of Iceberg's own parser, bounds as hexadecimal, partition values as text."""
    written = (
        f'{{"spec-id":1,"content":"data","file-path":"f","partition":{values},'
        '"file-size-in-bytes":7,"record-count":3,"null-value-counts":{"keys":[5],"values":[0]},'
        '"lower-bounds":{"keys":[5],"values":["0300000000000000"]},'
        '"upper-bounds":{"keys":[5],"values":["0900000000000000"]}}'
    )
    types = {
        "day": pa.date32(), "n": pa.int32(), "d": pa.decimal128(5, 1), "raw": pa.binary(),
        "none": pa.string(),
    }  # fmt: skip
    contents = content_file_json.contents([written], types, range(1000, 1005))

    files = file_table(contents, [A], types, {}, 1)

    assert files["partition"][0].as_py() == {
        "day": date(2023, 11, 14), "n": 2, "d": Decimal("1.5"), "raw": b"\x0a\xff",
        "none": None,
    }  # fmt: skip
    assert files["stats"][0]["a"].as_py()["min"] == 3


SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "ts", "type": "timestamptz"},
        {
            "id": 2,
            "name": "odd.name",
            "type": {"type": "struct", "fields": [{"id": 3, "name": "x`y", "type": "int"}]},
        },
        {"id": 4, "name": "l", "type": {"type": "list", "element-id": 5, "element": "int"}},
    ],
}


def spec(transform, source=1):
    field = {"name": "f", "transform": transform, "source-id": source, "field-id": 1000}
    return {"spec-id": 0, "fields": [field]}


def test_columns_have_ids_down_to_the_fields():
    """Structs are opened, lists are not."""
    found = columns(SCHEMA)

    assert {parts: column.id for parts, column in found.items()} == {
        ("ts",): 1, ("odd.name",): 2, ("odd.name", "x`y"): 3, ("l",): 4,
    }  # fmt: skip
    assert found["l",].type == "list"


@pytest.mark.parametrize(
    ("transform", "source", "expression"),
    [
        ("identity", 1, "`ts`"),
        ("day", 1, "zadapter_iceberg.system.days(`ts`)"),
        ("bucket[16]", 3, "zadapter_iceberg.system.bucket(16, `odd.name`.`x``y`)"),
        ("truncate[4]", 3, "zadapter_iceberg.system.truncate(4, `odd.name`.`x``y`)"),
    ],
)
def test_transforms_are_functions_of_spark(transform, source, expression):
    """Names are quoted, however odd."""
    (field,) = fields(spec(transform, source), columns(SCHEMA))

    assert field.expression == expression


def test_void_fields_are_left_out_and_unknown_ones_refused():
    """Version 1 tables keep dropped fields as void."""
    assert fields(spec("void"), columns(SCHEMA)) == []
    with pytest.raises(UnsupportedError, match="unknown transform 'zorder'"):
        fields(spec("zorder"), columns(SCHEMA))
    with pytest.raises(UnsupportedError, match="dropped"):
        fields(spec("identity", 99), columns(SCHEMA))
