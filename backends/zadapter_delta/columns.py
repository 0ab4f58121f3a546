"""Columns of a Delta table: physical names and types with bounds."""

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.names import Parts

_PHYSICAL = "delta.columnMapping.physicalName"


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
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_string(type_)
    )
