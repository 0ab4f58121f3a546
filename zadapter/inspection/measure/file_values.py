"""Stats of files from all of their live values."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.row_files import RowFiles
from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts, quote
from zadapter.errors import UnsupportedError
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.table.file_stats import schema, stats_of_values, structs

_STATS = ("low", "high", "nulls", "nans")


def read_stats(
    rows: DataFrame,
    columns: Mapping[NameParts, pa.DataType],
    files: RowFiles,
    recorded: pa.Table,
) -> pa.Table:
    """Return a file table of all values, in one pass over the rows.

    Args:
        rows: The rows of the files.
        columns: Columns with an order, and their types.
        files: The files by their names in rows.
        recorded: Their file table in the log.

    Raises:
        UnsupportedError: Two files have the same location in different stores.
    """
    expressions = [
        expression.alias(f"{name}{number}")
        for number, (parts, type_) in enumerate(columns.items())
        for name, expression in _expressions(F.col(quote(parts)), type_)
    ]
    file = F.input_file_name().alias("file")
    found = to_arrow(rows.groupBy(file).agg(F.count(F.lit(1)).alias("rows"), *expressions))
    if files.is_ambiguous:
        raise UnsupportedError(
            "files of different stores have the same path, so their values are ambiguous; "
            "omit deep= (--deep)"
        )
    numbers = pa.array([files.number(name) for name in found["file"].to_pylist()], pa.int64())
    found = found.take(pc.index_in(pa.array(range(files.count), pa.int64()), numbers))
    counts = found["rows"].combine_chunks().cast(pa.int64())
    # a file of which no row was read is empty only if the log records 0 rows
    none = pc.and_(counts.is_null(), pc.equal(recorded["rows"].combine_chunks(), 0))
    table_schema = schema(columns, {})
    stats = [_stats(found, number, type_) for number, type_ in enumerate(columns.values())]
    arrays = {
        "path": recorded["path"].combine_chunks(),
        "size": recorded["size"].combine_chunks(),
        "rows": pc.if_else(none.fill_null(False), 0, counts),  # noqa: FBT003
        "stats": structs(stats, table_schema.field("stats").type, files.count),
        "partition": structs([], table_schema.field("partition").type, files.count),
    }
    return pa.table(
        [arrays.get(field.name, pa.nulls(files.count, field.type)) for field in table_schema],
        schema=table_schema,
    )


def _expressions(column: Column, type_: pa.DataType) -> Iterator[tuple[str, Column]]:
    value, nans = column, F.lit(0).cast("bigint")
    if has_nan(type_):  # Spark orders NaN above all numbers
        value, nans = F.when(~F.isnan(column), column), F.count_if(F.isnan(column))
    yield from zip(
        _STATS, (F.min(value), F.max(value), F.count_if(column.isNull()), nans), strict=True
    )


def _stats(found: pa.Table, number: int, type_: pa.DataType) -> pa.StructArray:
    low, high = (found[f"{name}{number}"].combine_chunks().cast(type_) for name in _STATS[:2])
    nulls, nans = (
        found[f"{name}{number}"].combine_chunks().cast(pa.int64()) for name in _STATS[2:]
    )
    return stats_of_values(low, high, nulls, nans)
