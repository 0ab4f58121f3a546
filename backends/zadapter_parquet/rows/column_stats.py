"""Column stats from aggregations over all values, for columns without stats in footers."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import has_nan, is_bytes
from zadapter.base.names import Parts, quote
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.table.encoding import KEPT
from zadapter.table.file_stats import schema, stats_of_values, structs


def aggregated(rows: DataFrame, file: Column, columns: Mapping[Parts, pa.DataType]) -> pa.Table:
    """Aggregate the stats of *columns* per file, in one pass.

    String and binary columns with values of more than ``KEPT`` bytes get no bounds.

    Args:
        rows: The rows.
        file: Expression that identifies a row's file.
        columns: Columns with an order, and their types.

    Returns:
        Table with ``path``, the value of *file*, and ``stats`` as in a file table.
    """
    expressions = [
        expression.alias(f"{name}{number}")
        for number, (parts, type_) in enumerate(columns.items())
        for name, expression in _expressions(F.col(quote(parts)), type_)
    ]
    table = to_arrow(rows.groupBy(file.alias("path")).agg(*expressions))
    stats = [_stats(table, number, type_) for number, type_ in enumerate(columns.values())]
    type_ = schema(columns, {}).field("stats").type
    return pa.table({"path": table["path"], "stats": structs(stats, type_, table.num_rows)})


def _expressions(column: Column, type_: pa.DataType) -> Iterator[tuple[str, Column]]:
    value, nans = column, F.lit(None).cast("bigint")
    if has_nan(type_):  # Spark orders NaN above all numbers
        value, nans = F.when(~F.isnan(column), column), F.count_if(F.isnan(column))
    low, high = F.min(value), F.max(value)
    if is_bytes(type_):
        short = F.max(F.octet_length(column)) <= KEPT
        low, high = F.when(short, low), F.when(short, high)
    yield from (("low", low), ("high", high), ("nans", nans))
    yield "nulls", F.count_if(column.isNull())


def _stats(table: pa.Table, number: int, type_: pa.DataType) -> pa.StructArray:
    low, high = (table[f"{name}{number}"].combine_chunks().cast(type_) for name in ("low", "high"))
    nulls, nans = (table[f"{name}{number}"].combine_chunks() for name in ("nulls", "nans"))
    return stats_of_values(low, high, nulls, nans)
