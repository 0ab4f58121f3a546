"""Writes with one new file for each file that is read, with its rows in their order.

A delete leaves the boxes of a clustered table as they are, since no file gets the rows of two.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.locations import bare
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.table.snapshot import Change

_HUGE = str(1 << 40)
"""Bytes."""
ONE_TASK_A_FILE = {
    "spark.sql.files.maxPartitionBytes": _HUGE,
    "spark.sql.files.openCostInBytes": _HUGE,
    "spark.sql.files.maxPartitionNum": str((1 << 31) - 1),
}
"""Settings with which Spark neither splits files nor reads two in a task."""
_TASK_OF = re.compile(r"(\d+)[^/]*\Z")
_FILE, _TASK, _COUNT = "file", "task", "count"


def count_matches(rows: DataFrame, where: str) -> dict[str, int]:
    """Return the number of rows for which *where* is true, by file.

    Args:
        rows: Rows that come from files without a shuffle.
        where: A condition in Spark's SQL.

    Returns:
        Counts above 0, by the file's URI without scheme and host.
    """
    found = to_arrow(rows.where(where).groupBy(F.input_file_name().alias(_FILE)).count())
    names = found[_FILE].to_pylist()
    return dict(zip(map(bare, names), found[_COUNT].to_pylist(), strict=True))


def with_layouts(change: Change, rows: DataFrame, layouts: Mapping[str, str | None]) -> Change:
    """Return *change* with each new file in the layout of the file that its rows come from.

    Args:
        change: A change whose files were written from *rows*.
        rows: Rows that come from files without a shuffle, read with ``ONE_TASK_A_FILE``.
        layouts: Layout of each file that was read, by its URI without scheme and host.
    """
    if not any(layouts.values()):
        return change
    found = rows.select(F.spark_partition_id().alias(_TASK), F.input_file_name().alias(_FILE))
    pairs = to_arrow(found.distinct())
    read_by: dict[int, set[str | None]] = {}
    for task, name in zip(pairs[_TASK].to_pylist(), pairs[_FILE].to_pylist(), strict=True):
        read_by.setdefault(task, set()).add(layouts.get(bare(name)))
    (staged,), (exchange,) = change.staged, change.exchanges
    of_files = [_only(read_by, path) for path in staged.files["path"].to_pylist()]
    at = staged.files.schema.get_field_index("layout")
    files = staged.files.set_column(at, "layout", pa.array(of_files, pa.string()))
    return replace(
        change,
        staged=(replace(staged, files=files),),
        exchanges=(replace(exchange, added=files),),
    )


def _only(read_by: Mapping[int, set[str | None]], path: str) -> str | None:
    """Return the layout of the files that the task read which wrote *path*, if it is one."""
    task = _TASK_OF.search(path)
    known = read_by.get(int(task[1]), set()) if task else set()
    return next(iter(known)) if len(known) == 1 else None
