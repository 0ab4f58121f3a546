"""File tables from AddFile actions and their stats.

The stats follow PROTOCOL.md, "Per-file Statistics". Strings are truncated to a prefix, and an upper
bound is then raised. Timestamps are truncated to milliseconds, so an upper bound may be up to 999
microseconds too low. If ``tightBounds`` is false, the stats may include deleted rows, and a null
count holds only if it is 0 or the number of records.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.key_types import (
    DATE,
    DECIMAL,
    FLOAT,
    INTEGER,
    TEXT,
    TIMESTAMP,
    has_nan,
    is_text,
    kind_of,
    to_cast_name,
)
from zadapter.base.names import NameParts, quote, text_literal
from zadapter.spark.jvm.spark_classes import parse_json, select_texts
from zadapter.spark.jvm.spark_parts import arrow_parts
from zadapter.table.file_stats import DELETED, OWNER, column_stats, concat_files, schema, structs

PROVIDER = "zadapter"
"""The name of zadapter in the field ``clusteringProvider`` of AddFile actions."""
LAYOUT_TAG = "zadapter.layout"
FILE_TAG = "zadapter.file"

_CUT_TO_MILLISECONDS = 999
"""Microseconds by which a timestamp in the log may lie below the true value."""

_PHYSICAL = "delta.columnMapping.physicalName"
BOUNDED = frozenset({INTEGER, FLOAT, DECIMAL, DATE, TIMESTAMP, TEXT})
"""Kinds of values that Delta stores bounds for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Column whose stats are read.

    Attributes:
        parts: Logical name, as in the table's schema.
        physical: Physical name, as in the files.
        type: Arrow type.
        spark_type: Spark type.
        was_float: Whether the column was widened from float.
    """

    parts: NameParts
    physical: NameParts
    type: pa.DataType
    spark_type: T.DataType
    was_float: bool = False


Read = Callable[[Sequence[Wanted], Mapping[str, Wanted]], Iterator[pa.Table]]
"""Yields AddFile actions in parts, with a column for each fact: those of :data:`_FACTS`, the values
of partition columns, and the stats of the columns that are asked for."""


def file_table(read: Read, wanted: Sequence[Wanted], partition: Mapping[str, Wanted]) -> pa.Table:
    """Return the file table of the AddFile actions that *read* yields."""
    usable = [column for column in wanted if with_bounds(column.type)]
    return concat_files(_of_part(flat, usable, partition) for flat in read(usable, partition))


def by_spark(adds: DataFrame, about: int = 0) -> Read:
    """Return how Spark reads *adds*, a DataFrame of about *about* AddFile actions."""
    return lambda usable, partition: arrow_parts(_flat(adds, usable, partition), about)


def _of_part(flat: pa.Table, usable: Sequence[Wanted], partition: Mapping[str, Wanted]) -> pa.Table:
    """Return the file table of some of the actions, flattened."""
    rows = pc.subtract(flat["records"], flat["deleted"])
    tight = flat["tight"].combine_chunks()
    columns = [
        _read_column_stats(flat, number, column, tight, rows)
        for number, column in enumerate(usable)
    ]
    types = {column.parts: column.type for column in usable}
    values = [
        flat[f"partition{number}"].combine_chunks().cast(column.type)
        for number, column in enumerate(partition.values())
    ]
    file_schema = schema(types, {name: column.type for name, column in partition.items()})
    files = pa.table(
        [
            flat["path"], flat["deletes"], flat["size"], rows, flat["layout"],
            structs(values, file_schema.field("partition").type, flat.num_rows),
            structs(columns, file_schema.field("stats").type, flat.num_rows),
        ],
        schema=file_schema,
    )  # fmt: skip
    files = files.append_column(DELETED, flat["deleted"].cast(pa.int64()))
    return files.append_column(OWNER, flat["owner"])


def _flat(adds: DataFrame, usable: Sequence[Wanted], partition: Mapping[str, Wanted]) -> DataFrame:
    """Flatten AddFile actions to one column per fact, by SQL: a call into Java takes its time."""
    facts = [*_FACTS]
    for number, column in enumerate(partition.values()):
        text = f"partitionValues[{text_literal(column.physical[0])}]"
        # some writers write null as the empty string; in string columns, others mean the value
        string = text if is_text(column.type) else f"nullif({text}, '')"
        facts.append(f"CAST({string} AS {_sql_name(column)}) AS partition{number}")
    for number, column in enumerate(usable):
        name = quote(column.physical)
        facts += [
            f"{_cast_bound(f'stats.minValues.{name}', column)} AS min{number}",
            f"{_cast_bound(f'stats.maxValues.{name}', column)} AS max{number}",
            f"stats.nullCount.{name} AS nulls{number}",
        ]
    return select_texts(parse_json(adds, "stats", _stats_schema(usable).json()), facts)


_VECTOR = (
    "concat_ws('@', deletionVector.storageType, deletionVector.pathOrInlineDv, "
    "deletionVector.`offset`)"  # a reserved word of the ANSI standard
)
_FACTS = (
    "path",
    f"CASE WHEN deletionVector IS NOT NULL THEN {_VECTOR} END AS deletes",
    "size",
    "stats.numRecords AS records",
    "coalesce(deletionVector.cardinality, 0) AS deleted",
    "coalesce(stats.tightBounds, deletionVector IS NULL) AS tight",
    f"tags['{LAYOUT_TAG}'] AS layout",
    f"CASE WHEN clusteringProvider != '{PROVIDER}' THEN clusteringProvider END AS owner",
)
"""Facts of each file, besides the stats of columns."""


def _cast_bound(name: str, target: Wanted) -> str:
    return f"try_cast({name} AS {_sql_name(target)})" if _as_text(target) else name


def _sql_name(column: Wanted) -> str:
    return to_cast_name(column.spark_type.simpleString())


def _as_text(column: Wanted) -> bool:
    """Return whether bounds are read as strings: a cast then parses them, invalid ones to null."""
    return kind_of(column.type) in {DATE, TIMESTAMP}


def _stats_schema(usable: Sequence[Wanted]) -> T.StructType:
    text = T.StringType()
    bounds = _nest_fields([(c.physical, text if _as_text(c) else c.spark_type) for c in usable])
    counts = _nest_fields([(c.physical, T.LongType()) for c in usable])
    return T.StructType(
        [
            T.StructField("numRecords", T.LongType()),
            T.StructField("tightBounds", T.BooleanType()),
            T.StructField("minValues", bounds),
            T.StructField("maxValues", bounds),
            T.StructField("nullCount", counts),
        ]
    )


def _nest_fields(leaves: Sequence[tuple[NameParts, T.DataType]]) -> T.StructType:
    children: dict[str, list[tuple[NameParts, T.DataType]]] = {}
    for (first, *rest), type_ in leaves:
        children.setdefault(first, []).append((tuple(rest), type_))
    return T.StructType(
        [
            T.StructField(name, _nest_fields(below) if below[0][0] else below[0][1])
            for name, below in children.items()
        ]
    )


def _read_column_stats(
    flat: pa.Table, number: int, column: Wanted, tight: Any, rows: Any
) -> pa.StructArray:
    """Return one column's stats from its bounds and null count."""
    low = flat[f"min{number}"].combine_chunks().cast(column.type)
    high = _raise_timestamps(flat[f"max{number}"].combine_chunks().cast(column.type))
    if column.was_float:
        low, high = _widen_to_floats(low, high)
    nulls = flat[f"nulls{number}"].combine_chunks()
    return column_stats(
        (low, high),
        nulls,
        _nans(flat, low, high, nulls),
        (flat["records"].combine_chunks(), rows.combine_chunks()),
        tight,
        exact=kind_of(column.type) not in {TEXT, TIMESTAMP},
    )


def _nans(flat: pa.Table, low: Any, high: Any, nulls: Any) -> pa.Array:
    """Return NaN counts of files that zadapter wrote: their bounds place NaN above all values."""
    unknown = pa.nulls(len(high), pa.int64())
    if not has_nan(high.type):
        return unknown
    by_zadapter = flat["layout"].combine_chunks().is_valid()
    non_null = pc.subtract(flat["records"].combine_chunks(), nulls)
    no_nan, only_nan = (
        pc.and_(by_zadapter, test).fill_null(False)  # noqa: FBT003
        for test in (pc.invert(pc.is_nan(high)), pc.is_nan(low))
    )
    return pc.case_when(pc.make_struct(no_nan, only_nan), pa.scalar(0, pa.int64()), non_null)


def _widen_to_floats(low: Any, high: Any) -> tuple[pa.Array, pa.Array]:
    """Widen bounds to include their floats: Delta logs a float's shortest decimal text."""
    lows, highs = (bound.cast(pa.float32(), safe=False).cast(pa.float64()) for bound in (low, high))
    lowest = pc.min_element_wise(low, lows, skip_nulls=False)
    return lowest, pc.max_element_wise(high, highs, skip_nulls=False)


def _raise_timestamps(high: Any) -> pa.Array:
    """Raise timestamp upper bounds to the end of their millisecond."""
    if kind_of(high.type) is not TIMESTAMP:
        return high
    limit = 2**63 - 1 - _CUT_TO_MILLISECONDS
    ticks = high.cast(pa.int64())
    return pc.add(pc.min_element_wise(ticks, limit, skip_nulls=False), _CUT_TO_MILLISECONDS).cast(
        high.type
    )


def physical_names(schema: T.StructType) -> dict[NameParts, NameParts]:
    """Return the physical name of each column and struct (PROTOCOL.md, "Column Mapping")."""
    names: dict[NameParts, NameParts] = {}
    _collect(schema, (), (), names)
    return names


def _collect(
    schema: T.StructType, logical: NameParts, physical: NameParts, names: dict[NameParts, NameParts]
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
