"""Conversion of Spark's JSON schemas to Arrow."""

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from zadapter.base.key_types import is_text, to_arrow_type

_COLLATIONS = "__COLLATIONS"
"""Metadata key of fields with a collation, whose texts are not ordered by their bytes."""
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"
"""Metadata key of fields of CHAR types, whose texts are padded before comparisons."""
_CHAR = re.compile(r"(?<!var)char\(")


def arrow_schema(schema: Mapping[str, Any]) -> pa.Schema:
    """Convert a schema; types without a match, or without a usable order, become ``null``.

    Args:
        schema: Parsed JSON of Spark's ``StructType.json``.
    """
    return pa.schema([_field(field) for field in schema["fields"]])


def arrow_type(type_: str | Mapping[str, Any]) -> pa.DataType:
    """Convert a Spark type in the form of its ``jsonValue``."""
    return _type(type_, pa.string())


def _field(field: Mapping[str, Any]) -> pa.Field:
    metadata = field.get("metadata") or {}
    unordered = _COLLATIONS in metadata or _CHAR.search(metadata.get(_PADDED, ""))
    return pa.field(
        field["name"],
        _type(field["type"], pa.null() if unordered else pa.string()),
        field["nullable"],
    )


def _atomic(type_: str, text: pa.DataType) -> pa.DataType:
    is_string = type_ == "string" or type_.startswith("varchar")
    return text if is_string else to_arrow_type(type_)


def _type(type_: str | Mapping[str, Any], text: pa.DataType) -> pa.DataType:
    """Convert a type; strings become *text*."""
    if isinstance(type_, str):
        return _atomic(type_, text)
    if type_["type"] == "struct":
        inner = [_field(field) for field in type_["fields"]]
        kept = [f.with_type(text) if is_text(f.type) else f for f in inner]
        return pa.struct(kept)
    if type_["type"] == "array":
        return pa.list_(_type(type_["elementType"], text))
    if type_["type"] == "map":
        return pa.map_(_type(type_["keyType"], text), _type(type_["valueType"], text))
    return pa.null()
