"""Names that files had in tables of the log's first format.

Data files and stats ended in ``.parquet`` there, and data files lay right below the folders of
their partition, so engines that walk a folder read rows twice. Each such name has one successor.
The log may go on to say the former name; what it means is the successor, whatever the file is
called at the time.
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
    """Return the name of a file today; a name that was never changed is returned as it is."""
    for pattern, name in _SUCCESSORS:
        path = re.sub(pattern, name, path)
    return path


def successors(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the names of files today."""
    for pattern, name in _SUCCESSORS:
        paths = pc.replace_substring_regex(paths, pattern, name)
    return paths


def former(path: str) -> str:
    """Return the name that :func:`successor` returns *path* for."""
    for pattern, name in _FORMER:
        path = re.sub(pattern, name, path)
    return path
