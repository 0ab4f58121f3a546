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

from zadapter.base.java_errors import checksum_file
from zadapter.errors import CorruptLogError, StoreError, UnknownTableError
from zadapter_parquet.format.entries import LARGEST
from zadapter_parquet.format.paths import ASIDE, check_path
from zadapter_parquet.store.contract import ListedFile, Outcome

_REFUSED = {EACCES, EDQUOT, EMLINK, ENAMETOOLONG, ENOENT, ENOSPC, ENOTSUP, EPERM, EROFS}
"""Error codes after which a link was certainly not created."""
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def local_path(uri: str) -> Path | None:
    """Return the local folder that *uri* names, or None if it names another store."""
    if uri.startswith("file:"):
        # Spark reads a path as it is written, even a # or ?, while others write a URI
        path = _normal(re.sub(r"^file:(//[^/]*)?", "", uri))
        return path if path.exists() else _normal(unquote(str(path)))
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
            raise UnknownTableError(f"{root}: folder not found; check the path")

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file atomically unless it exists.

        Raises:
            StoreError: The file cannot be created.
        """
        target = self._inside(path)
        with self._store_errors(path, "created"):
            temporary, folders = self._write_temporary(data), self._make_folder(target.parent)
            outcome = _link(temporary, target)
        if outcome is Outcome.CREATED:
            with suppress(OSError):  # the file already exists
                _sync(folders)
        return outcome

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file.

        Raises:
            StoreError: The file cannot be written.
        """
        target = self._inside(path)
        with self._store_errors(path, "written"):
            temporary, folders = self._write_temporary(data), self._make_folder(target.parent)
            with _delete_after(temporary):
                temporary.replace(target)
            _sync(folders)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing files are ignored.

        Raises:
            StoreError: A file cannot be deleted.
        """
        for path in paths:
            with self._store_errors(path, "deleted"):
                remove(self._inside(path))
                self._inside(path).unlink(missing_ok=True)

    def _write_temporary(self, data: bytes) -> Path:
        path = self.root / ASIDE / uuid4().hex
        self._make_folder(path.parent)
        try:
            put(path, data)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        return path

    def _make_folder(self, folder: Path) -> list[Path]:
        """Create a folder; return the folders to sync after adding a file to it."""
        missing = [parent for parent in (folder, *folder.parents) if not parent.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        return [folder, *(parent.parent for parent in missing)]

    @contextmanager
    def _store_errors(self, path: str, action: str) -> Iterator[None]:
        """Translate ``OSError`` to ``StoreError``."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{self.root / path} cannot be {action}: {error.strerror}; free space or check the "
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
        file = self._inside(path)
        try:
            state = file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not S_ISREG(state.st_mode):
            # reading a pipe would block
            raise CorruptLogError(f"{file} is not a regular file; remove it")
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

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access by mapping it into memory."""
        self.size(path)
        return pa.memory_map(str(self._inside(path)))

    def has_after(self, path: str) -> bool:
        """Return whether a file in the same folder with the same suffix sorts after *path*."""
        target = self._inside(path)
        with suppress(FileNotFoundError):
            siblings = target.parent.iterdir()
            return any(e.name > target.name and e.suffix == target.suffix for e in siblings)
        return False

    def list_files(self, folder: str = "") -> Iterator[ListedFile]:
        """Yield all regular files in *folder*, recursively.

        Raises:
            CorruptLogError: A link leads out of the table.
            StoreError: A folder cannot be listed.
        """
        seen = set[str]()
        start = self.root / folder
        for parent, subfolders, names in os.walk(
            start, onerror=_raise_unless_missing, followlinks=True
        ):
            real = os.path.realpath(parent)
            if real in seen:  # a cycle of links
                subfolders.clear()
                continue
            seen.add(real)
            relative = Path(parent).relative_to(self.root).as_posix()
            paths = (name if relative == "." else f"{relative}/{name}" for name in names)
            yield from filter(None, map(self._listing, paths))

    def _listing(self, path: str) -> ListedFile | None:
        """Return the listing of a regular file, or None for other paths."""
        with suppress(FileNotFoundError):  # deleted since, as temporary files are
            state = self._inside(path).stat()
            if S_ISREG(state.st_mode):
                return ListedFile(
                    path=path, size=state.st_size, modified=state.st_mtime_ns // 1_000
                )
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
            with self._store_errors(old, "renamed"), suppress(FileNotFoundError):
                changed.update(self._make_folder(target.parent))
                remove(source)
                source.replace(target)
                changed.add(source.parent)
        with self._store_errors("", "written"):
            _sync(sorted(changed))

    def sync(self, paths: Iterable[str]) -> None:
        """Flush files that Spark has written to disk, so they survive a crash of the machine.

        Raises:
            FileNotFoundError: A file is missing.
        """
        files = [self.root / path for path in paths]
        folders = {
            folder for file in files for folder in file.parents if folder.is_relative_to(self.root)
        }
        _sync([*files, *sorted(folders, reverse=True)])

    def _inside(self, path: str) -> Path:
        """Return the path of a file after checking that links stay within the table.

        Raises:
            CorruptLogError: A link leads out of the table.
        """
        target = self.root / check_path(path)
        real, root = os.path.realpath(target), os.path.realpath(self.root)
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise CorruptLogError(f"{path} links to {real}, outside the table; remove the link")
        return target


def _raise_unless_missing(error: OSError) -> None:
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


def _link(temporary: Path, target: Path) -> Outcome:
    """Link a temporary file to its path unless that exists, and delete it."""
    with _delete_after(temporary):
        try:
            os.link(temporary, target)
        except FileExistsError:
            return Outcome.EXISTS
        except OSError as error:
            if error.errno in _REFUSED:
                raise
            return Outcome.UNKNOWN  # network file systems may have created it
        return Outcome.CREATED


@contextmanager
def _delete_after(temporary: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync(paths: Iterable[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(file: Path) -> None:
    """Delete the checksum file of a file that is about to be deleted or renamed, if there is one.

    Left behind, it would not match a file that another program puts there.
    """
    path = file.with_name(checksum_file(file.name))
    if path.exists():
        path.unlink(missing_ok=True)
