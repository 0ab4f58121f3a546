"""Exact conversion of key column values to text and back.

Cuts are passed as JSON: to the layout stored with a table, and to Spark as one literal that is cast
to the column's type. The text must therefore be exact, and Spark must read it as the same value.
Floats are written with digits that round-trip, timestamps with a time zone in UTC, and binary as
hexadecimal (Spark compares such columns as ``hex(column)``, which preserves their order).
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_EARLY = re.compile(r"\A-(\d{1,3})-")


def texts(values: pa.Array) -> list[str | None]:
    """Convert *values* to text; nulls become None."""
    type_ = values.type
    if pa.types.is_boolean(type_):
        return [None if v is None else str(v).lower() for v in values.to_pylist()]
    if pa.types.is_floating(type_):
        return [None if v is None else _float_text(v, type_) for v in values.to_pylist()]
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _datetime_texts(values)
    if pa.types.is_decimal(type_):
        return [None if v is None else format(v, "f") for v in values.to_pylist()]
    if _is_binary(type_):
        return [None if v is None else v.hex().upper() for v in values.to_pylist()]
    return [None if v is None else str(v) for v in values.to_pylist()]


def values(written: Sequence[str | None], type_: pa.DataType) -> pa.Array:
    """Convert the result of :func:`texts` back to values."""
    if pa.types.is_boolean(type_):
        return pa.array([None if t is None else t == "true" for t in written], type_)
    if pa.types.is_floating(type_):
        return pa.array([None if t is None else float(t) for t in written], type_)
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        return _datetimes(written, type_)
    if _is_binary(type_):
        return pa.array([None if t is None else bytes.fromhex(t) for t in written], type_)
    return pc.cast(pa.array(written, pa.string()), type_)


def _is_binary(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_fixed_size_binary(type_)
    )


def _float_text(value: float, type_: pa.DataType) -> str:
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(np.float32(value)) if pa.types.is_float32(type_) else repr(value)


def _unit(type_: pa.DataType) -> str:
    return "D" if pa.types.is_date(type_) else str(type_.unit)


def _integers(values: pa.Array) -> pa.Array:
    storage = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    return values.cast(storage).cast(pa.int64())


def _datetime_texts(values: pa.Array) -> list[str | None]:
    zone = "Z" if pa.types.is_timestamp(values.type) and values.type.tz is not None else ""
    since_epoch: Any = _integers(values).fill_null(0).to_numpy(zero_copy_only=False)
    written = np.datetime_as_string(since_epoch.astype(f"datetime64[{_unit(values.type)}]"))
    return [
        f"{_EARLY.sub(_four_digits, text)}{zone}" if valid else None
        for text, valid in zip(written, values.is_valid().to_pylist(), strict=True)
    ]


def _four_digits(year: re.Match[str]) -> str:
    """Pad a year before 0 to Spark's four digits; numpy counts the sign as a digit."""
    return f"-{year[1]:0>4}-"


def _datetimes(written: Sequence[str | None], type_: pa.DataType) -> pa.Array:
    plain = [None if text is None else text.removesuffix("Z") for text in written]
    moments = np.array(plain, dtype=f"datetime64[{_unit(type_)}]").astype(np.int64)
    integers = pa.array(moments, mask=np.array([text is None for text in written], bool))
    return integers.cast(pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(type_)
