"""One sentence on an effect that may surprise: nothing gained, or more read than before."""

from collections.abc import Sequence

from zadapter.base.printable import listed
from zadapter.planning.effect import change

_HALF = 2
"""A rewrite joins files if it writes at most one for so many."""


def of_alike(alike: Sequence[str], columns: Sequence[str]) -> str:
    """Return what key columns without different values mean; empty: all have some.

    Args:
        alike: The key columns of which all rows have one value, or null.
        columns: All key columns.
    """
    if not alike:
        return ""
    names = listed(alike)
    if len(alike) == len(columns):
        return (
            f"all rows have the same value of {names}, or null, so filters on it skip no file; "
            "choose other key columns"
        )
    return f"all rows have the same value of {names}, or null; leave it out of the key columns"


def of_effect(
    by_file: tuple[float, float],
    by_row_group: tuple[float, float] | None,
    files_before: int,
    files_after: int,
) -> str:
    """Return what the shares that filters read mean, before and after; empty: they are plain.

    Args:
        by_file: Shares of the rows in files that filters read.
        by_row_group: Shares of the rows in row groups; None: unknown.
        files_before: Number of files to be replaced.
        files_after: Number of files to be written.
    """
    files = change(*by_file)
    groups = None if by_row_group is None else change(*by_row_group)
    if not files and not groups:
        if _HALF * files_after <= files_before:
            return "filters read as much as before, from fewer files"
        return "filters read as much as before: new cuts do not make these files better"
    if files >= 0:
        worse = groups is not None and groups < 0
        return "filters skip more files, but read more row groups of the others" if worse else ""
    number = f"{files_after:,} file{'s' * (files_after != 1)}"
    if groups is None:
        return f"by file, filters read more: the rows are in {number}; row groups are not judged"
    if groups > 0:
        return (
            f"by file, filters read more, since the rows are in {number}; readers skip row groups "
            "within a file, and by row group they read less"
        )
    return "filters read more than before, by file and not less by row group"
