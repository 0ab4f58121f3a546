"""File names of log format 1.

In that format, data files and stats ended in ``.parquet``, and data files were directly below their
partition folders, so engines that walk a folder read rows twice. Each former name has one current
name. The log may still contain the former name, which stands for the current one even before the
file is renamed.
"""

import re

import pyarrow as pa
import pyarrow.compute as pc

from zadapter_parquet.format.paths import HIDDEN

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
