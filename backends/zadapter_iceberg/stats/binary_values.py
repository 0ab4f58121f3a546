"""Iceberg's single-value serialization (spec, Appendix D): bounds in binary, partitions in JSON."""

import re
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import (
    BINARY,
    BOOLEAN,
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    find_key_type,
    has_nan,
    has_zone,
    kind_of,
    texts,
    to_integers,
)
from zadapter_iceberg.key_types import WIDENED

_EXACT = Context(prec=76)
_DECIMAL_BYTES = 16
_LONG_YEAR = re.compile(r"\A(?=\d{5})")
_NUMBERS: Mapping[str, str] = {
    "boolean": "?",
    "integer": "<i4",
    "long": "<i8",
    "float": "<f4",
    "double": "<f8",
    "date": "<i4",
    "timestamp": "<i8",
    "timestamp_ntz": "<i8",
}
"""Bounds of key types that have a fixed width, as numpy's types."""
_PROMOTED: Mapping[str, str] = {"long": "<i4", "double": "<f4"}
"""Bounds that files may have from before a column was promoted from int or float."""


def encode_bounds(values: pa.Array) -> list[str | None]:
    """Return bounds in the binary serialization as hexadecimal; nulls stay null.

    NaN and types without a supported serialization become null.
    """
    row = find_key_type(values.type)
    if row is not None and row.kind is TEXT:
        return [None if v is None else v.encode().hex() for v in values.to_pylist()]
    if row is not None and row.kind is DECIMAL:
        scale = values.type.scale
        return [None if v is None else _encode_decimal(v, scale).hex() for v in values.to_pylist()]
    dtype = None if row is None else _NUMBERS.get(WIDENED.get(row.name, row.name))
    return [None] * len(values) if dtype is None else _bytes_of(values, np.dtype(dtype))


def _bytes_of(values: pa.Array, dtype: Any) -> list[str | None]:
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = to_integers(values)
    filled = pc.fill_null(numbers, pa.scalar(0).cast(numbers.type)).to_numpy(zero_copy_only=False)
    if has_nan(values.type):
        is_valid &= ~np.isnan(filled)
    raw = np.ascontiguousarray(filled, dtype).tobytes().hex()
    width = 2 * dtype.itemsize
    return [raw[i * width : (i + 1) * width] if valid else None for i, valid in enumerate(is_valid)]


def _encode_decimal(value: Decimal, scale: int) -> bytes:
    number = int(value.scaleb(scale, _EXACT))
    width = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(width, "big", signed=True)


def decode_bounds(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode bounds; bounds of another length, invalid UTF-8 and NaN become null.

    Args:
        values: Bounds in the binary single-value serialization.
        type_: Current type of the column.
    """
    row = find_key_type(type_)
    if row is None:
        return pa.nulls(len(values), type_)
    if row.kind is BINARY:
        return values.cast(type_)
    if row.kind is TEXT:
        try:
            return values.cast(type_)
        except pa.ArrowInvalid:  # some are no texts
            return pa.array([_decode_text(value) for value in values.to_pylist()], type_)
    if row.kind is DECIMAL:
        return decode_decimals(values, type_)
    return _decode_number_bounds(values, type_, row.name)


def _decode_number_bounds(values: pa.Array, type_: pa.DataType, name: str) -> pa.Array:
    """Decode numbers of a fixed width; types that Iceberg lacks have no bounds."""
    if name not in _NUMBERS:
        return pa.nulls(len(values), type_)
    numbers, valid = decode_numbers(values, name)
    if has_nan(type_):
        valid &= ~np.isnan(numbers)
    return pa.array(numbers, mask=~valid).cast(type_)


def decode_numbers(values: pa.Array, name: str) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Decode numbers of a fixed width, and return which of them are known.

    Args:
        values: Values in the binary single-value serialization.
        name: Name of a key type.
    """
    numbers = np.zeros(len(values), _NUMBERS[name])
    lengths = pc.binary_length(values).fill_null(-1).to_numpy()
    valid = np.zeros(len(values), bool)
    for dtype in filter(None, (_NUMBERS[name], _PROMOTED.get(name))):
        mask = lengths == np.dtype(dtype).itemsize
        if mask.all():
            return np.frombuffer(_data(values), dtype).astype(numbers.dtype, copy=False), mask
        numbers[mask] = np.frombuffer(_data(values.filter(pa.array(mask))), dtype)
        valid |= mask
    return numbers, valid


def _data(values: pa.Array) -> memoryview | bytes:
    """Return the bytes of all *values*, none of which is null, one behind the other."""
    if not len(values):
        return b""
    starts = np.frombuffer(values.buffers()[1], np.int32)
    start, stop = starts[values.offset], starts[values.offset + len(values)]
    return memoryview(values.buffers()[2])[start:stop]


def _decode_text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None  # truncated within a character


def decode_decimals(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decode decimals; those of another length than Arrow's or shorter ones become null."""
    lengths = pc.binary_length(values).fill_null(0).to_numpy()
    known = (lengths > 0) & (lengths <= _DECIMAL_BYTES)
    unscaled = np.zeros((len(values), _DECIMAL_BYTES), np.uint8)
    for length in np.unique(lengths[known]).tolist():
        mask = lengths == length
        raw = np.frombuffer(_data(values.filter(pa.array(mask))), np.uint8).reshape(-1, length)
        sign = (raw[:, :1].view(np.int8) >> 7).view(np.uint8)
        unscaled[mask] = np.hstack([raw[:, ::-1], np.tile(sign, _DECIMAL_BYTES - length)])
    buffers = [pa.array(known).buffers()[1], pa.py_buffer(unscaled)]
    return pa.Array.from_buffers(type_, len(values), buffers)


def json_values(values: Any, type_: pa.DataType) -> Sequence[Any]:
    """Return partition values in the JSON single-value serialization; nulls stay null."""
    kind = kind_of(type_)
    if kind in {BOOLEAN, INTEGER, FLOAT}:
        return list(values.to_pylist())
    if kind is BINARY:
        return [None if value is None else value.hex() for value in values.to_pylist()]
    strings = texts(values)
    if has_zone(type_):
        strings = [text and text.removesuffix("Z") + "+00:00" for text in strings]
    if kind in {DATE, TIMESTAMP}:
        # ISO 8601 requires a sign before years of more than four digits
        strings = [text and _LONG_YEAR.sub("+", text) for text in strings]
    return strings


def from_json_values(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Convert partition values from the JSON single-value serialization."""
    kind = kind_of(type_)
    if kind is BINARY:
        return pa.array([None if v is None else bytes.fromhex(v) for v in values], type_)
    if kind is FLOAT:  # NaN and infinities are written as strings
        return pa.array([None if v is None else float(v) for v in values], type_)
    as_text = kind in {DECIMAL, DATE, TIMESTAMP}
    return pa.array(values, pa.string()).cast(type_) if as_text else pa.array(values, type_)
