"""Detection of columns that Spark cannot read, or would write with another type."""

from base64 import b64decode
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.base.key_types import is_text

_ARROW_SCHEMA_KEY = b"ARROW:schema"
"""Footer key under which Arrow stores the logical types of columns."""
_CODECS = {"BROTLI", "LZO"}
_ENCODINGS = frozenset({"BYTE_STREAM_SPLIT"})
_CAST_ADVICE = (
    "which only the Arrow schema in the footer contains and Spark does not write; rewrite the "
    "files with the column cast to a number, a string or a timestamp"
)
_REWRITE_ADVICE = "which Spark cannot read; rewrite the files with another one"


def obstacles(metadata: pq.FileMetaData) -> tuple[str, ...]:
    """Return a description of each unsupported column, with the reason and advice.

    Args:
        metadata: Footer of a file.
    """
    arrow_schema = (metadata.metadata or {}).get(_ARROW_SCHEMA_KEY)
    return (
        *_find_unsupported(metadata),
        *(() if arrow_schema is None else _arrow_only_columns(arrow_schema)),
    )


def has_int96(metadata: pq.FileMetaData) -> bool:
    """Return whether a column has the type INT96, Spark's default for timestamps."""
    columns = map(metadata.schema.column, range(metadata.num_columns))
    return any(column.physical_type == "INT96" for column in columns)


def _find_unsupported(metadata: pq.FileMetaData) -> Iterator[str]:
    """Yield codecs and encodings of the first row group that Spark's reader lacks.

    Writers use the same ones in all row groups.
    """
    group = metadata.row_group(0) if metadata.num_row_groups else None
    for column in map(group.column, range(metadata.num_columns)) if group else ():
        name = column.path_in_schema
        if column.compression in _CODECS:
            yield f"{name!r} is compressed with {column.compression}, {_REWRITE_ADVICE}"
        if encodings := _ENCODINGS.intersection(column.encodings):
            yield f"{name!r} is encoded as {min(encodings)}, {_REWRITE_ADVICE}"


@lru_cache(maxsize=64)
def _arrow_only_columns(arrow_schema: bytes) -> tuple[str, ...]:
    """Return the columns that Spark would write as plain numbers or bytes, without Arrow's schema.

    Time zone names, dictionaries and list lengths in Arrow's schema do not affect the values. Most
    files of a folder have the same schema, so results are cached.
    """
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(b64decode(arrow_schema)))
    except (ValueError, pa.ArrowException):
        return ()  # readers ignore an invalid schema, too
    descriptions = ((field.name, _type_description(field)) for field in schema)
    return tuple(
        f"{name!r} {description}, {_CAST_ADVICE}"
        for name, description in descriptions
        if description
    )


def _type_description(field: pa.Field) -> str | None:
    type_ = field.type
    if isinstance(type_, pa.BaseExtensionType):
        # string extensions, such as JSON, remain strings
        return None if is_text(type_.storage_type) else f"is of type {type_.extension_name}"
    if name := (field.metadata or {}).get(b"ARROW:extension:name"):
        return None if is_text(type_) else f"is of type {name.decode(errors='replace')}"
    if pa.types.is_duration(type_):
        return "contains durations"
    children = (type_.field(at) for at in range(type_.num_fields))
    return next(
        (description for child in children if (description := _type_description(child))), None
    )
