"""One sentence on an effect that may surprise: nothing gained, or more read than before."""

from collections.abc import Sequence

from zadapter.base.printable import listed

WORTH_NAMING = 0.05
"""Minimum share of the reads that a rewrite saves, or adds, to be named."""
_LEAST = 0.001
"""Difference between two shares that counts as none, however small they are."""
_AS_MUCH = "filters read about as much as before"
_HALF = 2
"""A rewrite joins files if it writes at most one for this number of files."""


def of_alike(alike: Sequence[str], columns: Sequence[str]) -> str:
    """Explain key columns without different values; empty: all have some.

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
    *,
    anew: bool,
) -> str:
    """Explain the shares that filters read before and after; empty: they need no note.

    Args:
        by_file: Shares of the rows in files that filters read.
        by_row_group: Shares of the rows in row groups; None: unknown.
        files_before: Number of files to be replaced.
        files_after: Number of files to be written.
        anew: Whether files that are clustered get new cuts.
    """
    files = _saved(*by_file)
    groups = None if by_row_group is None else _saved(*by_row_group)
    if not files and not groups:
        if _HALF * files_after <= files_before:
            return f"{_AS_MUCH}, from fewer files"
        return f"{_AS_MUCH}: new cuts do not make these files better" if anew else ""
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


def _saved(before: float, after: float) -> float:
    """Return what filters read less, negative if more, or 0 if it is not worth a word."""
    return before - after if abs(after - before) > max(WORTH_NAMING * before, _LEAST) else 0.0
