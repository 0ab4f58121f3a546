"""Paths of files within a table, however they came into its log."""

from urllib.parse import unquote

from zadapter.errors import CorruptLogError

HIDDEN = "_zadapter"
"""The folder of everything that zadapter writes; Spark, Hive and DuckDB do not look into it."""

ASIDE = f"{HIDDEN}/new"
"""Where files are written that have not got their names yet."""

_DECODINGS = 4
"""Some store or engine may decode a path more than once."""


def checked(path: str) -> str:
    """Return *path* if it names something within the table, however often it is decoded.

    Args:
        path: Relative to the table's root, as the file is called: nothing in it is escaped.

    Raises:
        CorruptLogError: It leads, or might be taken to lead, somewhere else.
    """
    decoded = path
    for _ in range(_DECODINGS):
        _check(path, decoded)
        decoded = unquote(decoded)
    return path


def _check(path: str, decoded: str) -> None:
    parts = decoded.split("/")
    inside = decoded == path or not decoded.startswith("/")
    if not inside or ".." in parts or "\\" in decoded or "\0" in decoded:
        raise CorruptLogError(
            f"the path {path!r} may lead out of the table: a program that decodes it once more, or "
            "takes a backslash for a slash, would read another file; rename it"
        )
    if decoded == path and not all(part and part != "." for part in parts):
        raise CorruptLogError(f"{path!r} is no path within the table")
