"""Protocols of the stores that contain tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import pyarrow as pa

from zadapter.errors import StoreError, UnsupportedError
from zadapter_parquet.format.paths import ASIDE, HIDDEN


class Outcome(Enum):
    """Outcome of an attempt to create a file."""

    CREATED = auto()
    EXISTS = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True)
class ListedFile:
    """File in a listing."""

    path: str
    size: int
    modified: int
    """Microseconds since 1970, UTC."""


class Store(Protocol):
    """Files of one table, by paths relative to its root."""

    def create(self, path: str, data: bytes) -> Outcome:
        """Create a file atomically unless it exists: the first of concurrent attempts wins.

        Raises:
            StoreError: The store has certainly not created the file.
        """

    def has(self, path: str) -> bool:
        """Return whether a file exists."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file.

        Raises:
            StoreError: The store has not written the file, or not completely.
        """

    def has_after(self, path: str) -> bool:
        """Return whether a file in the same folder with the same suffix sorts after *path*."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing files are ignored."""

    def list_files(self, folder: str = "") -> Iterator[ListedFile]:
        """Yield all files in *folder*, recursively."""


class Files(Store, Protocol):
    """Files of one table, including data files."""

    @property
    def uri(self) -> str:
        """URI or path of the table's root folder."""

    @property
    def root(self) -> Path | None:
        """Path of the root folder on local disk; None for other stores."""

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if it does not exist."""

    def open_file(self, path: str) -> pa.NativeFile:
        """Open a file for random access; only the requested ranges are read."""

    def location(self, path: str) -> str:
        """Return the location of a file, unescaped."""

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to unused paths; missing files count as renamed.

        Args:
            names: New path of each file.

        Raises:
            StoreError: The store has not renamed all files.
        """

    def sync(self, paths: Iterable[str]) -> None:
        """Flush files to disk, so they survive a crash of the machine.

        Raises:
            FileNotFoundError: A file is missing.
        """


def check_writable(store: Store) -> None:
    """Check that the store accepts writes, before large writes.

    Raises:
        StoreError: The store rejects writes.
    """
    path = f"{ASIDE}/{uuid4().hex}"
    store.write(path, b"")
    store.delete([path])


def probe(store: Store) -> None:
    """Check that the store does not create an existing file again.

    Raises:
        StoreError: The store rejects writes, or does not answer.
        UnsupportedError: The store overwrites the file, so a commit could be lost.
    """
    path = f"{HIDDEN}/probe/{uuid4().hex}"
    outcomes = [store.create(path, str(number).encode()) for number in range(2)]
    held = store.read(path)
    store.delete([path])
    if Outcome.UNKNOWN in outcomes:
        raise StoreError("the store does not respond; nothing was committed. Retry")
    if outcomes != [Outcome.CREATED, Outcome.EXISTS] or held != b"0":
        raise UnsupportedError(
            "the store cannot create a file atomically unless it exists, so commits could be lost; "
            "use local disk, HDFS, S3, GCS or Azure"
        )
