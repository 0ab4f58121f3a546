"""Parquet footers: row counts and reliable bounds of files.

A footer's bounds are used only if every row group with values has both min and max. A missing null
count means unknown, not 0. Some writers exclude NaN from bounds (parquet.thrift, ``Statistics``).
Versions of parquet-java that do not count NaN order it as the largest value
(``PrimitiveComparator``, ``DoubleStatistics``). For them, a numeric max means that there is no NaN,
a NaN max leaves the min valid, and a NaN min means that all values are NaN.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter.base.key_types import has_nan, is_bytes, is_key
from zadapter.base.names import leaves
from zadapter.table.file_stats import Bounds, column_type, schema, structs
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ColumnFooter:
    """Stats of one column in a footer; None: missing or unreliable.

    A ``max`` of NaN is not a bound, and means that NaN may be present. If NaN values are counted,
    the bounds are those of the other values.
    """

    min: Any
    max: Any
    nulls: int | None
    nans: int | None = None


LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""Footer keys of Spark for dates and timestamps outside the proleptic Gregorian calendar."""
_TIMES = {"DATE", "TIMESTAMP"}
_FLOATING = {"FLOAT", "DOUBLE"}
_NAN_IS_LARGEST = re.compile(r"parquet-mr version 1\.1[0-7]\.")
_UNKNOWN = ColumnFooter(None, None, None)


@dataclass(frozen=True, slots=True)
class Footer:
    """One file's footer.

    Attributes:
        size: Bytes of the file.
        rows: Rows of the file.
        row_groups: Rows of each row group.
        columns: Stats by the column's path in the file, parts joined by dots.
    """

    size: int
    rows: int
    row_groups: tuple[int, ...]
    columns: Mapping[str, ColumnFooter]


def file_table(
    snapshot: Snapshot, footers: Mapping[str, Footer], names: Collection[str] | None = None
) -> pa.Table:
    """Return a file table with size, rows, and stats of every column with one value per row.

    Partition values are left to the format.

    Args:
        snapshot: The table's version, for its columns and their names in the files.
        footers: Footers by path.
        names: The outermost columns whose stats are wanted; None: all.
    """
    parsed = list(footers.values())
    columns = {
        parts: type_
        for parts, type_ in leaves(snapshot.schema)
        if parts[0] not in snapshot.partition
        and is_key(type_)
        and (names is None or parts[0] in names)
    }
    stats = []
    paths = {p: ".".join(snapshot.physical.get(p, p)) for p, _ in leaves(snapshot.schema)}
    ambiguous = {path for path, count in Counter(paths.values()).items() if count > 1}
    for parts, type_ in columns.items():
        # a column "a.b" and the field b of a share a path, so its stats are ambiguous
        path = paths[parts]
        known = [{} if path in ambiguous else footer.columns for footer in parsed]
        stats.append(_stats([of_file.get(path, _UNKNOWN) for of_file in known], type_))
    table_schema = schema(columns, {})
    arrays = {
        "path": list(footers),
        "size": [footer.size for footer in parsed],
        "rows": [footer.rows for footer in parsed],
        "partition": structs([], table_schema.field("partition").type, len(parsed)),
        "stats": structs(stats, table_schema.field("stats").type, len(parsed)),
    }
    return pa.table(
        [arrays.get(field.name, pa.nulls(len(parsed), field.type)) for field in table_schema],
        schema=table_schema,
    )


def _stats(columns: Sequence[ColumnFooter], type_: pa.DataType) -> pa.StructArray:
    low, high = to_array([f.min for f in columns], type_), to_array([f.max for f in columns], type_)
    if low is None or high is None:
        low = high = pa.nulls(len(columns), type_)
    nulls = pa.array([f.nulls for f in columns], pa.int64())
    nans = pa.array([f.nans for f in columns], pa.int64())
    best = pc.if_else(_whole(type_, nans), int(Bounds.EXACT), int(Bounds.WIDENED))
    flags = pc.if_else(low.is_valid(), best, int(Bounds.UNKNOWN)).cast(pa.int8())
    arrays = [low, high, nulls, nans, flags]
    return pa.StructArray.from_arrays(arrays, fields=list(column_type(type_)))


def _whole(type_: pa.DataType, nans: pa.Array) -> pa.Array:
    """Return where bounds are values of the file; texts may be truncated, NaN may be excluded."""
    if has_nan(type_):
        return pc.equal(nans, 0).fill_null(False)  # noqa: FBT003
    return pa.array([not is_bytes(type_)] * len(nans))


def to_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array | None:
    """Return values of a footer as an array, or None if the file has another type."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
        return None


def parse(size: int, metadata: pq.FileMetaData) -> Footer:
    """Convert the footer of a file of *size* bytes."""
    return _parse_groups(size, metadata, range(metadata.num_row_groups))


def row_groups(size: int, metadata: pq.FileMetaData) -> list[Footer]:
    """Convert the footer of a file of *size* bytes to one footer per row group."""
    return [_parse_groups(size, metadata, [number]) for number in range(metadata.num_row_groups)]


def _parse_groups(size: int, metadata: pq.FileMetaData, numbers: Iterable[int]) -> Footer:
    groups = [metadata.row_group(number) for number in numbers]
    rows = sum(group.num_rows for group in groups)
    columns: dict[str, ColumnFooter] = {}
    legacy = any(key in (metadata.metadata or {}) for key in LEGACY)
    nan_is_largest = _NAN_IS_LARGEST.match(metadata.created_by or "") is not None
    for i in range(metadata.num_columns):
        column = metadata.schema.column(i)
        chunks = [(group.column(i).statistics, group.num_rows) for group in groups]
        merged = _merge_chunks(
            chunks, nan_on_top=nan_is_largest and column.physical_type in _FLOATING
        )
        if legacy and column.logical_type.type in _TIMES:
            merged = ColumnFooter(None, None, merged.nulls)
        # a dot within a name can make two paths equal: neither has known stats
        columns[column.path] = _UNKNOWN if column.path in columns else merged
    return Footer(size, rows, tuple(g.num_rows for g in groups), columns)


def _merge_chunks(chunks: Sequence[tuple[Any, int]], *, nan_on_top: bool) -> ColumnFooter:
    counts = [s.null_count if s is not None and s.has_null_count else None for s, _ in chunks]
    bounds = list(_bounds(chunks, counts, nan_on_top=nan_on_top))
    nulls = _total(counts)
    if None in bounds:
        return ColumnFooter(None, None, nulls)
    non_empty = [bound for bound in bounds if bound]
    lows = [low for low, _ in non_empty if not _is_nan(low)]
    highs = [high for _, high in non_empty if not _is_nan(high)]
    entries = zip(bounds, chunks, counts, strict=True)
    nans = _total([_nans(bound, rows, null) for bound, (_, rows), null in entries])
    return ColumnFooter(
        min=min(lows, default=None),
        max=nan if nans is None else max(highs, default=None),
        nulls=nulls,
        nans=nans if nan_on_top else None,
    )


def _total(counts: Sequence[int | None]) -> int | None:
    present = [count for count in counts if count is not None]
    return sum(present) if len(present) == len(counts) else None


def _nans(bound: tuple[Any, ...] | None, rows: int, nulls: int | None) -> int | None:
    """Count the NaN values of a row group if NaN is ordered as largest: none, all or unknown."""
    low, high = bound or (None, None)
    if not _is_nan(high):
        return 0
    return rows - nulls if _is_nan(low) and nulls is not None else None


def _bounds(
    chunks: Sequence[tuple[Any, int]], counts: Sequence[int | None], *, nan_on_top: bool
) -> Iterator[tuple[Any, ...] | None]:
    """Yield each chunk's bounds: () if it has only nulls, None if they are unknown."""
    for (stats, rows), nulls in zip(chunks, counts, strict=True):
        if nulls == rows:
            yield ()
            continue
        low, high = _pair(stats)
        has_bounds = low is not None and high is not None
        usable = has_bounds and (nan_on_top or not (_is_nan(low) or _is_nan(high)))
        yield (low, high) if usable else None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and isnan(value)


def _pair(stats: Any) -> tuple[Any, Any]:
    try:
        return (stats.min, stats.max) if stats is not None and stats.has_min_max else (None, None)
    except (NotImplementedError, ValueError, OverflowError):
        return None, None  # a type or a year that Python cannot represent
