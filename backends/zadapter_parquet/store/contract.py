"""What a table needs of the store it lies in."""

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
        """Create a file with all of *data* at once, unless there is one: of many tries one wins.

        Raises:
            StoreError: The store certainly has not created it.
        """

    def has(self, path: str) -> bool:
        """Tell whether there is such a file."""

    def read(self, path: str) -> bytes | None:
        """Return what a file holds, None where there is none."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file, or write it anew.

        Raises:
            StoreError: The store has not written it, or not all of it.
        """

    def has_after(self, path: str) -> bool:
        """Tell whether a file of the same folder and ending comes after *path* by name."""

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; absent ones are fine."""

    def listed(self, folder: str = "") -> Iterator[Found]:
        """Yield all files within *folder*, however deep."""


class Files(Store, Protocol):
    """The files of one table, those with its rows among them."""

    @property
    def uri(self) -> str:
        """The table's root folder."""

    @property
    def root(self) -> Path | None:
        """The same, on local disk; None: it lies elsewhere."""

    def size(self, path: str) -> int | None:
        """Return the bytes of a file, None where there is none."""

    def opened(self, path: str) -> pa.NativeFile:
        """Open a file, of which only what is asked for will be read."""

    def location(self, path: str) -> str:
        """Return where a file lies, unescaped."""

    def move(self, names: Mapping[str, str]) -> None:
        """Rename files to names that are free; absent ones have been renamed before.

        Args:
            names: For each file its new name.

        Raises:
            StoreError: The store has not renamed all of them.
        """

    def sync(self, paths: Iterable[str]) -> None:
        """Have files written to disk, should the machine stop.

        Raises:
            FileNotFoundError: One is gone.
        """


def check_writable(store: Store) -> None:
    """Find out whether the store lets us write, before much is written.

    Raises:
        StoreError: It does not.
    """
    path = f"{ASIDE}/{uuid4().hex}"
    store.write(path, b"")
    store.delete([path])


def probe(store: Store) -> None:
    """Find out whether of many who create a file one wins.

    Raises:
        StoreError: The store does not let us write, or does not answer.
        UnsupportedError: The store overwrites: a commit could be lost.
    """
    path = f"{HIDDEN}/probe/{uuid4().hex}"
    outcomes = [store.create(path, str(number).encode()) for number in range(2)]
    held = store.read(path)
    store.delete([path])
    if Outcome.UNKNOWN in outcomes:
        raise StoreError("the store did not answer; nothing was committed, try again")
    if outcomes != [Outcome.CREATED, Outcome.EXISTS] or held != b"0":
        raise UnsupportedError(
            "the store has no way to create a file unless it exists, so commits could be lost; "
            "keep the table on local disk, HDFS, S3, GCS or Azure"
        )
