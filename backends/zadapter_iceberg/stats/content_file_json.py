"""Conversion of newly written data files to rows of the metadata table ``files``."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from zadapter_iceberg.stats.binary_values import from_json_values

_BOUNDS = pa.map_(pa.int32(), pa.binary())
_COUNTS = pa.map_(pa.int32(), pa.int64())


def field_ids(spec: Any) -> list[int]:
    """Return the ids of all fields of a partition spec, in its order."""
    fields = spec.partitionType().fields()
    return [int(fields.get(at).fieldId()) for at in range(fields.size())]


def contents(
    files: Sequence[str], partition: Mapping[str, pa.DataType], ids: Sequence[int]
) -> pa.Table:
    """Return a table with one row per file.

    Args:
        files: Data files in the JSON of Iceberg's ``ContentFileParser``.
        partition: Types of all fields of the files' partition spec, in its order.
        ids: Ids of these fields.
    """
    parsed = [json.loads(file) for file in files]
    rows = [_in_order(file.get("partition") or {}, ids) for file in parsed]
    values = [
        from_json_values([row[number] for row in rows], type_)
        for number, type_ in enumerate(partition.values())
    ]
    columns = {
        "file_path": pa.array([file["file-path"] for file in parsed], pa.string()),
        "spec_id": pa.array([file["spec-id"] for file in parsed], pa.int32()),
        "record_count": pa.array([file["record-count"] for file in parsed], pa.int64()),
        "file_size_in_bytes": pa.array([file["file-size-in-bytes"] for file in parsed], pa.int64()),
        "null_value_counts": pa.array([_map(f, "null-value-counts") for f in parsed], _COUNTS),
        "nan_value_counts": pa.array([_map(f, "nan-value-counts") for f in parsed], _COUNTS),
        "lower_bounds": pa.array([_bounds(f, "lower-bounds") for f in parsed], _BOUNDS),
        "upper_bounds": pa.array([_bounds(f, "upper-bounds") for f in parsed], _BOUNDS),
    }
    if partition:
        columns["partition"] = pa.StructArray.from_arrays(values, names=list(partition))
    return pa.table(columns)


def _in_order(partition: Any, ids: Sequence[int]) -> Sequence[Any]:
    """Return partition values as a list; Iceberg 1.10 has them by field id, and leaves out null."""
    if isinstance(partition, dict):
        return [partition.get(str(number)) for number in ids]
    values: Sequence[Any] = partition
    return values


def _map(file: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    entries = file.get(name) or {"keys": [], "values": []}
    return list(zip(entries["keys"], entries["values"], strict=True))


def _bounds(file: Mapping[str, Any], name: str) -> list[tuple[int, bytes]]:
    return [(key, bytes.fromhex(value)) for key, value in _map(file, name)]
