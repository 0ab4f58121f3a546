"""A Delta table's columns: their types in Arrow, their names in the files, and who has stats."""

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from zadapter.names import Parts

_PLAIN: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.ByteType: pa.int8(),
    T.ShortType: pa.int16(),
    T.IntegerType: pa.int32(),
    T.LongType: pa.int64(),
    T.FloatType: pa.float32(),
    T.DoubleType: pa.float64(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", "UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.BinaryType: pa.binary(),
}

_PHYSICAL = "delta.columnMapping.physicalName"


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Return the Arrow schema; ``null`` stands for types that Arrow has no match for."""
    return pa.schema([_field(field) for field in schema])


def _field(field: T.StructField) -> pa.Field:
    named = {"spark.type": field.dataType.simpleString()}
    return pa.field(field.name, _type(field.dataType), field.nullable, metadata=named)


def _type(type_: T.DataType) -> pa.DataType:
    if isinstance(type_, T.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, T.StructType):
        return pa.struct([_field(field) for field in type_])
    if isinstance(type_, T.ArrayType):
        return pa.list_(_type(type_.elementType))
    if isinstance(type_, T.MapType):
        return pa.map_(_type(type_.keyType), _type(type_.valueType))
    if isinstance(type_, T.StringType):
        return (
            pa.string()
            if type_.simpleString().startswith(("string", "char", "varchar"))
            and ("collate" not in type_.simpleString())
            else pa.null()
        )
    return _PLAIN.get(type(type_), pa.null())


def physical_names(schema: T.StructType) -> dict[Parts, Parts]:
    """Return how files name each column and struct (PROTOCOL.md, "Column Mapping")."""
    found: dict[Parts, Parts] = {}
    _collect(schema, (), (), found)
    return found


def _collect(
    schema: T.StructType, logical: Parts, physical: Parts, found: dict[Parts, Parts]
) -> None:
    for field in schema:
        name = (*logical, field.name)
        stored = (*physical, (field.metadata or {}).get(_PHYSICAL, field.name))
        found[name] = stored
        if isinstance(field.dataType, T.StructType):
            _collect(field.dataType, name, stored, found)


def with_bounds(type_: pa.DataType) -> bool:
    """Tell whether Delta keeps min and max of a type (``SkippingEligibleDataType``)."""
    return bool(
        pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
        or pa.types.is_date(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_string(type_)
    )
