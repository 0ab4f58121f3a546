"""Where a table lies: local disk, S3, GCS or Azure, through obstore."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote
from uuid import uuid4

import obstore
import pyarrow as pa
from obstore import exceptions
from obstore.store import LocalStore, ObjectStore, from_url

from zadapter.errors import CorruptLogError, UnknownTableError, UnsupportedError
from zadapter_parquet.entries import LARGEST
from zadapter_parquet.paths import HIDDEN, checked

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


class Outcome(Enum):
    """What became of an attempt to create a file."""

    CREATED = auto()
    EXISTS = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file that a listing shows."""

    path: str
    size: int
    modified: int
    """Microseconds since 1970, UTC."""


class Store(Protocol):
    """The files of one table, named relative to its root."""

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file with all of *data* at once, unless there is one: of many tries one wins."""

    def has(self, path: str) -> bool:
        """Tell whether there is such a file."""

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew."""

    def has_after(self, path: str) -> bool:
        """Tell whether a file of the same folder and ending comes after *path* by name."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; absent ones are fine."""

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all files within *folder*, however deep."""


class Files:
    """A table's files, through obstore."""

    def __init__(self, uri: str) -> None:
        """Open the table's root folder.

        Args:
            uri: ``file://…``, ``s3://…``, ``gs://…``, ``az://…``, or a path on local disk.

        Raises:
            UnknownTableError: There is no such folder on local disk.
            UnsupportedError: There is no way to create a file at most once there.
        """
        self.uri, self.root = uri.rstrip("/"), local_path(uri)
        if self.root is not None and not self.root.is_dir():
            raise UnknownTableError(f"{uri}: there is no such folder")
        self._store = _opened(self.uri, self.root)

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file with all of *data* at once, unless there is one.

        Raises:
            UnsupportedError: The store does not let us write, or not in this way.
        """
        try:
            obstore.put(self._store, checked(path), data, mode="create")
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileExistsError):
            return Outcome.EXISTS
        except (*_REFUSED, NotImplementedError) as error:
            raise UnsupportedError(f"{self.uri}/{path} cannot be created: {error}") from error
        except (exceptions.BaseError, OSError):
            return Outcome.UNKNOWN
        with suppress(OSError):  # it is there, come what may
            self._sync(path)
        return Outcome.CREATED

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none.

        Raises:
            CorruptLogError: It is larger than any file of the log.
        """
        if self.size(path) is None:
            return None
        with _reached():
            found = obstore.get(self._store, self._inside(path))
        if found.meta["size"] > LARGEST:
            raise CorruptLogError(f"{self.uri}/{path} is too large: {found.meta['size']} bytes")
        return bytes(found.bytes())

    def has(self, path: str) -> bool:
        """Tell whether there is such a file."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return the bytes of a file, None where there is none."""
        inside = self._inside(path)
        try:
            if self.root is not None:
                return (self.root / inside).stat().st_size
            with _reached():
                return int(obstore.head(self._store, inside)["size"])
        except (FileNotFoundError, NotADirectoryError):
            return None

    def opened(self, path: str) -> pa.NativeFile:
        """Open a file, of which only what is asked for will be read."""
        if self.root is not None:
            return pa.memory_map(str(self.root / self._inside(path)))
        return pa.PythonFile(obstore.open_reader(self._store, checked(path)), mode="r")

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew.

        Raises:
            UnsupportedError: The store does not let us write.
        """
        try:
            obstore.put(self._store, checked(path), data)
        except (*_REFUSED, OSError) as error:
            raise UnsupportedError(f"{self.uri}/{path} cannot be written: {error}") from error
        self._sync(path)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; absent ones are fine."""
        for path in paths:
            with suppress(FileNotFoundError):
                obstore.delete(self._store, self._inside(path))

    def has_after(self, path: str) -> bool:
        """Tell whether a file of the same folder and ending comes after *path* by name."""
        folder, _, name = path.rpartition("/")
        ending = name[name.rindex(".") :]
        if self.root is not None:
            with suppress(FileNotFoundError):
                found = (self.root / folder).iterdir()
                return any(each.name > name and each.suffix == ending for each in found)
            return False
        with _reached():
            later = obstore.list(self._store, prefix=folder, offset=path)
            return any(each["path"].endswith(ending) for batch in later for each in batch)

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all files within *folder*, however deep.

        Raises:
            CorruptLogError: A link leads out of the table.
        """
        if self.root is not None:
            yield from self._walked(folder)
            return
        with _reached():
            for batch in obstore.list(self._store, prefix=folder or None):
                for each in batch:
                    modified = int(each["last_modified"].timestamp() * 1_000_000)
                    yield Found(path=each["path"], size=each["size"], modified=modified)

    def _walked(self, folder: str) -> Iterator[Found]:
        """Yield what lies on local disk; obstore leaves out names such as ``part#1``."""
        root, seen = Path(str(self.root)), set[str]()
        for above, within, names in os.walk(root / folder, followlinks=True):
            real = os.path.realpath(above)
            if real in seen:  # a link in a circle
                within.clear()
                continue
            seen.add(real)
            for name in names:
                path = (Path(above).relative_to(root) / name).as_posix()
                state = (root / self._inside(path)).stat()
                modified = state.st_mtime_ns // 1_000
                yield Found(path=path, size=state.st_size, modified=modified)

    def location(self, path: str) -> str:
        """Return where a file lies, unescaped."""
        return f"{self.uri}/{path}" if self.root is None else str(self.root / path)

    def sync(self, paths: Iterable[str]) -> None:
        """Have local files written to disk, should the machine stop."""
        for path in paths:
            self._sync(path)

    def _sync(self, path: str) -> None:
        if self.root is None:
            return
        file = self.root / path
        for each in (file, file.parent):
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _inside(self, path: str) -> str:
        """Return *path* if no link leads out of the table.

        Raises:
            CorruptLogError: One does.
        """
        if self.root is not None:
            real = (self.root / checked(path)).resolve()
            if not real.is_relative_to(self.root.resolve()):
                raise CorruptLogError(f"{path} leads out of the table, to {real}")
        return checked(path)


@contextmanager
def _reached() -> Iterator[None]:
    """Turn what obstore raises into what Python raises when a store cannot be reached."""
    try:
        yield
    except exceptions.BaseError as error:
        raise ConnectionError(str(error)) from error


def probe(store: Store) -> None:
    """Find out whether of many who create a file one wins.

    Raises:
        UnsupportedError: The store overwrites: a commit could be lost.
    """
    path = f"{HIDDEN}/probe/{uuid4().hex}"
    outcomes = [store.create(path, str(number).encode()) for number in range(2)]
    held = store.read(path)
    store.delete([path])
    if outcomes != [Outcome.CREATED, Outcome.EXISTS] or held != b"0":
        raise UnsupportedError(
            "the store has no way to create a file unless it exists, so commits could be lost; "
            "keep the table on local disk, S3, GCS or Azure"
        )


def local_path(uri: str) -> Path | None:
    """Return the folder on local disk that *uri* names, None where it names another store."""
    if uri.startswith("file:"):
        # not urlparse, for which a # or ? that is not escaped ends the path
        path = re.sub(r"^file:(//[^/]*)?", "", uri)
        return Path(unquote(path))
    return Path(uri).absolute() if not _SCHEME.match(uri) else None


_REFUSED = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    PermissionError,
)


def _opened(uri: str, root: Path | None) -> ObjectStore:
    if root is not None:
        return LocalStore(root)
    try:
        return from_url(uri)
    except (exceptions.BaseError, ValueError) as error:
        raise UnsupportedError(
            f"{uri}: a Parquet table lies on local disk, S3, GCS or Azure: {error}"
        ) from error
