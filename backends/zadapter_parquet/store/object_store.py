"""A table's files on S3, GCS or Azure, through obstore."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any
from urllib.parse import quote

import obstore
import pyarrow as pa
from obstore import exceptions
from obstore.store import from_url

from zadapter.base.java_errors import first_line
from zadapter.base.java_file import RangeFile
from zadapter.base.locations import STORE, map_files
from zadapter.errors import CorruptLogError, StoreError, UnknownTableError, UnsupportedError
from zadapter_parquet.format.entries import LARGEST
from zadapter_parquet.format.paths import checked
from zadapter_parquet.store.contract import Found, Outcome

_AT_ONCE = 1_000
"""Files that S3 deletes by one request."""
_DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError)
_REFUSED = (*_DENIED, exceptions.NotSupportedError, NotImplementedError, FileNotFoundError)
"""Errors after which a file has certainly not been created."""
_REASON = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.DOTALL)


class ObjectFiles:
    """A table's files in an object store."""

    root = None

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        """Open the table's root folder.

        Args:
            uri: ``s3://…``, ``gs://…`` or ``az://…``, unescaped.
            options: Of obstore's ``from_url``; without any, the environment decides.

        Raises:
            UnsupportedError: There is no way to create a file at most once there.
        """
        self.uri = uri.rstrip("/")
        try:
            self._store = from_url(_escaped(self.uri), **options or {})
        except (exceptions.BaseError, ValueError) as error:
            raise UnsupportedError(
                f"{uri}: a Parquet table lies on local disk, HDFS, S3, GCS or Azure: "
                f"{first_line(error)}"
            ) from error

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file with all of *data* at once, unless there is one.

        Raises:
            StoreError: The store does not let us write, or not in this way.
        """
        with self._asked(path, "created"):
            try:
                obstore.put(self._store, checked(path), data, mode="create")
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileExistsError):
                return Outcome.EXISTS
            except _REFUSED:
                raise
            except (exceptions.BaseError, OSError):
                return Outcome.UNKNOWN
            return Outcome.CREATED

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew.

        Raises:
            StoreError: The store does not let us write, or does not answer.
        """
        with self._asked(path, "written"):
            obstore.put(self._store, checked(path), data)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files, many at once; absent ones are fine.

        Raises:
            StoreError: The store does not let us delete, or does not answer.
        """
        rest = map(checked, paths)
        while batch := list(islice(rest, _AT_ONCE)):
            with self._asked(batch[0], "deleted"):
                self._delete(batch)

    def _delete(self, batch: list[str]) -> None:
        try:
            obstore.delete(self._store, batch)
        except FileNotFoundError:  # GCS and Azure stop at the first that is absent
            for path in batch:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, path)

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none.

        Raises:
            CorruptLogError: It is larger than any file of the log.
            StoreError: The store does not let us read, or does not answer.
        """
        with self._asked(path, "read"):
            try:
                found = obstore.get(self._store, checked(path))
                if found.meta["size"] <= LARGEST:
                    return bytes(found.bytes())
            except FileNotFoundError:
                return None
        raise CorruptLogError(f"{self.uri}/{path} is too large: {found.meta['size']} bytes")

    def has(self, path: str) -> bool:
        """Tell whether there is such a file."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return the bytes of a file, None where there is none.

        Raises:
            StoreError: The store does not let us read, or does not answer.
        """
        with self._asked(path, "read"):
            try:
                return int(obstore.head(self._store, checked(path))["size"])
            except FileNotFoundError:
                return None

    def opened(self, path: str) -> pa.NativeFile:
        """Open a file, of which only what is asked for will be read.

        Raises:
            FileNotFoundError: There is none.
            StoreError: The store does not let us read, or does not answer.
        """
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(f"{self.uri}/{path}")

        def fetch(start: int, length: int) -> bytes:
            with self._asked(path, "read"):
                return bytes(obstore.get_range(self._store, path, start=start, length=length))

        return pa.PythonFile(RangeFile(size, fetch), mode="r")

    def has_after(self, path: str) -> bool:
        """Tell whether a file of the same folder and ending comes after *path* by name."""
        folder, _, name = path.rpartition("/")
        ending = name[name.rindex(".") :]
        with self._asked(folder, "listed"):
            later = obstore.list(self._store, prefix=folder, offset=path)
            return any(each["path"].endswith(ending) for batch in later for each in batch)

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all files within *folder*, however deep."""
        with self._asked(folder, "listed"):
            for batch in obstore.list(self._store, prefix=folder or None):
                for each in batch:
                    modified = int(each["last_modified"].timestamp() * 1_000_000)
                    yield Found(path=each["path"], size=each["size"], modified=modified)

    def location(self, path: str) -> str:
        """Return where a file lies, unescaped."""
        return f"{self.uri}/{path}"

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to names that are free: the store copies them, several at once.

        Absent ones have been renamed before.

        Raises:
            StoreError: The store has not renamed all of them.
        """

        def moved(old: str) -> None:
            with self._asked(old, "renamed"), suppress(FileNotFoundError):
                obstore.rename(self._store, checked(old), checked(names[old]))

        deque(map_files(moved, list(names), self.uri), maxlen=0)

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: the store has written what it has taken."""

    @contextmanager
    def _asked(self, path: str, what: str) -> Iterator[None]:
        """Turn the store's errors into ours."""
        try:
            yield
        except (exceptions.BaseError, OSError, NotImplementedError) as error:
            where, reason = f"{self.uri}/{path}".rstrip("/"), _reason(error)
            if reason.startswith("NoSuchBucket"):
                raise UnknownTableError(f"{where}: there is no such bucket") from error
            advice = (
                "check the key and its rights"
                if isinstance(error, _DENIED)
                else "try again when the store answers"
            )
            raise StoreError(f"{where} cannot be {what}: {reason}; {advice}") from error


def _escaped(uri: str) -> str:
    """Return a location as a URL, whose ``%``, ``#`` and ``?`` mean something else."""
    start = re.match(STORE, uri)
    end = start.end() if start else 0
    return uri[:end] + quote(uri[end:])


def _reason(error: Exception) -> str:
    """Return the code and the text that a store answers, or what obstore says."""
    said = _REASON.search(str(error))
    return ": ".join(filter(None, said.groups())) if said else first_line(error)
