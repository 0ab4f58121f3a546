"""Columns of a Delta table: physical names and types with bounds."""

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.key_types import DATE, DECIMAL, FLOAT, INTEGER, TEXT, TIMESTAMP, kind_of
from zadapter.base.names import Parts

_PHYSICAL = "delta.columnMapping.physicalName"
BOUNDED = frozenset({INTEGER, FLOAT, DECIMAL, DATE, TIMESTAMP, TEXT})
"""Kinds of values that Delta stores bounds for."""


def physical_names(schema: T.StructType) -> dict[Parts, Parts]:
    """Return the physical name of each column and struct (PROTOCOL.md, "Column Mapping")."""
    names: dict[Parts, Parts] = {}
    _collect(schema, (), (), names)
    return names


def _collect(
    schema: T.StructType, logical: Parts, physical: Parts, names: dict[Parts, Parts]
) -> None:
    for field in schema:
        name = (*logical, field.name)
        stored = (*physical, (field.metadata or {}).get(_PHYSICAL, field.name))
        names[name] = stored
        if isinstance(field.dataType, T.StructType):
            _collect(field.dataType, name, stored, names)


def with_bounds(type_: pa.DataType) -> bool:
    """Return whether Delta stores bounds for a type (``SkippingEligibleDataType``)."""
    return kind_of(type_) in BOUNDED
