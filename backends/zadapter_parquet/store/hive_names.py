"""Hive's naming rules: hidden files, and partition values in folder names."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from zadapter.errors import UnsupportedError
from zadapter_parquet.store.contract import Found

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BEING_COPIED = "._COPYING_"
"""Suffix of files that Hadoop's shell is copying."""
NULL = "__HIVE_DEFAULT_PARTITION__"
"""Partition value that stands for null in Hive and Spark."""


def visible(files: Iterable[Found]) -> list[Found]:
    """Return the files that Spark reads, which have no hidden part in their path."""
    return [file for file in files if not hidden(file.path)]


def hidden(path: str) -> bool:
    """Return whether Spark ignores a file."""
    return any(map(_hidden, path.split("/")))


def _hidden(name: str) -> bool:
    underscored = name.startswith("_") and "=" not in name
    return underscored or name.startswith(".") or name.endswith(_BEING_COPIED)


def partition_values(path: str) -> dict[str, str | None]:
    """Return the partition values in a path's folders ``column=value``, as strings."""
    pairs = (name.split("=", 1) for name in path.split("/")[:-1] if "=" in name)
    return {unquote(key): None if value == NULL else unquote(value) for key, value in pairs}


def partition_columns(files: Sequence[Found]) -> tuple[str, ...]:
    """Return the names of the partition columns.

    Raises:
        UnsupportedError: Files differ in partition columns, a folder has no value, or two columns
            differ in case only.
    """
    first = tuple(partition_values(files[0].path)) if files else ()
    if len({name.lower() for name in first}) < len(first):
        raise UnsupportedError(f"partition columns differ only in case: {', '.join(first)}")
    for file in files:
        values = partition_values(file.path)
        columns = tuple(values)
        if "" in values.values():
            raise UnsupportedError(f"{file.path} is in a partition folder without a value")
        if columns != first:
            raise UnsupportedError(
                f"{file.path} has the partition columns {list(columns)}, but {files[0].path} has "
                f"{list(first)}"
            )
    return first


def column_type(texts: Iterable[str | None]) -> str:
    """Infer the type of a partition column from its values, as in Spark's schema JSON."""
    present = [text for text in texts if text is not None]
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
