"""Columns that cannot tell files apart, since all rows have the same value."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan
from zadapter.base.names import Parts
from zadapter.table.file_stats import column, live_rows


def alike(files: pa.Table, columns: Sequence[Parts]) -> tuple[Parts, ...]:
    """Return the columns of which all live rows have one value, or only nulls, for certain.

    Args:
        files: The file table, with stats of the columns.
        columns: The columns.
    """
    rows = live_rows(files)
    return tuple(parts for parts in columns if rows and _is_alike(files, parts, rows))


def _is_alike(files: pa.Table, parts: Parts, rows: int) -> bool:
    stats = column(files, parts)
    if stats is None:
        return False
    low, high, nulls, nans = (
        pc.struct_field(stats, name) for name in ("min", "max", "nulls", "nans")
    )
    if nulls.null_count:
        return False
    without = pc.sum(nulls).as_py() or 0
    if without:
        return bool(without == rows)
    if has_nan(low.type) and (nans.null_count or pc.sum(nans).as_py()):
        return False  # NaN is beyond the bounds
    if low.null_count or high.null_count:
        return False
    # bounds may be too wide, so equal ones have one value between them
    return len(pc.unique(pa.concat_arrays([low, high]))) == 1
