"""Count the rows that match filters, by file and by row group, in one pass over the rows."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, or_

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import texts
from zadapter.base.names import NameParts, quote
from zadapter.base.ranks import Ints
from zadapter.errors import UnsupportedError
from zadapter.inspection.measure.table_access import Opened
from zadapter.inspection.reads import Footers
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from zadapter.predicates.predicate import columns as columns_of
from zadapter.spark.clone import UNPUSHED, set_all
from zadapter.spark.compat.spark_api import metadata_column, to_arrow
from zadapter.spark.jvm.gateway import analyzed_plan
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import items
from zadapter.spark.layout_expression import comparable, constant, descend, search_levels

_FILE, _POSITION, _PART = "file", "position", "part"
_ROW_INDEX, _POS = "row_index", "_pos"
_Typed = tuple[Column, str]
"""A column, and the type of constants that are compared with it."""
_COMPARED: Mapping[str, Callable[[Column, Column], Column]] = {
    "=": eq,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "<=>": lambda column, value: column.eqNullSafe(value),
}


def count_by_file(
    opened: Opened, files: pa.Table, read: Sequence[int], predicates: Sequence[Predicate]
) -> Ints:
    """Return how many rows match each filter in each of *files*, shape (files, filters).

    Parts of a filter that bounds cannot answer count as true for every row.

    Args:
        opened: The table.
        files: The files.
        read: Index of the files that are read; the others have no matches.
        predicates: The filters.
    """
    some = files.take(pa.array(read, pa.int64()))
    rows = _matching(opened, some, predicates)
    found = np.zeros((files.num_rows, len(predicates)), np.int64)
    if rows is not None:
        counts = _count_matches(rows, (_FILE,), len(predicates))
        found[np.asarray(read)[_number_files(opened, some, counts)]] = _array(
            counts, len(predicates)
        )
    return found


def count_by_row_group(
    opened: Opened, files: pa.Table, footers: Footers, predicates: Sequence[Predicate]
) -> Ints | None:
    """Return how many rows match each filter in each row group, shape (row groups, filters).

    Args:
        opened: The table.
        files: The files.
        footers: Row groups of some of these files, those of one file in their order.
        predicates: The filters.

    Returns:
        None if the format does not tell the position of a row in its file.
    """
    read = np.unique(footers.file_of)
    some = files.take(pa.array(read))
    rows = _matching(opened, some, predicates)
    if rows is None or _POSITION not in rows.columns:
        return None
    starts = _starts(footers)
    borders = np.unique(starts)
    counts = _count_matches(_number_parts(rows, borders), (_FILE, _PART), len(predicates))
    file = read[_number_files(opened, some, counts)]
    position = borders[counts[_PART].to_numpy() - 1]
    many = int(borders[-1]) + 1
    group = np.searchsorted(footers.file_of * many + starts, file * many + position, "right") - 1
    found = np.zeros((len(starts), len(predicates)), np.int64)
    np.add.at(found, group, _array(counts, len(predicates)))
    return found


def _starts(footers: Footers) -> Ints:
    """Return the position of the first row of each row group in its file."""
    rows = footers.table["rows"].to_numpy().astype(np.int64)
    before = np.cumsum(rows) - rows
    first = np.searchsorted(footers.file_of, footers.file_of)
    return np.asarray(before - before[first], np.int64)


def _matching(opened: Opened, files: pa.Table, predicates: Sequence[Predicate]) -> DataFrame | None:
    """Return the file of each row that matches a filter, its position, and which it matches."""
    if not files.num_rows or not predicates:
        return None
    rows = opened.backend.read(opened.snapshot, files)
    set_all(rows.sparkSession, UNPUSHED)  # the clone that zadapter reads in
    used = sorted({column for each in predicates for column in columns_of(each)})
    columns = {
        parts: (F.col(quote(parts)) if text == quote(parts) else F.hex(quote(parts)), type_)
        for parts, (text, type_) in zip(used, comparable(rows, used), strict=True)
    }
    hits = [_expression(each, columns, unknown=True) for each in predicates]
    position = _position(rows)
    return rows.select(
        F.input_file_name().alias(_FILE),
        *([] if position is None else [position.alias(_POSITION)]),
        *(hit.alias(str(number)) for number, hit in enumerate(hits)),
    ).where(reduce(or_, [F.col(str(number)) for number in range(len(hits))]))


def _position(rows: DataFrame) -> Column | None:
    """Return the position of each row in its file, or None if the rows do not tell it.

    Delta shows ``row_index`` of tables with deletion vectors only. Iceberg calls it ``_pos``.
    """
    jvm = java_classes(rows.sparkSession)
    output = analyzed_plan(rows).metadataOutput()
    types = {str(each.name()): each.dataType() for each in items(jvm, output)}
    if "_metadata" in types and _ROW_INDEX in list(types["_metadata"].fieldNames()):
        return metadata_column(rows, "_metadata")[_ROW_INDEX]
    return metadata_column(rows, _POS) if _POS in types else None


def _count_matches(rows: DataFrame, keys: Sequence[str], filters: int) -> pa.Table:
    counts = [F.count_if(F.col(str(number))).alias(str(number)) for number in range(filters)]
    return to_arrow(rows.groupBy(*keys).agg(*counts))


def _array(counts: pa.Table, filters: int) -> Ints:
    columns = [counts[str(number)].to_numpy() for number in range(filters)]
    return np.stack(columns, axis=1).astype(np.int64)


def _number_files(opened: Opened, files: pa.Table, counts: pa.Table) -> Ints:
    """Return the number of the file in each row of *counts*.

    Raises:
        UnsupportedError: Two files have the same location in different stores.
    """
    of_rows = opened.row_files(files)
    if of_rows.is_ambiguous:
        raise UnsupportedError(
            "files of different stores have the same path, so their rows are ambiguous; "
            "omit matches= (--matches)"
        )
    return np.array([of_rows.number(name) for name in counts[_FILE].to_pylist()], np.int64)


def _number_parts(rows: DataFrame, borders: Ints) -> DataFrame:
    """Add the number of *borders* that are not above a row's position, by binary search.

    One projection a level, since the expression of one projection would double with every level.
    """
    rows = rows.withColumn(_PART, F.lit(0))
    for cuts in search_levels([str(border) for border in borders]):
        part = descend(quote((_POSITION,)), cuts, "bigint", quote((_PART,)))
        rows = rows.withColumn(_PART, F.expr(part))
    return rows


def _expression(
    predicate: Predicate, columns: Mapping[NameParts, _Typed], *, unknown: bool
) -> Column:
    """Return a filter as an expression of Spark, with *unknown* for what bounds cannot answer."""
    match predicate:
        case And(parts):
            found = [_expression(part, columns, unknown=unknown) for part in parts]
            return reduce(and_, found, F.lit(True))  # noqa: FBT003
        case Or(parts):
            found = [_expression(part, columns, unknown=unknown) for part in parts]
            return reduce(or_, found, F.lit(False))  # noqa: FBT003
        case Not(part):
            return ~_expression(part, columns, unknown=not unknown)
        case Unknown():
            return F.lit(unknown)
        case Constant(value):
            return F.lit(value).cast("boolean")
        case leaf:
            return _leaf(leaf, columns[leaf.column])


def _leaf(leaf: Comparison | In | StartsWith | IsNull, column: _Typed) -> Column:
    value, type_ = column
    match leaf:
        case IsNull():
            return value.isNull()
        case StartsWith(_, prefix):
            return value.startswith(prefix)
        case In(_, listed, has_null):
            among = F.array_contains(_constants(listed, type_), value)
            return among | F.lit(None).cast("boolean") if has_null else among
        case Comparison(_, op, with_):
            return _COMPARED[op](value, F.get(_constants([with_], type_), F.lit(0)))


def _constants(values: Sequence[pa.Scalar], type_: str) -> Column:
    """Return values as an array of Spark's *type_*."""
    written = texts(pa.array(values, values[0].type)) if values else []
    return F.expr(constant(written, type_))
