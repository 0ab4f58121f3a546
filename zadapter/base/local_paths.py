"""Check of paths on local disk, before a Spark session starts."""

import os
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from zadapter.errors import UnknownTableError

_BY_PATH = re.compile(r"(?i)(?:delta|iceberg|parquet)\.`(?P<path>(?:/|file:)(?:[^`]|``)+)`")
_FILE = re.compile(r"file:(//(localhost)?(?=/)|(?!//))(?P<path>.*)", re.DOTALL)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_PATTERN = re.compile(r"[*?\[{\\]")
"""Characters with which Hadoop may read a path as a pattern."""
VARIABLES = (
    *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME"),
    *("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_DIST_CLASSPATH"),
)
"""Variables that lead to a configuration of Hadoop or Spark outside this process."""
_FILE_SYSTEMS = re.compile(r"fs\.default|extraClassPath|spark\.jars|spark\.remote")
"""Settings with which a path without a scheme may not be on local disk."""


def check_local(tables: Iterable[str], conf: Mapping[str, str]) -> None:
    """Refuse tables that name missing paths on local disk.

    Spark resolves paths without a scheme in Hadoop's default file system. They are checked only if
    no configuration outside this process can name another one.

    Args:
        tables: Paths and identifiers.
        conf: Settings of the session that will start.

    Raises:
        UnknownTableError: A path does not exist.
    """
    for table in tables:
        paths = _local(table, by_default=_is_local_by_default(conf))
        if paths and not any(map(os.path.lexists, paths)):
            raise UnknownTableError(f"{table}: path not found; check its spelling")


def _local(table: str, *, by_default: bool) -> tuple[str, ...]:
    """Return the local path that *table* certainly is, in each way to read it; none: not local."""
    match = _BY_PATH.fullmatch(table)
    text = match["path"].replace("``", "`") if match else table
    if _PATTERN.search(text) or "\0" in text:
        return ()
    if written := _FILE.fullmatch(text):
        return (written["path"], unquote(written["path"]))
    plain = "/" in text and (match is not None or "`" not in text)
    return (text,) if by_default and plain and not _SCHEME.match(text) else ()


def _is_local_by_default(conf: Mapping[str, str]) -> bool:
    if any(name in os.environ for name in VARIABLES):
        return False
    if any(map(_FILE_SYSTEMS.search, (*conf, *conf.values()))):
        return False
    spec = find_spec("pyspark")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return not any(Path(folder, "conf").exists() for folder in folders)
