"""Conversion of literals in Spark's JSON to Arrow."""

from typing import Any

import pyarrow as pa

from zadapter.base.key_types import is_text, kind_of


def scalar_of(text: Any, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a Spark value to an Arrow scalar; None for types and values without a match."""
    kind = kind_of(type_)
    return None if kind is None else kind.text.literal(text, type_)


def in_type(scalar: pa.Scalar, type_: pa.DataType) -> pa.Scalar | None:
    """Return a value in a column's type, or None unless Spark compares both without a cast."""
    if is_text(scalar.type) and is_text(type_):
        return scalar.cast(type_)
    return scalar if scalar.type == type_ else None
