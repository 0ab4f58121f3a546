"""Every key type has a place in Iceberg: a name, bounds in manifests, and partition values."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from zadapter.base.key_types import BINARY, KEY_TYPES, kind_of
from zadapter_iceberg.key_types import NAMES, TESTED, WIDENED, WITHOUT_BOUNDS
from zadapter_iceberg.stats.binary_values import (
    decode_bounds,
    encode_bounds,
    from_json_values,
    json_values,
)

MOMENT = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)
VALUES = {
    "boolean": [True, False],
    "byte": [-128, 127],
    "short": [-(1 << 15), 7],
    "integer": [-(1 << 31), 7],
    "long": [-(1 << 63), 7],
    "float": [-0.5, 3e38],
    "double": [-0.5, 1e300],
    "decimal": [Decimal(-128), Decimal(10**37)],
    "date": [date(1, 1, 1), date(9999, 12, 31)],
    "timestamp": [MOMENT],
    "timestamp_ntz": [MOMENT.replace(tzinfo=None)],
    "string": ["", "zażółć"],
    "binary": [b"", b"\x00\xff"],
}
ROWS = pytest.mark.parametrize("row", KEY_TYPES, ids=lambda row: row.name)


@ROWS
def test_every_key_type_has_a_name_or_is_widened(row):
    """To a type that has one; tables may have it, with bounds."""
    name = NAMES[WIDENED.get(row.name, row.name)]

    assert name in TESTED - WITHOUT_BOUNDS
    assert (row.name in NAMES) is (row.name not in WIDENED)


@ROWS
def test_every_key_type_has_bounds_but_binary(row):
    """They come back, unless Iceberg has no column of the type."""
    array = pa.array([*VALUES[row.name], None], row.arrow)

    written = encode_bounds(array)

    if row.kind is BINARY:  # its bounds are read, not written
        assert written == [None] * len(array)
        return
    assert [text is None for text in written] == array.is_null().to_pylist()
    raw = pa.array([None if text is None else bytes.fromhex(text) for text in written], pa.binary())
    assert decode_bounds(raw, row.arrow).equals(
        pa.nulls(len(array), row.arrow) if row.name in WIDENED else array
    )


@ROWS
def test_every_key_type_has_partition_values(row):
    """Through JSON."""
    array = pa.array([*VALUES[row.name], None], row.arrow)

    written = json.loads(json.dumps(json_values(array, row.arrow)))

    assert from_json_values(written, row.arrow).equals(array)


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_of_other_units_have_no_bounds(unit, zone):
    """Iceberg's are microseconds: other numbers would be other moments."""
    type_ = pa.timestamp(unit, zone)

    assert kind_of(type_) is not None
    assert encode_bounds(pa.array([1], pa.int64()).cast(type_)) == [None]
    assert decode_bounds(pa.array([b"\x01" * 8]), type_).to_pylist() == [None]
