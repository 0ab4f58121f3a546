"""Locations of files: paths in logs, URIs for readers, comparisons of both, and the warehouse.

Paths on local disk are checked before a Spark session starts.
"""

import os
import os.path
import posixpath
import re
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from zadapter.base.interrupts import reraise
from zadapter.errors import UnknownTableError, VerificationError

R = TypeVar("R")

_AT_ONCE = 16
_NAME = r"(?!\.{1,2}(/|$))[a-zA-Z0-9_=.-]+"
_PLAIN = re.compile(rf"(?P<scheme>[a-zA-Z][a-zA-Z0-9+-]+:(//)?)?/?{_NAME}(/{_NAME})*")
"""A location that needs no escapes in a URI and contains no relative segments."""

STORE = r"^[a-zA-Z0-9+.-]+:(//[^/]*)?"
"""Scheme and host, which differ between spellings of a location: ``file:/a``, ``file:///a``."""

_ALIASES = {
    **dict.fromkeys(["s3", "s3a", "s3n"], "s3"),
    **dict.fromkeys(["gs", "gcs"], "gs"),
    **dict.fromkeys(["abfs", "abfss", "wasb", "wasbs", "az", "azure", "adl"], "azure"),
    **dict.fromkeys(["hdfs", "webhdfs", "swebhdfs"], "hdfs"),
}
"""Aliases of schemes: the store that each scheme refers to."""

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


def bare(uri: str) -> str:
    """Return a file's URI without scheme and host."""
    return re.sub(STORE, "", uri)


def path_of(uri: str) -> str:
    """Return the path of a file's URI: without scheme, host and escapes, for comparisons."""
    return bare(unescape_uri(uri))


@dataclass(frozen=True, slots=True)
class _Location:
    """A location in normalised form."""

    store: str
    name: str
    """Bucket, container or server; empty if unknown."""
    account: str
    """Azure account; empty if unknown."""
    folders: tuple[str, ...]


def within(uri: str, folder: str) -> bool:
    """Return whether a file certainly lies in a folder.

    Args:
        uri: URI of the file; links on local disk are followed.
        folder: Location, with or without a scheme, unescaped.
    """
    file, above = _parse_location(posixpath.dirname(unescape_uri(uri))), _parse_location(folder)
    same = file.store == above.store and (not above.name or file.name == above.name)
    inside = file.folders[: len(above.folders)] == above.folders
    return same and file.account == above.account and inside


def overlap(first: str, second: str) -> bool:
    """Return whether two folders may be equal, or one may lie in the other.

    Args:
        first: Location, with or without a scheme; links on local disk are followed.
        second: Another location, in the same form.
    """
    left, right = _parse_location(first), _parse_location(second)
    distinct = (
        left.store != right.store
        or (left.name and right.name and left.name != right.name)
        or (left.account and right.account and left.account != right.account)
    )
    shared = all(a == b for a, b in zip(left.folders, right.folders, strict=False))
    return shared and not distinct


def folders_below(location: str, folder: str) -> tuple[str, ...] | None:
    """Return the names of the folders from *folder* down to *location*, or None if it is elsewhere.

    Args:
        location: Location, with or without a scheme, unescaped; links on local disk are followed.
        folder: Another location, in the same form; none are between a folder and itself.
    """
    below, above = _parse_location(location), _parse_location(folder)
    same = (below.store, below.name, below.account) == (above.store, above.name, above.account)
    inside = below.folders[: len(above.folders)] == above.folders
    return below.folders[len(above.folders) :] if same and inside else None


def identify(location: str) -> Hashable:
    """Return a value that is equal for all spellings of a location.

    Args:
        location: Location, with or without a scheme, unescaped; links on local disk are followed.
    """
    return _parse_location(location)


def _parse_location(location: str) -> _Location:
    start = re.match(STORE, location)
    scheme, _, host = start[0].partition(":") if start else ("file", "", "")
    path = location[start.end() :] if start else location
    if scheme == "file":
        return _Location("file", "", "", _split_path(os.path.realpath(path)))
    store = _ALIASES.get(scheme, scheme)
    below, host = _split_path(posixpath.normpath(f"/{path}")), host.removeprefix("//")
    if store == "azure":  # container@account.dfs.core.windows.net
        name, _, account = host.partition("@")
        return _Location(store, name, account.partition(".")[0], below)
    # without user and port
    return _Location(store, host.rpartition("@")[2].partition(":")[0], "", below)


def _split_path(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name)


def is_relative(location: str) -> bool:
    """Return whether *location* is a relative path that needs no escapes in a URI."""
    plain = _PLAIN.fullmatch(location)
    return plain is not None and plain["scheme"] is None and not location.startswith("/")


def unescape_uri(uri: str) -> str:
    """Return the location of *uri*, unescaped as in Hadoop's ``Path``."""
    parsed = urlsplit(uri)
    host = f"//{parsed.netloc}" if parsed.netloc else ""
    return f"{parsed.scheme}:{host}{unquote(parsed.path)}"


def map_files(
    look: Callable[[str], R], files: Sequence[str], folder: str | None = None
) -> Generator[R, None, None]:
    """Yield the results of *look* for each of *files*, in order.

    Object stores have a high latency, so sixteen threads read from them at once. Local disks are
    read in a loop, since Python's threads take turns: 5 000 footers take 0.7 s in a loop, 1.3 s
    with two threads and 1.6 s with sixteen. Callers that stop early must close the generator, or
    the threads continue.

    Args:
        look: Reads a file and returns a result.
        files: URIs, or names within *folder*.
        folder: URI of a folder; None: *files* are URIs.
    """
    if urlsplit(folder or "".join(files[:1])).scheme in {"", "file"}:
        yield from map(look, files)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(look, files)


def reachable(jvm: Any, session: Any, location: str) -> str:
    """Return *location* with a scheme that Hadoop supports: ``s3a`` if ``s3`` is not configured.

    Args:
        jvm: The JVM.
        session: The Java session with the Hadoop settings.
        location: Path or URI.
    """
    if not location.startswith("s3://"):
        return location
    try:
        conf = session.sessionState().newHadoopConf()
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass("s3", conf)
    except Exception as error:  # noqa: BLE001 - the settings can name any class
        reraise(error)
        return location.replace("s3:", "s3a:", 1)
    return location


def check_present(sizes: Mapping[str, int], size_of: Callable[[str], int | None]) -> None:
    """Check that written files still exist, with the sizes to be committed.

    Clean-ups of other programs delete files that no log references. This check does not prevent a
    deletion between the check and the commit.

    Args:
        sizes: Bytes by URI.
        size_of: Returns the bytes of a file that is not on local disk; None: it is missing.

    Raises:
        VerificationError: A file is missing or has another size.
    """
    actual_sizes = map_files(
        lambda uri: _on_disk(uri) if _is_local(uri) else size_of(uri), list(sizes)
    )
    for (uri, size), actual in zip(sizes.items(), actual_sizes, strict=True):
        if actual != size:
            raise VerificationError(
                f"the new file {uri} {'is missing' if actual is None else 'has changed'}; nothing "
                "was committed. VACUUM and remove_orphan_files delete uncommitted files: set their "
                "retention longer than a rewrite takes, and retry"
            )


def _is_local(uri: str) -> bool:
    return urlsplit(uri).scheme == "file"


def _on_disk(uri: str) -> int | None:
    try:
        return Path(unquote(urlsplit(uri).path)).stat().st_size
    except FileNotFoundError:
        return None


def hadoop_qualifier(jvm: Any, session: Any) -> Callable[[str], str]:
    """Return a function from a location to its escaped URI with scheme.

    Args:
        jvm: The JVM.
        session: The Java session with the Hadoop settings.
    """
    conf = session.sessionState().newHadoopConf()

    def qualify(location: str) -> str:
        path = jvm.org.apache.hadoop.fs.Path(location)
        return str(path.getFileSystem(conf).makeQualified(path).toUri().toString())

    return qualify


def uris(locations: Iterable[str], qualified: Callable[[str], str]) -> list[str]:
    """Convert absolute locations to escaped URIs with schemes.

    Nearly all files have plain names, which are converted without a call to the JVM. A call takes
    milliseconds.

    Args:
        locations: Locations with or without a scheme, unescaped.
        qualified: Returns the URI of any location.
    """
    root: str | None = None
    escaped = []
    for location in locations:
        plain = _PLAIN.fullmatch(location)
        if plain and plain["scheme"]:
            escaped.append(location)
        elif plain and location.startswith("/"):
            root = root or qualified("/").rstrip("/")
            escaped.append(root + location)
        else:
            escaped.append(qualified(location))
    return escaped


@contextmanager
def remove_new_warehouse(spark: Any) -> Iterator[None]:
    """Remove Spark's warehouse folder if the block has created it, and it is empty.

    Spark creates it when its built-in catalog is first asked for a table, and again for the first
    table.

    Args:
        spark: The session.
    """
    location = urlsplit(str(spark.conf.get("spark.sql.warehouse.dir", "")))
    folder = Path(unquote(location.path)) if location.scheme in {"", "file"} else None
    is_new = folder is not None and not folder.exists()
    try:
        yield
    finally:
        if folder is not None and is_new:
            with suppress(OSError):  # it holds a table, or was never created
                folder.rmdir()


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
