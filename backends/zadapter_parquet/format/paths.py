"""Paths within a table, and their validation."""

from urllib.parse import unquote

from zadapter.errors import CorruptLogError

HIDDEN = "_zadapter"
"""Folder of all files that zadapter writes; the underscore hides it from Spark and Hive."""

DATA = f"{HIDDEN}/data"
"""Folder of data files, with a folder for each write."""

ASIDE = f"{HIDDEN}/new"
"""Folder of temporary files, which are renamed when complete."""

_DECODINGS = 4
"""Number of decodings to check: a store or engine may decode a path more than once."""


def checked(path: str) -> str:
    """Return *path* after checking that it stays within the table, even if it is decoded again.

    Args:
        path: Path relative to the table's root, unescaped.

    Raises:
        CorruptLogError: The path leads out of the table, or a program may read it so.
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
            f"the path {path!r} may lead outside the table: a program that decodes it again, or "
            "reads a backslash as a slash, would open another file; rename the file"
        )
    if decoded == path and not all(part and part != "." for part in parts):
        raise CorruptLogError(f"{path!r} is not a path within the table; restore the log")
