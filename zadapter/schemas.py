"""Spark's schemas, as the JVM writes them in JSON, in Arrow's types."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_PLAIN: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
    "string": pa.string(),
}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_COLLATIONS = "__COLLATIONS"
"""Where Spark says that texts of a field are not ordered by their bytes."""


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema; ``null`` stands for types that Arrow has no match for.

    Args:
        schema: What ``StructType.json`` of Spark wrote, parsed.
    """
    return pa.schema([_field(field) for field in schema["fields"]])


def _field(field: Mapping[str, Any]) -> pa.Field:
    collated = _COLLATIONS in (field.get("metadata") or {})
    return pa.field(
        field["name"], pa.null() if collated else _type(field["type"]), field["nullable"]
    )


def _type(type_: str | Mapping[str, Any]) -> pa.DataType:
    if isinstance(type_, str):
        decimal = _DECIMAL.fullmatch(type_)
        if decimal:
            return pa.decimal128(int(decimal[1]), int(decimal[2]))
        # varchar(8) and char(8) hold texts
        return _PLAIN.get("string" if type_.startswith(("varchar", "char")) else type_, pa.null())
    if type_["type"] == "struct":
        return pa.struct([_field(field) for field in type_["fields"]])
    if type_["type"] == "array":
        return pa.list_(_type(type_["elementType"]))
    if type_["type"] == "map":
        return pa.map_(_type(type_["keyType"]), _type(type_["valueType"]))
    return pa.null()
