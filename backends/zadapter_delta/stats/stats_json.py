"""Stats of staged files in the log's JSON (PROTOCOL.md, "Per-file Statistics").

Spark writes the JSON, as it does when Delta collects stats, so values have the same format.
"""

from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import TIMESTAMP, has_nan, has_zone, is_text, kind_of
from zadapter.base.names import NameParts
from zadapter.spark.jvm.spark_classes import select_texts
from zadapter.table.file_stats import both_zeros, column
from zadapter_delta.jvm import Jvm
from zadapter_delta.stats.add_files import with_bounds

_HIGHEST = "\U0010ffff"
_YEAR_1 = pa.scalar(-62_135_596_800_000_000, pa.timestamp("us"))
_YEAR_10_000 = pa.scalar(253_402_300_800_000_000, pa.timestamp("us"))
_LAST = pa.scalar(253_402_300_799_999, pa.timestamp("ms"))


def stats_json(
    jvm: Jvm,
    files: pa.Table,
    columns: Mapping[NameParts, NameParts],
    prefix: Mapping[NameParts, int],
) -> list[str]:
    """Return the stats of each file as a JSON string.

    Args:
        jvm: The session's JVM.
        files: File table with row counts and stats.
        columns: Physical names of the columns that the table collects stats for.
        prefix: Characters to keep of each column's string bounds.
    """
    low, high, nulls = (
        dict[NameParts, pa.Array](),
        dict[NameParts, pa.Array](),
        dict[NameParts, pa.Array](),
    )
    for parts, physical in columns.items():
        stats = column(files, parts)
        if stats is None:
            continue
        lows, highs, nulls[physical], nans, _ = stats.flatten()
        if has_nan(highs.type):
            lows, highs = _with_nan(*both_zeros(lows, highs), files["rows"], nulls[physical], nans)
        if with_bounds(lows.type):
            low[physical] = _round_down(lows, prefix[parts])
            high[physical] = _round_up(highs, prefix[parts])
    facts = {
        "numRecords": files["rows"].combine_chunks(),
        "minValues": _nest_arrays(low),
        "maxValues": _nest_arrays(high),
        "nullCount": _nest_arrays(nulls),
    }
    table = pa.table({name: array for name, array in facts.items() if array is not None})
    rows = select_texts(jvm.frame(table), ["to_json(struct(*, true AS tightBounds))"])
    return [str(row[0]) for row in rows.collect()]


def _with_nan(
    low: pa.Array, high: pa.Array, rows: pa.ChunkedArray, nulls: pa.Array, nans: pa.Array
) -> tuple[pa.Array, pa.Array]:
    """Return bounds in Delta's order, which places NaN above all other values.

    Both bounds are NaN if a file has no other values. If NaN is one of several values, or its count
    is unknown, there is no upper bound, because some readers do not know this order.
    """
    only_nan = pc.and_(pc.greater(nans, 0), pc.equal(pc.add(nans, nulls), rows.combine_chunks()))
    only_nan = only_nan.fill_null(False)  # noqa: FBT003
    largest = pa.scalar(nan, low.type)
    largest_number = pc.if_else(pc.equal(nans, 0), high, pa.scalar(None, high.type))
    return pc.if_else(only_nan, largest, low), pc.if_else(only_nan, largest, largest_number)


def _nest_arrays(arrays: Mapping[NameParts, pa.Array]) -> pa.Array | None:
    """Return arrays nested into structs by the parts of their names; None for no arrays."""
    children: dict[str, dict[NameParts, pa.Array]] = {}
    for (first, *rest), array in arrays.items():
        children.setdefault(first, {})[tuple(rest)] = array
    fields = [below[()] if () in below else _nest_arrays(below) for below in children.values()]
    return pa.StructArray.from_arrays(fields, names=list(children)) if children else None


def _round_down(low: pa.Array, prefix: int) -> pa.Array:
    """Truncate strings, and round timestamps down to milliseconds."""
    if is_text(low.type):
        return pc.utf8_slice_codeunits(low, 0, prefix)
    return _in_milliseconds(low, pc.floor_temporal) if kind_of(low.type) is TIMESTAMP else low


def _round_up(high: pa.Array, prefix: int) -> pa.Array:
    """Truncate strings to a larger string, and round timestamps up to milliseconds."""
    if is_text(high.type):
        return pa.array(_truncate_up(high.to_pylist(), prefix), pa.string())
    return _in_milliseconds(high, pc.ceil_temporal) if kind_of(high.type) is TIMESTAMP else high


def _in_milliseconds(timestamps: pa.Array, rounded: Callable[..., pa.Array]) -> pa.Array:
    """Format timestamps of the years 1 to 9999, in UTC if they have a time zone; others are null.

    In the last millisecond of 9999, upper bounds are truncated, as Delta truncates all of them:
    readers that follow the protocol add a millisecond, and some skip files without an upper bound.
    """
    zone = "Z" if has_zone(timestamps.type) else ""
    naive = timestamps.cast(pa.int64()).cast(pa.timestamp("us"))
    valid = pc.and_(pc.greater_equal(naive, _YEAR_1), pc.less(naive, _YEAR_10_000))
    in_range = pc.if_else(valid, naive, pa.scalar(None, naive.type))
    milliseconds = rounded(in_range, unit="millisecond").cast(pa.timestamp("ms"))
    return pc.strftime(
        pc.min_element_wise(milliseconds, _LAST, skip_nulls=False),
        f"%Y-%m-%dT%H:%M:%S{zone}",
    )


def _truncate_up(texts: Sequence[Any], prefix: int) -> list[str | None]:
    """Truncate strings after *prefix* characters and append the highest character.

    A string is truncated only before a lower character: one that continues with the highest
    character would be above the result.
    """
    truncated = []
    for text in texts:
        end = prefix
        while text is not None and text[end : end + 1] == _HIGHEST:
            end += 1
        truncated.append(text if text is None or len(text) <= end else text[:end] + _HIGHEST)
    return truncated
