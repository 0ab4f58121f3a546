"""Where files lie: locations as logs write them, and the URIs that readers take."""

import os.path
import posixpath
import re
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

R = TypeVar("R")

_AT_ONCE = 16
_NAME = r"(?!\.{1,2}(/|$))[a-zA-Z0-9_=.-]+"
_PLAIN = re.compile(rf"(?P<scheme>[a-zA-Z][a-zA-Z0-9+-]+:(//)?)?/?{_NAME}(/{_NAME})*")
"""Nothing in it is written differently in a URI, or leads back."""


STORE = r"^[a-zA-Z0-9+.-]+:(//[^/]*)?"
"""What differs between ways to write the same file: ``file:/a`` and ``file:///a``."""


def bare(uri: str) -> str:
    """Return a file's URI without what differs between ways to write it."""
    return re.sub(STORE, "", uri)


def within(uri: str, folder: str) -> bool:
    """Tell whether a file lies in a folder.

    Args:
        uri: Of the file.
        folder: Location, with or without a scheme, unescaped.
    """
    return bare(unescaped(uri)).startswith(f"{bare(folder).rstrip('/')}/")


def overlap(one: str, other: str) -> bool:
    """Tell whether a folder is the other one, or may lie in it, however both are written.

    Args:
        one: Location, with or without a scheme; links on local disk are followed.
        other: Location, too.
    """
    left, right = _place(one), _place(other)
    if left[0] != right[0] or (left[1] and right[1] and left[1] != right[1]):
        return False
    return all(a == b for a, b in zip(left[2], right[2], strict=False))


def _place(location: str) -> tuple[str, str, list[str]]:
    """Return what kind of store it is, which one if that is said, and the folders below."""
    start = re.match(STORE, location)
    scheme, _, host = start[0].partition(":") if start else ("file", "", "")
    path = location[start.end() :] if start else location
    if scheme == "file":
        return scheme, "", [each for each in os.path.realpath(path).split("/") if each]
    kind = "s3" if scheme in {"s3a", "s3n"} else scheme
    below = [each for each in posixpath.normpath(path).split("/") if each]
    return kind, host.removeprefix("//"), below


def is_relative(location: str) -> bool:
    """Tell whether *location* is one within a folder that is written in a URI as it is."""
    plain = _PLAIN.fullmatch(location)
    return plain is not None and plain["scheme"] is None and not location.startswith("/")


def unescaped(uri: str) -> str:
    """Return the location that *uri* names, as Hadoop's ``Path`` writes it."""
    parsed = urlsplit(uri)
    host = f"//{parsed.netloc}" if parsed.netloc else ""
    return f"{parsed.scheme}:{host}{unquote(parsed.path)}"


def map_files(
    look: Callable[[str], R], files: Sequence[str], folder: str | None = None
) -> Generator[R, None, None]:
    """Yield what *look* finds in each of *files*, in order.

    Stores answer late, so of them sixteen are asked at once.  A disk does not, and Python's threads
    take turns: 5 000 footers take 0.7 s in a loop, 1.3 s by two threads and 1.6 s by sixteen.  Who
    does not want all of it closes the generator, or the threads go on.

    Args:
        look: Opens a file.
        files: URIs, or names within *folder*.
        folder: URI.
    """
    if urlsplit(folder or "".join(files[:1])).scheme in {"", "file"}:
        yield from map(look, files)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(look, files)


def by_hadoop(jvm: Any, session: Any) -> Callable[[str], str]:
    """Return what tells the escaped URI, with its scheme, of any location.

    Args:
        jvm: The JVM.
        session: Its session, whose Hadoop settings hold.
    """
    conf = session.sessionState().newHadoopConf()

    def qualified(location: str) -> str:
        path = jvm.org.apache.hadoop.fs.Path(location)
        return str(path.getFileSystem(conf).makeQualified(path).toUri().toString())

    return qualified


def uris(locations: Iterable[str], qualified: Callable[[str], str]) -> list[str]:
    """Return absolute locations as escaped URIs with their schemes.

    Of many files nearly all have plain names, and asking the JVM takes milliseconds for each.

    Args:
        locations: With or without a scheme, unescaped.
        qualified: Returns the URI of one location, whatever is in it.
    """
    root: str | None = None
    found = []
    for location in locations:
        plain = _PLAIN.fullmatch(location)
        if plain and plain["scheme"]:
            found.append(location)
        elif plain and location.startswith("/"):
            root = root or qualified("/").rstrip("/")
            found.append(root + location)
        else:
            found.append(qualified(location))
    return found
