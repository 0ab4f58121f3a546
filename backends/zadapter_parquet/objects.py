"""A table's files on S3, GCS or Azure, through obstore."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import obstore
import pyarrow as pa
from obstore import exceptions
from obstore.store import from_url

from zadapter.errors import CorruptLogError, StoreError, UnsupportedError
from zadapter.locations import map_files
from zadapter_parquet.entries import LARGEST
from zadapter_parquet.paths import checked
from zadapter_parquet.stores import Found, Outcome

_REFUSED = (
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
    exceptions.NotSupportedError,
    NotImplementedError,
    PermissionError,
)


class ObjectFiles:
    """A table's files in an object store."""

    root = None

    def __init__(self, uri: str) -> None:
        """Open the table's root folder.

        Args:
            uri: ``s3://…``, ``gs://…`` or ``az://…``.

        Raises:
            UnsupportedError: There is no way to create a file at most once there.
        """
        self.uri = uri.rstrip("/")
        try:
            self._store = from_url(self.uri)
        except (exceptions.BaseError, ValueError) as error:
            raise UnsupportedError(
                f"{uri}: a Parquet table lies on local disk, HDFS, S3, GCS or Azure: {_said(error)}"
            ) from error

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file with all of *data* at once, unless there is one.

        Raises:
            StoreError: The store does not let us write, or not in this way.
        """
        with self._told(path, "created"):
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
        with self._told(path, "written"):
            obstore.put(self._store, checked(path), data)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; absent ones are fine.

        Raises:
            StoreError: The store does not let us delete, or does not answer.
        """
        for path in paths:
            with self._told(path, "deleted"), suppress(FileNotFoundError):
                obstore.delete(self._store, checked(path))

    @contextmanager
    def _told(self, path: str, what: str) -> Iterator[None]:
        """Turn what the store says into one of our errors."""
        try:
            yield
        except (exceptions.BaseError, OSError, NotImplementedError) as error:
            raise StoreError(f"{self.uri}/{path} cannot be {what}: {_said(error)}") from error

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none.

        Raises:
            CorruptLogError: It is larger than any file of the log.
        """
        try:
            with _reached():
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
        """Return the bytes of a file, None where there is none."""
        try:
            with _reached():
                return int(obstore.head(self._store, checked(path))["size"])
        except FileNotFoundError:
            return None

    def opened(self, path: str) -> pa.NativeFile:
        """Open a file, of which only what is asked for will be read."""
        return pa.PythonFile(obstore.open_reader(self._store, checked(path)), mode="r")

    def has_after(self, path: str) -> bool:
        """Tell whether a file of the same folder and ending comes after *path* by name."""
        folder, _, name = path.rpartition("/")
        ending = name[name.rindex(".") :]
        with _reached():
            later = obstore.list(self._store, prefix=folder, offset=path)
            return any(each["path"].endswith(ending) for batch in later for each in batch)

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all files within *folder*, however deep."""
        with _reached():
            for batch in obstore.list(self._store, prefix=folder or None):
                for each in batch:
                    modified = int(each["last_modified"].timestamp() * 1_000_000)
                    yield Found(path=each["path"], size=each["size"], modified=modified)

    def location(self, path: str) -> str:
        """Return where a file lies, unescaped."""
        return f"{self.uri}/{path}"

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to names that are free: the store copies them, several at once.

        Raises:
            StoreError: The store has not renamed all of them.
        """

        def moved(old: str) -> None:
            with self._told(old, "renamed"):
                obstore.rename(self._store, checked(old), checked(names[old]))

        deque(map_files(moved, list(names), self.uri), maxlen=0)

    def sync(self, paths: Iterable[str]) -> None:
        """Do nothing: the store has written what it has taken."""


@contextmanager
def _reached() -> Iterator[None]:
    """Turn what obstore raises into what Python raises when a store cannot be reached."""
    try:
        yield
    except FileNotFoundError:
        raise
    except exceptions.BaseError as error:
        raise ConnectionError(_said(error)) from error


def _said(error: Exception) -> str:
    """Return the first line of what obstore says."""
    return str(error).partition("\n")[0]
