"""The types of columns that can be keys: one table, from which everything else follows.

A type belongs to a kind. What holds for all values of a kind, such as their order or their text, is
stated in :class:`Kind`; what differs between types of a kind, their names above all, in
:class:`KeyType`. Other types, such as structs, are neither keys nor do they have bounds.

=============  =============  ==========  ===================================================
name in Spark  in Spark SQL   kind        order
=============  =============  ==========  ===================================================
boolean        boolean        BOOLEAN     false, true
byte           tinyint        INTEGER     of the numbers
short          smallint       INTEGER     of the numbers
integer        int            INTEGER     of the numbers
long           bigint         INTEGER     of the numbers
float          float          FLOAT       of the numbers, then NaN; -0.0 equals 0.0
double         double         FLOAT       of the numbers, then NaN; -0.0 equals 0.0
decimal(p,s)   decimal(p,s)   DECIMAL     of the numbers
date           date           DATE        of days in the proleptic Gregorian calendar
timestamp      timestamp      TIMESTAMP   of moments
timestamp_ntz  timestamp_ntz  TIMESTAMP   of date and time
string         string         TEXT        of the bytes of UTF-8
binary         binary         BINARY      of the bytes
=============  =============  ==========  ===================================================

To add a type, add a row to :data:`KEY_TYPES`, and a kind if its values are unlike those of the
others. What only one format needs, such as the bytes of a bound in Iceberg's manifests, is stated
by its backend, by kind or by the name of the type.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from zadapter.base import key_text
from zadapter.base.key_text import Form, Texts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Kind:
    """Types whose values are ordered, counted and written alike."""

    name: str
    arrow: tuple[pa.DataType, ...]
    """Arrow's types of this kind, with any parameters. It orders them as Spark does."""
    text: Form
    """How values are written as text."""
    stored_as: pa.DataType | None = None
    """Integers that stand for the values in their order; None: values are numbers or bytes."""
    ordinal_bytes: int | None = None
    """Bytes of an ordinal (:mod:`zadapter.layout.zvalue`); None: the type determines it."""
    has_nan: bool = False
    """Whether NaN is a value, which bounds may leave out."""
    is_bytes: bool = False
    """Whether values are bytes of any length, so that bounds may be truncated."""
    no_bloom_filter: str | None = None
    """Why a column has no Bloom filter, where ``{type}`` stands for its type; None: it can."""


UNLIKE = "readers do not look for values of its type ({type}) alike"

BOOLEAN = Kind(
    name="boolean",
    arrow=(pa.bool_(),),
    text=key_text.BOOLEANS,
    stored_as=pa.uint8(),
    ordinal_bytes=1,
    no_bloom_filter="it has two values",
)
INTEGER = Kind(
    name="integer",
    arrow=(
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    ),
    text=key_text.INTEGERS,
)
FLOAT = Kind(
    name="float",
    arrow=(pa.float32(), pa.float64()),
    text=key_text.FLOATS,
    has_nan=True,
    no_bloom_filter="a filter for 0.0 would miss rows with -0.0, which have other bytes",
)
DECIMAL = Kind(
    name="decimal",
    arrow=(pa.decimal128(38), pa.decimal256(76)),
    text=key_text.DECIMALS,
)
DATE = Kind(
    name="date",
    arrow=(pa.date32(),),
    text=key_text.DATES,
    stored_as=pa.int32(),
    ordinal_bytes=8,
)
TIMESTAMP = Kind(
    name="timestamp",
    arrow=(pa.timestamp("us"),),
    text=key_text.TIMESTAMPS,
    stored_as=pa.int64(),
    ordinal_bytes=8,
)
TEXT = Kind(
    name="text",
    arrow=(pa.string(), pa.large_string()),
    text=key_text.TEXTS,
    is_bytes=True,
)
BINARY = Kind(
    name="binary",
    arrow=(pa.binary(), pa.large_binary(), pa.binary(1)),
    text=key_text.HEXADECIMAL,
    is_bytes=True,
    no_bloom_filter=UNLIKE,
)
KINDS = (BOOLEAN, INTEGER, FLOAT, DECIMAL, DATE, TIMESTAMP, TEXT, BINARY)


@dataclass(frozen=True, slots=True)
class Stored:
    """How a Parquet file stores values of a type (parquet-format, ``LogicalTypes.md``)."""

    physical: str
    logical: Mapping[str, str | int | bool] = field(default_factory=lambda: {"Type": "None"})
    """Fields of the logical type that matter, as parquet-cpp writes them in JSON."""


@dataclass(frozen=True, slots=True)
class KeyType:
    """A type that a key column can have."""

    name: str
    """The name in the JSON of Spark's schemas."""
    sql: str
    """The name in Spark's SQL, as ``DataType.simpleString`` returns it."""
    kind: Kind
    arrow: pa.DataType
    """Arrow's type. Timestamps of a zone are in any zone, and decimals have other digits."""
    stored: tuple[Stored, ...]
    """What Spark reads from files as this type, as it is. Decimals have digits, too."""


def _whole(physical: str, bits: int) -> Stored:
    return Stored(physical, {"Type": "Int", "bitWidth": bits, "isSigned": True})


def _moment(*, utc: bool) -> Stored:
    return Stored(
        "INT64", {"Type": "Timestamp", "isAdjustedToUTC": utc, "timeUnit": "microseconds"}
    )


KEY_TYPES = (
    KeyType("boolean", "boolean", BOOLEAN, pa.bool_(), (Stored("BOOLEAN"),)),
    KeyType("byte", "tinyint", INTEGER, pa.int8(), (_whole("INT32", 8),)),
    KeyType("short", "smallint", INTEGER, pa.int16(), (_whole("INT32", 16),)),
    KeyType("integer", "int", INTEGER, pa.int32(), (Stored("INT32"), _whole("INT32", 32))),
    KeyType("long", "bigint", INTEGER, pa.int64(), (Stored("INT64"), _whole("INT64", 64))),
    KeyType("float", "float", FLOAT, pa.float32(), (Stored("FLOAT"),)),
    KeyType("double", "double", FLOAT, pa.float64(), (Stored("DOUBLE"),)),
    KeyType("decimal", "decimal", DECIMAL, pa.decimal128(38), ()),
    KeyType("date", "date", DATE, pa.date32(), (Stored("INT32", {"Type": "Date"}),)),
    KeyType("timestamp", "timestamp", TIMESTAMP, pa.timestamp("us", "UTC"), (_moment(utc=True),)),
    KeyType("timestamp_ntz", "timestamp_ntz", TIMESTAMP, pa.timestamp("us"), (_moment(utc=False),)),
    KeyType("string", "string", TEXT, pa.string(), (Stored("BYTE_ARRAY", {"Type": "String"}),)),
    KeyType("binary", "binary", BINARY, pa.binary(), (Stored("BYTE_ARRAY"),)),
)


def to_cast_name(name: str) -> str:
    """Return a name in Spark's SQL as one to cast to, in any session.

    The setting ``spark.sql.timestampType`` can make ``timestamp`` mean ``timestamp_ntz``.
    """
    return "timestamp_ltz" if name == "timestamp" else name


_KIND_OF = {type_.id: kind for kind in KINDS for type_ in kind.arrow}
_BY_ARROW = {row.arrow: row for row in KEY_TYPES}
_BY_NAME = {row.name: row for row in KEY_TYPES}
_BY_SQL = {name: row for row in KEY_TYPES for name in (row.sql, to_cast_name(row.sql))}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_ARROW_DECIMAL = re.compile(r"decimal128\((\d+), (-?\d+)\)")
_BY_ARROW_NAME = {str(row.arrow): row.arrow for row in KEY_TYPES}


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a type; None: it has no order."""
    return _KIND_OF.get(type_.id)


def find_key_type(type_: pa.DataType) -> KeyType | None:
    """Return the row of a type; None: it cannot be a key, or Spark has no such type."""
    return _BY_ARROW.get(_canonical(type_))


def _canonical(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal128(type_):
        return DECIMAL.arrow[0]
    return pa.timestamp(type_.unit, "UTC") if has_zone(type_) else type_


def find_by_name(name: str) -> KeyType | None:
    """Return the row of a type by its name in Spark's JSON; None if there is none."""
    return _BY_NAME.get("decimal" if parse_decimal(name) else name)


def find_by_sql_name(name: str) -> KeyType | None:
    """Return the row of a type by its name in Spark's SQL; None if there is none."""
    return _BY_SQL.get("decimal" if parse_decimal(name) else name)


def parse_decimal(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal by its name in Spark; None: it is another type."""
    match = _DECIMAL.fullmatch(name)
    return None if match is None else (int(match[1]), int(match[2]))


def to_arrow_type(name: str) -> pa.DataType:
    """Return Arrow's type by the name in Spark's JSON; null: there is none."""
    decimal, row = parse_decimal(name), find_by_name(name)
    if decimal is not None:
        return pa.decimal128(*decimal)
    return pa.null() if row is None or row.kind is DECIMAL else row.arrow


def write_type(type_: pa.DataType) -> str:
    """Return a type as it is written in stored layouts; timestamps of any zone are in UTC."""
    return str(pa.timestamp(type_.unit, "UTC") if has_zone(type_) else type_)


def read_type(text: str) -> pa.DataType:
    """Return the type that :func:`write_type` has written."""
    match = _ARROW_DECIMAL.fullmatch(text)
    return pa.decimal128(int(match[1]), int(match[2])) if match else _BY_ARROW_NAME[text]


def is_key(type_: pa.DataType) -> bool:
    """Return whether a column of this type can be a key."""
    return find_key_type(type_) is not None


def has_nan(type_: pa.DataType) -> bool:
    """Return whether NaN is a value of this type, which bounds may leave out."""
    kind = kind_of(type_)
    return kind is not None and kind.has_nan


def is_bytes(type_: pa.DataType) -> bool:
    """Return whether values are bytes of any length, so that bounds may be truncated."""
    kind = kind_of(type_)
    return kind is not None and kind.is_bytes


def is_text(type_: pa.DataType) -> bool:
    """Return whether values are texts."""
    return kind_of(type_) is TEXT


def has_zone(type_: pa.DataType) -> bool:
    """Return whether values are moments, not date and time of an unknown zone."""
    return kind_of(type_) is TIMESTAMP and type_.tz is not None


def to_integers(values: pa.Array) -> pa.Array:
    """Return the integers that stand for values in their order; numbers and bytes stay."""
    kind = kind_of(values.type)
    return values if kind is None or kind.stored_as is None else values.cast(kind.stored_as)


def texts(values: pa.Array) -> list[str | None]:
    """Convert *values* to text; nulls become None."""
    return (kind_of(values.type) or TEXT).text.write(values)


def values(written: Texts, type_: pa.DataType) -> pa.Array:
    """Convert the result of :func:`texts` back to values."""
    return (kind_of(type_) or TEXT).text.read(written, type_)
