"""Check that a Parquet file of any writer holds a table's columns as another format reads them.

The format resolves columns by name and converts no values, so names and types must be those that
the format itself would write (parquet-format, ``LogicalTypes.md``).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.key_types import find_by_name, parse_decimal
from zadapter.table.footers import LEGACY
from zadapter.table.spec import Json

_END = re.compile(r"\.|\Z")


def find_mismatch(
    metadata: pq.FileMetaData, columns: Sequence[Json], partition: set[str]
) -> str | None:
    """Return why a file cannot be read as *columns*, or None if it can.

    Args:
        metadata: The file's footer.
        columns: Spark's fields of the old table.
        partition: Names of the columns that files need not contain.
    """
    if any(key in (metadata.metadata or {}) for key in LEGACY):
        return "its dates or timestamps use the Julian calendar"
    leaves = {column.path: column for column in map(metadata.schema.column, _range(metadata))}
    if len(leaves) < metadata.num_columns:
        return "two of its columns have the same path, such as a.b and the field b of a"
    # a name may contain dots
    present = {path[: end.start()] for path in leaves for end in _END.finditer(path)}
    names = {field["name"] for field in columns}
    unknown = sorted(set(metadata.schema.to_arrow_schema().names) - names)
    for field in columns:
        name, needed = field["name"], not field["nullable"] and field["name"] not in partition
        if name not in present and needed:
            return f"it lacks the non-nullable column {name!r}"
        if name not in present and name not in partition and unknown:
            return f"it lacks column {name!r}, but has an unknown column {unknown[0]!r}"
        reason = _differing(leaves, name, field["type"]) if name in present else None
        if reason is not None:
            return reason
    return None


def has_ids(metadata: pq.FileMetaData) -> bool:
    """Return whether columns at any depth have ids (parquet.thrift, ``field_id``)."""
    return any(map(_has_ids, metadata.schema.to_arrow_schema()))


def _has_ids(field: pa.Field) -> bool:
    below = [field.type.field(number) for number in range(field.type.num_fields)]
    return b"PARQUET:field_id" in (field.metadata or {}) or any(map(_has_ids, below))


def _differing(leaves: Mapping[str, Any], name: str, type_: Any) -> str | None:
    for path, expected in _paths(name, type_):
        if path not in leaves:
            return f"it lacks column {path}"
        if not _is(leaves[path], expected):
            return f"its column {path} has type {_describe_type(leaves[path])}, not {expected}"
    return None


def _range(metadata: pq.FileMetaData) -> range:
    return range(metadata.num_columns)


def _paths(path: str, type_: Any) -> Iterator[tuple[str, str]]:
    """Yield the paths of a column's values in a file, and their types."""
    if isinstance(type_, str):
        yield path, type_
    elif type_["type"] == "struct":
        for field in type_["fields"]:
            yield from _paths(f"{path}.{field['name']}", field["type"])
    elif type_["type"] == "array":
        yield from _paths(f"{path}.list.element", type_["elementType"])
    else:
        yield from _paths(f"{path}.key_value.key", type_["keyType"])
        yield from _paths(f"{path}.key_value.value", type_["valueType"])


def _is(column: Any, type_: str) -> bool:
    logical = json.loads(column.logical_type.to_json())
    decimal, row = parse_decimal(type_), find_by_name(type_)
    if decimal is not None:
        expected = {"Type": "Decimal", "precision": decimal[0], "scale": decimal[1]}
        return _has(logical, expected)
    forms = () if row is None else row.stored
    return any(column.physical_type == f.physical and _has(logical, f.logical) for f in forms)


def _has(logical: Json, expected: Mapping[str, Any]) -> bool:
    return {key: logical.get(key) for key in expected} == expected


def _describe_type(column: Any) -> str:
    logical = str(column.logical_type)
    return str(column.physical_type) if logical == "None" else f"{column.physical_type} {logical}"
