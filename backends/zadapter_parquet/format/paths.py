"""Paths within a table: their validation, and their names in log format 1.

In that format, data files and stats ended in ``.parquet``, and data files were directly below their
partition folders, so engines that walk a folder read rows twice. Each former name has one current
name. The log may still contain the former name, which stands for the current one even before the
file is renamed.
"""

import re
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.errors import CorruptLogError

HIDDEN = "_zadapter"
"""Folder of all files that zadapter writes; the underscore hides it from Spark and Hive."""

DATA = f"{HIDDEN}/data"
"""Folder of data files, with a folder for each write."""

ASIDE = f"{HIDDEN}/new"
"""Folder of temporary files, which are renamed when complete."""

_DECODINGS = 4
"""Number of decodings to check: a store or engine may decode a path more than once."""

_SUCCESSORS = (
    (rf"^({HIDDEN}/stats/.+)\.parquet$", r"\1.stats"),
    (rf"^({HIDDEN}/data/.*=[^/]*)/([^/]+)\.parquet$", r"\1/rows/\2.rows"),
    (rf"^({HIDDEN}/data/.+)\.parquet$", r"\1.rows"),
)
_FORMER = (
    (rf"^({HIDDEN}/stats/.+)\.stats$", r"\1.parquet"),
    (rf"^({HIDDEN}/data/.*=[^/]*)/rows/([^/]+)\.rows$", r"\1/\2.parquet"),
    (rf"^({HIDDEN}/data/.+)\.rows$", r"\1.parquet"),
)


def check_path(path: str) -> str:
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


def successor(path: str) -> str:
    """Return the current name of a file; other names are returned unchanged."""
    for pattern, name in _SUCCESSORS:
        path = re.sub(pattern, name, path)
    return path


def successors(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the current names of files."""
    former_names = pc.and_(pc.starts_with(paths, f"{HIDDEN}/"), pc.ends_with(paths, ".parquet"))
    if not pc.any(former_names).as_py():
        return paths
    for pattern, name in _SUCCESSORS:
        paths = pc.replace_substring_regex(paths, pattern, name)
    return paths


def former(path: str) -> str:
    """Return the former name of a file, the inverse of :func:`successor`."""
    for pattern, name in _FORMER:
        path = re.sub(pattern, name, path)
    return path
