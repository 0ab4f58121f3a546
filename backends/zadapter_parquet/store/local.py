"""Files of a table on local disk.

A file is written and synced under a temporary name, then renamed, or linked by ``link(2)`` if it
must not exist yet. After a crash of the machine, it exists completely or not at all.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EMLINK, ENAMETOOLONG, ENOENT, ENOSPC, ENOTSUP, EPERM, EROFS
from pathlib import Path
from stat import S_ISREG
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa

from zadapter.errors import CorruptLogError, StoreError, UnknownTableError
from zadapter_parquet.format.entries import LARGEST
from zadapter_parquet.format.paths import ASIDE, checked
from zadapter_parquet.store.contract import Found, Outcome

_REFUSED = {EACCES, EDQUOT, EMLINK, ENAMETOOLONG, ENOENT, ENOSPC, ENOTSUP, EPERM, EROFS}
"""Error codes after which a link was certainly not created."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def local_path(uri: str) -> Path | None:
    """Return the local folder that *uri* names, or None if it names another store."""
    if uri.startswith("file:"):
        # not urlparse, which ends the path at an unescaped # or ?
        path = re.sub(r"^file:(//[^/]*)?", "", uri)
        return _normal(unquote(path))
    return _normal(uri) if not _SCHEME.match(uri) else None


def _normal(path: str) -> Path:
    """Return an absolute path without ``..``, as Hadoop does."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib follows links


class LocalFiles:
    """Files of a table on local disk."""

    def __init__(self, root: Path, *, make: bool = False) -> None:
        """Open the table's root folder.

        Args:
            root: The folder.
            make: Whether to create a missing folder.

        Raises:
            UnknownTableError: The folder does not exist.
        """
        self.uri, self.root = str(root), root
        if make:
            root.mkdir(parents=True, exist_ok=True)
        if not root.is_dir():
            raise UnknownTableError(f"{root}: folder not found")

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file atomically unless it exists.

        Raises:
            StoreError: The file cannot be created.
        """
        target = self._inside(path)
        with self._told(path, "created"):
            aside, above = self._aside(data), self._made(target.parent)
            outcome = _linked(aside, target)
        if outcome is Outcome.CREATED:
            with suppress(OSError):  # the file already exists
                _sync(above)
        return outcome

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file.

        Raises:
            StoreError: The file cannot be written.
        """
        target = self._inside(path)
        with self._told(path, "written"):
            aside, above = self._aside(data), self._made(target.parent)
            with _gone_after(aside):
                aside.replace(target)
            _sync(above)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing files are ignored.

        Raises:
            StoreError: A file cannot be deleted.
        """
        for path in paths:
            with self._told(path, "deleted"):
                self._inside(path).unlink(missing_ok=True)

    def _aside(self, data: bytes) -> Path:
        """Write a temporary file."""
        path = self.root / ASIDE / uuid4().hex
        self._made(path.parent)
        try:
            put(path, data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path

    def _made(self, folder: Path) -> list[Path]:
        """Create a folder; return the folders to sync after adding a file to it."""
        new = [each for each in (folder, *folder.parents) if not each.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        return [folder, *(each.parent for each in new)]

    @contextmanager
    def _told(self, path: str, what: str) -> Iterator[None]:
        """Translate ``OSError`` to ``StoreError``."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.root / path} cannot be {what}: {error.strerror}; free space or check the "
                "permissions, and retry"
            ) from error

    def has(self, path: str) -> bool:
        """Return whether a file exists."""
        return self.size(path) is not None

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist.

        Raises:
            CorruptLogError: The path is a folder, a pipe or a device.
        """
        place = self._inside(path)
        try:
            state = place.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not S_ISREG(state.st_mode):
            # reading a pipe would block
            raise CorruptLogError(f"{place} is not a regular file; remove it")
        return state.st_size

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist.

        Raises:
            CorruptLogError: The file is larger than any file of the log, or not regular.
        """
        size = self.size(path)
        if size is not None and size > LARGEST:
            raise CorruptLogError(f"{self.uri}/{path} is too large: {size} bytes")
        with suppress(FileNotFoundError, NotADirectoryError):
            return self._inside(path).read_bytes()
        return None

    def opened(self, path: str) -> pa.NativeFile:
        """Open a file for random access by mapping it into memory."""
        self.size(path)
        return pa.memory_map(str(self._inside(path)))

    def has_after(self, path: str) -> bool:
        """Return whether a file in the same folder with the same suffix sorts after *path*."""
        sought = self._inside(path)
        with suppress(FileNotFoundError):
            every = sought.parent.iterdir()
            return any(e.name > sought.name and e.suffix == sought.suffix for e in every)
        return False

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all regular files in *folder*, recursively.

        Raises:
            CorruptLogError: A link leads out of the table.
            StoreError: A folder cannot be listed.
        """
        seen = set[str]()
        start = self.root / folder
        for above, within, names in os.walk(start, onerror=_unread, followlinks=True):
            real = os.path.realpath(above)
            if real in seen:  # a cycle of links
                within.clear()
                continue
            seen.add(real)
            below = Path(above).relative_to(self.root).as_posix()
            paths = (name if below == "." else f"{below}/{name}" for name in names)
            yield from filter(None, map(self._found, paths))

    def _found(self, path: str) -> Found | None:
        """Return the listing of a regular file, or None for other paths."""
        with suppress(FileNotFoundError):  # deleted since, as temporary files are
            state = self._inside(path).stat()
            if S_ISREG(state.st_mode):
                return Found(path=path, size=state.st_size, modified=state.st_mtime_ns // 1_000)
        return None

    def location(self, path: str) -> str:
        """Return the location of a file, unescaped."""
        return str(self.root / path)

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to unused paths, and sync the folders; missing files count as renamed.

        Raises:
            StoreError: A file cannot be renamed.
        """
        changed: set[Path] = set()
        for old, new in names.items():
            source, target = self._inside(old), self._inside(new)
            with self._told(old, "renamed"), suppress(FileNotFoundError):
                changed.update(self._made(target.parent))
                os.replace(source, target)  # noqa: PTH105 - a failpoint of tests
                changed.add(source.parent)
        with self._told("", "written"):
            _sync(sorted(changed))

    def sync(self, paths: Iterable[str]) -> None:
        """Flush files that Spark has written to disk, so they survive a crash of the machine.

        Raises:
            FileNotFoundError: A file is missing.
        """
        files = [self.root / path for path in paths]
        above = {each for file in files for each in file.parents if each.is_relative_to(self.root)}
        _sync([*files, *sorted(above, reverse=True)])

    def _inside(self, path: str) -> Path:
        """Return the path of a file after checking that links stay within the table.

        Raises:
            CorruptLogError: A link leads out of the table.
        """
        place = self.root / checked(path)
        real, root = os.path.realpath(place), os.path.realpath(self.root)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise CorruptLogError(f"{path} links to {real}, outside the table; remove the link")
        return place


def _unread(error: OSError) -> None:
    """Handle an error of a listing; missing folders are ignored.

    Raises:
        StoreError: The folder exists.
    """
    if not isinstance(error, FileNotFoundError):
        raise StoreError(
            f"{error.filename} cannot be listed: {error.strerror}; check the permissions, and retry"
        ) from error


def put(path: Path, data: bytes) -> None:
    """Create a file and flush it to disk."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _linked(aside: Path, target: Path) -> Outcome:
    """Link a temporary file to its path unless that exists, and delete it."""
    with _gone_after(aside):
        try:
            os.link(aside, target)
        except FileExistsError:
            return Outcome.EXISTS
        except OSError as error:
            if error.errno in _REFUSED:
                raise
            return Outcome.UNKNOWN  # network file systems may have created it
        return Outcome.CREATED


@contextmanager
def _gone_after(aside: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
