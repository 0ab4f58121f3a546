"""Files of a table on S3, GCS or Azure, through obstore."""

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
from zadapter.base.locations import STORE, map_files
from zadapter.errors import CorruptLogError, StoreError, UnknownTableError, UnsupportedError
from zadapter.spark.jvm.java_file import RangeFile
from zadapter_parquet.format.entries import LARGEST
from zadapter_parquet.format.paths import check_path
from zadapter_parquet.store.contract import ListedFile, Outcome

_DELETE_BATCH = 1_000
"""Files that S3 deletes in one request."""
_DENIED = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError)
_REFUSED = (*_DENIED, exceptions.NotSupportedError, NotImplementedError, FileNotFoundError)
"""Errors after which a file was certainly not created."""
_REASON = re.compile(r"<Code>(.*?)</Code>(?:.*?<Message>(.*?)</Message>)?", re.DOTALL)


class ObjectFiles:
    """Files of a table in an object store."""

    root = None

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        """Open the table's root folder.

        Args:
            uri: ``s3://…``, ``gs://…`` or ``az://…``, unescaped.
            options: Options of obstore's ``from_url``; without options, the environment applies.

        Raises:
            UnsupportedError: obstore does not support the store or the options.
        """
        self.uri = uri.rstrip("/")
        try:
            self._store = from_url(_escape_uri(self.uri), **options or {})
        except (exceptions.BaseError, ValueError) as error:
            raise UnsupportedError(
                f"{uri} cannot be opened: {first_line(error)}; Parquet tables require local disk, "
                "HDFS, S3, GCS or Azure"
            ) from error

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file atomically unless it exists.

        Raises:
            StoreError: The store rejects writes, or does not support conditional ones.
        """
        with self._store_errors(path, "created"):
            try:
                obstore.put(self._store, check_path(path), data, mode="create")
            except (exceptions.AlreadyExistsError, exceptions.PreconditionError, FileExistsError):
                return Outcome.EXISTS
            except _REFUSED:
                raise
            except (exceptions.BaseError, OSError):
                return Outcome.UNKNOWN
            return Outcome.CREATED

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file.

        Raises:
            StoreError: The store rejects writes, or does not answer.
        """
        with self._store_errors(path, "written"):
            obstore.put(self._store, check_path(path), data)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files in batches; missing files are ignored.

        Raises:
            StoreError: The store rejects deletes, or does not answer.
        """
        remaining = map(check_path, paths)
        while batch := list(islice(remaining, _DELETE_BATCH)):
            with self._store_errors(batch[0], "deleted"):
                self._delete(batch)

    def _delete(self, batch: list[str]) -> None:
        try:
            obstore.delete(self._store, batch)
        except FileNotFoundError:  # GCS and Azure stop at the first missing file
            for path in batch:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, path)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist.

        Raises:
            CorruptLogError: The file is larger than any file of the log.
            StoreError: The store rejects reads, or does not answer.
        """
        with self._store_errors(path, "read"):
            try:
                response = obstore.get(self._store, check_path(path))
                if response.meta["size"] <= LARGEST:
                    return bytes(response.bytes())
            except FileNotFoundError:
                return None
        raise CorruptLogError(f"{self.uri}/{path} is too large: {response.meta['size']} bytes")

    def has(self, path: str) -> bool:
        """Return whether a file exists."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist.

        Raises:
            StoreError: The store rejects reads, or does not answer.
        """
        with self._store_errors(path, "read"):
            try:
                return int(obstore.head(self._store, check_path(path))["size"])
            except FileNotFoundError:
                return None

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access; only the requested ranges are read.

        Raises:
            FileNotFoundError: The file does not exist.
            StoreError: The store rejects reads, or does not answer.
        """
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(f"{self.uri}/{path}")

        def fetch(start: int, length: int) -> bytes:
            with self._store_errors(path, "read"):
                return bytes(obstore.get_range(self._store, path, start=start, length=length))

        return pa.PythonFile(RangeFile(size, fetch), mode="r")

    def has_after(self, path: str) -> bool:
        """Return whether a file in the same folder with the same suffix sorts after *path*."""
        folder, _, name = path.rpartition("/")
        suffix = name[name.rindex(".") :]
        with self._store_errors(folder, "listed"):
            batches = obstore.list(self._store, prefix=folder, offset=path)
            return any(meta["path"].endswith(suffix) for batch in batches for meta in batch)

    def list_files(self, folder: str = "") -> Iterator[ListedFile]:
        """Yield all files in *folder*, recursively."""
        with self._store_errors(folder, "listed"):
            for batch in obstore.list(self._store, prefix=folder or None):
                for meta in batch:
                    modified = int(meta["last_modified"].timestamp() * 1_000_000)
                    yield ListedFile(path=meta["path"], size=meta["size"], modified=modified)

    def location(self, path: str) -> str:
        """Return the location of a file, unescaped."""
        return f"{self.uri}/{path}"

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to unused paths by copying them, several in parallel.

        Missing files count as renamed.

        Raises:
            StoreError: The store has not renamed all files.
        """

        def rename(old: str) -> None:
            with self._store_errors(old, "renamed"), suppress(FileNotFoundError):
                obstore.rename(self._store, check_path(old), check_path(names[old]))

        deque(map_files(rename, list(names), self.uri), maxlen=0)

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: the store has persisted accepted files."""

    @contextmanager
    def _store_errors(self, path: str, action: str) -> Iterator[None]:
        """Translate errors of the store to ``StoreError`` or ``UnknownTableError``."""
        try:
            yield
        except (exceptions.BaseError, OSError, NotImplementedError) as error:
            location, reason = f"{self.uri}/{path}".rstrip("/"), _reason(error)
            if reason.startswith("NoSuchBucket"):
                raise UnknownTableError(f"{location}: bucket not found; check its name") from error
            advice = (
                "check the credentials and permissions"
                if isinstance(error, _DENIED)
                else "retry when the store responds"
            )
            raise StoreError(f"{location} cannot be {action}: {reason}; {advice}") from error


def _escape_uri(uri: str) -> str:
    """Escape a location to a URL, where ``%``, ``#`` and ``?`` have a special meaning."""
    match = re.match(STORE, uri)
    end = match.end() if match else 0
    return uri[:end] + quote(uri[end:])


def _reason(error: Exception) -> str:
    """Return the code and message of the store's answer, or obstore's message."""
    match = _REASON.search(str(error))
    return ": ".join(filter(None, match.groups())) if match else first_line(error)
