"""Protocols of a table format's backend; ``backends/README.md`` explains how to write one.

A backend's ``format`` declares its capabilities as values. A backend whose format has
``own_versions`` is a :class:`VersionedBackend`, one whose format has ``migrates`` is a
:class:`MigrationBackend`, with ``inspects`` an :class:`InspectedBackend`, with ``rebases`` a
:class:`RebasingBackend`, and with ``dates_files`` a :class:`DatedBackend`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeGuard

import pyarrow as pa

from zadapter.backend.format import Format
from zadapter.base.names import NameParts
from zadapter.layout.layout import Layout
from zadapter.layout.store import Store
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import (
    Change,
    Commit,
    Published,
    Snapshot,
    Source,
    Staged,
    Vacuumed,
    Written,
)
from zadapter.table.spec import Definition
from zadapter.table.staged_files import StagedFile, StagedWrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SideFiles(Store, Protocol):
    """Small files beside a table, and the files of writes that were not committed.

    Threads may share it.
    """

    @property
    def root(self) -> str:
        """Location of the folder below which writes stage their files today."""

    def list_modification_times(self, folder: str) -> Mapping[str, int]:
        """Return when each file in a folder was modified, by name; none if it does not exist.

        The times are milliseconds since 1970, by the store's clock.
        """

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""

    def list_staged(self, write: StagedWrite) -> Sequence[StagedFile]:
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


class Backend(Protocol):
    """A table format.

    If a feature of the table forbids a rewrite, ``snapshot`` raises
    :class:`~zadapter.errors.UnsupportedError` with the name of the feature, before anything is
    written.
    """

    @property
    def format(self) -> Format:
        """The format's name, capabilities and requirements."""

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*.

        Args:
            table: Path or identifier.
            since: A version; ``applied`` contains the ids of zadapter's commits after it.

        Raises:
            UnknownTableError: There is no such table of this format.
            UnsupportedError: The table uses a feature that zadapter cannot preserve.
        """

    def files(self, snapshot: Snapshot, columns: Sequence[NameParts] = ()) -> pa.Table:
        """Return the file table of *snapshot* with stats of *columns* (see ``file_stats``)."""

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return the URIs of the files with *paths* in the file table."""

    def collect_stats(self, snapshot: Snapshot, columns: Sequence[NameParts]) -> Snapshot:
        """Make the table collect stats of *columns* from now on; return the new snapshot."""

    def read(self, snapshot: Snapshot, files: pa.Table) -> "DataFrame":
        """Return the live rows of *files*, with the columns that preserve row identity.

        Appends partition fields that are not table columns.
        """

    def write(
        self, snapshot: Snapshot, rows: "DataFrame", layout: Layout | None, encoding: Encoding
    ) -> Written:
        """Write each partition of *rows*, in order, as one file that is invisible to readers.

        Args:
            snapshot: The version the rows were read from.
            rows: The rows.
            layout: The layout that placed the rows; None for no layout.
            encoding: The Parquet encoding of the rows.
        """

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return *written* with the metadata that the format's log will hold.

        Args:
            snapshot: The version the files were written for.
            written: The files.
            files: File table with their size, rows, and stats of every column, from the footers.
        """

    def read_staged(self, snapshot: Snapshot, staged: Staged) -> "DataFrame":
        """Return the rows of *staged* as :meth:`read` will return them after the commit.

        Columns that only identify a row may be missing.
        """

    def commit(self, change: Change) -> int:
        """Exchange the files atomically and return the new version.

        If the change's base is a pending table, the commit creates the table with its definition.
        Every later snapshot has the change's id in ``applied``, its layouts in ``layouts``, and
        its source in ``source``, if it has one. A change with a source must not land if another
        change with a source has landed since its base. Unless the format has ``own_versions`` or
        ``migrates``, every change is an ``OPTIMIZE`` of an existing table.

        After an error of :data:`~zadapter.errors.NOT_COMMITTED`, the new files are deleted. After
        any other exception the outcome is unknown: the table's history decides it, and no file is
        deleted. So errors before the commit is sent must be of ``NOT_COMMITTED``, which
        :func:`~zadapter.base.commit_attempts.before_sending` ensures, and later ones only if they
        prove that the commit did not land.

        Raises:
            ConflictError: Another writer was faster; nothing was committed.
            VerificationError: A new file is missing or has another size; nothing was committed.
            UsageError, UnsupportedError, ForeignChangeError, CorruptLogError, StoreError,
                UnsentCommitError: Nothing was committed.
            UnknownOutcomeError: It is unknown whether the commit landed.
        """

    def close(self) -> None:
        """Release the session state of reads and writes; keep all files."""


class RecoverableBackend(Backend, Protocol):
    """A backend that names files by the id of their write (``Encoding.write``)."""

    def side_files(self, snapshot: Snapshot) -> SideFiles:
        """Return the files beside the table."""


class DatedBackend(Backend, Protocol):
    """A backend whose log knows when files were added."""

    def older(self, snapshot: Snapshot, time: datetime) -> pa.ChunkedArray:
        """Return the paths of the live files that were added before *time*."""


class RebasingBackend(Backend, Protocol):
    """A backend that knows the place of each row in its file.

    A rewrite can then follow rows that another writer has deleted meanwhile
    (:mod:`zadapter.rewrite.rebase`).
    """

    def marks_deletes(self, snapshot: Snapshot, removed: pa.Table, added: pa.Table) -> bool:
        """Return whether a commit may mark rows of its new files as deleted.

        Args:
            snapshot: The version the files were written for.
            removed: Files that the commit removes.
            added: Files that it adds, without marks.
        """

    def read_places(self, snapshot: Snapshot, files: pa.Table) -> "DataFrame":
        """Return the rows of :meth:`read` with the columns of :mod:`zadapter.backend.row_places`.

        Partition fields that are not table columns may be missing.
        """

    def read_staged_places(self, snapshot: Snapshot, staged: Staged) -> "DataFrame":
        """Return the rows of *staged* as :meth:`read_places` does."""

    def mark_deletes(self, snapshot: Snapshot, staged: Staged, places: "DataFrame") -> Staged:
        """Return *staged* with rows that its commit marks as deleted.

        It is called only if :meth:`marks_deletes`. The paths of the result include the files that
        it writes for the marks.

        Args:
            snapshot: The version the files were written for.
            staged: Written files without such rows.
            places: The columns ``FILE`` and ``POSITION`` of these rows.
        """


class VersionedBackend(Backend, Protocol):
    """A backend that writes rows and keeps versions itself, since its format has no engine.

    ``commit`` accepts every operation.
    """

    def at(self, table: str, version: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: Files of the version may be deleted.
        """

    def version_at(self, table: str, time: datetime) -> int:
        """Return the number of the newest version at a time.

        Raises:
            UnknownTableError: There is no such table, or it is younger.
        """

    def history(self, table: str) -> list[Commit]:
        """Return the commits of all versions, newest first."""

    def restore(self, table: str, version: int) -> Commit:
        """Commit the files of an older version as a new version."""

    def vacuum(self, table: str, older_than: timedelta, *, dry_run: bool) -> Vacuumed:
        """Delete files needed only by versions older than *older_than*."""

    def publish_folder(self, table: str, *, dry_run: bool) -> Published:
        """Make the visible files of the folder exactly the files of the newest version."""


class MigrationBackend(Backend, Protocol):
    """A backend whose tables can be migrated to and from other formats.

    ``commit`` accepts ``MIGRATE``, also of pending tables.
    """

    def at(self, table: str, version: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: The metadata or files of the version may be deleted.
        """

    def define(self, snapshot: Snapshot) -> Definition:
        """Return the definition of the table, with notes on parts that no other format has."""

    def accept(self, definition: Definition) -> Definition:
        """Return *definition* as this format represents it, with notes on the differences."""

    def pending(self, table: str, definition: Definition, source: Source) -> Snapshot:
        """Return the snapshot of a new table before its first commit, invisible to others.

        Its version is None. Files can be written and staged for it. The first commit to
        this snapshot creates the table.

        Args:
            table: Path or identifier.
            definition: The result of :meth:`accept`.
            source: The version of the other table that is migrated.

        Raises:
            UsageError: The location or name is in use, or *table* is not a valid name.
        """

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
        """Return files at other locations as if this backend had written them.

        It is called only if the format has ``external_files``.

        Args:
            snapshot: The result of :meth:`pending`.
            files: File table of another table, with partition values of the same names.
            uris: Locations of the files.

        Raises:
            UnsupportedError: The format cannot represent one of the partition values.
        """

    def protect(self, snapshot: Snapshot) -> str:
        """Keep the table's own clean-ups from deleting shared files; return how, as text."""

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a table that was just created, but keep its adopted files.

        Raises:
            ConflictError: The table has more versions.
        """


class InspectedBackend(Backend, Protocol):
    """A backend that returns what Spark's own reader plans, and corrects recorded statistics."""

    def scan(self, snapshot: Snapshot) -> "DataFrame":
        """Return the rows as a user's query reads them, with the format's own reader."""

    def list_scanned_files(self, rows: "DataFrame") -> list[str]:
        """Return the URIs of the files that Spark's plan of *rows*, a filtered scan, reads."""

    def restate(self, snapshot: Snapshot, files: pa.Table) -> int:
        """Replace the recorded stats of live *files* in one commit that changes no data.

        Args:
            snapshot: The version in which the files are live, without row-level deletes.
            files: File table with the size, rows and stats of every column to record.

        Raises:
            UnsupportedError: The format cannot replace the stats of a file alone.
            ConflictError: Another writer was faster; nothing was committed.
        """


class Factory(Protocol):
    """Constructor of a backend, such as its class. Entry points refer to it."""

    @property
    def format(self) -> Format:
        """The backend's format, known before there is a session."""

    def __call__(self, spark: "SparkSession", /) -> Backend:
        """Return the backend on a session, whose settings it may change until it is closed."""


def is_dated(backend: Backend) -> TypeGuard[DatedBackend]:
    """Return whether the backend knows when files were added."""
    return backend.format.dates_files


def is_versioned(backend: Backend) -> TypeGuard[VersionedBackend]:
    """Return whether the backend writes rows and keeps versions."""
    return backend.format.own_versions


def is_migratable(backend: Backend) -> TypeGuard[MigrationBackend]:
    """Return whether the backend's tables can be migrated."""
    return backend.format.migrates


def is_inspected(backend: Backend) -> TypeGuard[InspectedBackend]:
    """Return whether the backend returns what Spark's own reader plans."""
    return backend.format.inspects


def is_rebasing(backend: Backend) -> TypeGuard[RebasingBackend]:
    """Return whether the backend knows the place of each row in its file."""
    return backend.format.rebases


def is_recoverable(backend: Backend) -> TypeGuard[RecoverableBackend]:
    """Return whether the backend finds the files of writes whose process has died."""
    return backend.format.recovers
