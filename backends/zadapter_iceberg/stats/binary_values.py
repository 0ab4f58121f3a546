"""Iceberg's single-value serialization (spec, Appendix D): bounds in binary, partitions in JSON."""

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import texts

_EXACT = Context(prec=76)
_LONG_YEAR = re.compile(r"\A(?=\d{5})")


def encoded(values: pa.Array) -> list[str | None]:
    """Return bounds in the binary serialization as hexadecimal; nulls stay null.

    NaN and types without a supported serialization become null.
    """
    type_ = values.type
    if pa.types.is_string(type_):
        return [None if v is None else v.encode().hex() for v in values.to_pylist()]
    if pa.types.is_decimal(type_):
        return [None if v is None else _unscaled(v, type_.scale).hex() for v in values.to_pylist()]
    if pa.types.is_boolean(type_):
        return [None if v is None else f"{int(v):02x}" for v in values.to_pylist()]
    dtype = _dtype(type_)
    if dtype is None:
        return [None] * len(values)
    is_valid = values.is_valid().to_numpy(zero_copy_only=False)
    numbers = _integers(values) if pa.types.is_temporal(type_) else values
    filled = pc.fill_null(numbers, pa.scalar(0).cast(numbers.type)).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(type_):
        is_valid &= ~np.isnan(filled)
    raw = np.ascontiguousarray(filled, dtype).tobytes().hex()
    width = 2 * np.dtype(dtype).itemsize
    return [raw[i * width : (i + 1) * width] if valid else None for i, valid in enumerate(is_valid)]


def _dtype(type_: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type_) or pa.types.is_int64(type_):
        return "<i8"
    if pa.types.is_date(type_) or pa.types.is_integer(type_):
        return "<i4"  # Iceberg has no shorter integers
    if pa.types.is_floating(type_):
        return "<f4" if pa.types.is_float32(type_) else "<f8"
    return None


def _integers(values: pa.Array) -> pa.Array:
    return values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())


def _unscaled(value: Decimal, scale: int) -> bytes:
    number = int(value.scaleb(scale, _EXACT))
    width = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(width, "big", signed=True)


def json_values(values: Any, type_: pa.DataType) -> Sequence[Any]:
    """Return partition values in the JSON single-value serialization; nulls stay null."""
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return list(values.to_pylist())
    if pa.types.is_binary(type_):
        return [None if value is None else value.hex() for value in values.to_pylist()]
    strings = texts(values)
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        strings = [text and text.removesuffix("Z") + "+00:00" for text in strings]
    if pa.types.is_temporal(type_):
        # ISO 8601 requires a sign before years of more than four digits
        strings = [text and _LONG_YEAR.sub("+", text) for text in strings]
    return strings
