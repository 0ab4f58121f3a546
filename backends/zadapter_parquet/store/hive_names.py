"""Hive's naming rules: hidden files, and partition values in folder names."""

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from zadapter.base.key_types import BOOLEAN, DATE, DECIMAL, INTEGER, TEXT, find_by_name
from zadapter_parquet.store.contract import ListedFile

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
"""Texts that integers print: neither ``01`` nor ``-0`` nor ``+1``."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
FOLDER_KINDS = frozenset({BOOLEAN, INTEGER, DECIMAL, DATE, TEXT})
"""Kinds whose values print in one way, with characters that a folder's name can have."""
_BEING_COPIED = "._COPYING_"
"""Suffix of files that Hadoop's shell is copying."""
NULL = "__HIVE_DEFAULT_PARTITION__"
"""Partition value that stands for null in Hive and Spark."""


def is_folder_type(type_: object) -> bool:
    """Return whether folder names represent values of a type, in Spark's schema JSON."""
    row = find_by_name(type_) if isinstance(type_, str) else None
    return row is not None and row.kind in FOLDER_KINDS


def visible(files: Iterable[ListedFile]) -> list[ListedFile]:
    """Return the files whose rows Spark reads: no hidden part in the path, and not empty.

    Empty files include the objects that some programs create for folders.
    """
    return [file for file in files if file.size and not is_hidden(file.path)]


def is_hidden(path: str) -> bool:
    """Return whether Spark ignores a file."""
    return any(map(_is_hidden_name, path.split("/")))


def _is_hidden_name(name: str) -> bool:
    underscored = name.startswith("_") and "=" not in name
    return underscored or name.startswith(".") or name.endswith(_BEING_COPIED)


def unescape(text: str) -> str:
    """Return a column's name or a value, as the writer of a folder's name meant it.

    Escapes are bytes of UTF-8, as for pyarrow, DuckDB and Polars. Where they are not, each is a
    character, as for Spark.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return unquote(text, encoding="latin-1")


def partition_folders(path: str) -> list[str]:
    """Return the folders ``column=value`` of a path."""
    return [name for name in path.split("/")[:-1] if "=" in name]


def texts(path: str) -> list[tuple[str, str]]:
    """Return the partition columns and the texts of their values, which are still escaped."""
    pairs = (name.split("=", 1) for name in partition_folders(path))
    return [(unescape(column), text) for column, text in pairs]


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in a path's folders ``column=value``, as strings."""
    return {column: value(text) for column, text in texts(path)}


def value(text: str) -> str | None:
    """Return the value that the text of a folder's name stands for; None: null."""
    return None if text == NULL else unescape(text)


def column_types(files: Sequence[ListedFile], columns: Sequence[str]) -> dict[str, str]:
    """Return the types of partition columns, as in Spark's schema JSON.

    A column is a number or a date only if every text of it is what that number or date prints.
    Otherwise texts such as ``01`` and ``1`` would become one value.
    """
    by_path = [dict(texts(file.path)) for file in files]
    return {column: _type({found[column] for found in by_path} - {NULL}) for column in columns}


def _type(present: Collection[str]) -> str:
    if present and all(map(_INTEGER.fullmatch, present)):
        fits = all(-(1 << 31) <= int(text) < 1 << 31 for text in present)
        long = all(-(1 << 63) <= int(text) < 1 << 63 for text in present)
        return "integer" if fits else "long" if long else "string"
    return "date" if present and all(map(_is_date, present)) else "string"


def _is_date(text: str) -> bool:
    with suppress(ValueError):
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    return False


def values(paths: Iterable[str], column: str, type_: pa.DataType) -> pa.Array:
    """Return the value of a partition column in each file, cast to *type_*."""
    return pa.array([partition_values(path)[column] for path in paths], pa.string()).cast(type_)
