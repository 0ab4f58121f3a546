"""Protocols of backends that find the files of writes whose process has died."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeGuard

from zadapter.backend.contract import Backend
from zadapter.layout.store import Store
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import StagedFile, StagedWrite


class SideFiles(Store, Protocol):
    """Small files beside a table, and the files of writes that were not committed.

    Threads may share it.
    """

    @property
    def root(self) -> str:
        """Location of the folder below which writes stage their files today."""

    def listed(self, folder: str) -> Mapping[str, int]:
        """Return when each file in a folder was modified, by name; none if it does not exist.

        The times are milliseconds since 1970, by the store's clock.
        """

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def staged(self, write: StagedWrite) -> Sequence[StagedFile]:
        """Return all files of a write, committed or not, by listing the store."""

    def is_named(self, write: StagedWrite, after: int | None, until: int | None) -> bool:
        """Return whether a version that is kept names files of a write.

        Args:
            write: The write.
            after: A version before the write; None: the table had none.
            until: The newest version; None: the table has none.

        Raises:
            Exception: What these versions name is unknown.
        """

    def remove(self, write: StagedWrite) -> None:
        """Delete all files of a write, which was certainly not committed."""


class RecoverableBackend(Backend, Protocol):
    """A backend that names files by the id of their write (``Encoding.write``)."""

    def side_files(self, snapshot: Snapshot) -> SideFiles:
        """Return the files beside the table."""


def is_recoverable(backend: Backend) -> TypeGuard[RecoverableBackend]:
    """Return whether the backend finds the files of writes whose process has died."""
    return backend.format.recovers
