"""Protocols of a table format's backend, and discovery of installed backends."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import pyarrow as pa

from zadapter.base.names import Parts
from zadapter.errors import MissingBackendError
from zadapter.layout.layout import Layout
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import (
    Change,
    Commit,
    Load,
    Publication,
    Rewrite,
    Snapshot,
    Source,
    Staged,
    Written,
)
from zadapter.table.spec import Definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Backend(Protocol):
    """A table format.

    If a feature of the table forbids a rewrite, ``snapshot`` raises
    :class:`~zadapter.errors.UnsupportedError` with the name of the feature, before anything is
    written.
    """

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*.

        Args:
            table: Path or identifier.
            since: A version; ``applied`` contains the ids of zadapter's commits after it.

        Raises:
            UnknownTableError: There is no such table of this format.
            UnsupportedError: The table uses a feature that zadapter cannot preserve.
        """

    def files(self, snapshot: Snapshot, columns: Sequence[Parts] = ()) -> pa.Table:
        """Return the file table of *snapshot* with stats of *columns* (see ``file_stats``)."""

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return the URIs of the files with *paths* in the file table."""

    def widen_stats(self, snapshot: Snapshot, columns: Sequence[Parts]) -> Snapshot:
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
            layout: The layout that placed the rows; None: no layout.
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

    def commit(self, rewrite: Rewrite) -> int:
        """Exchange the files atomically and return the new version.

        Every later snapshot has the rewrite's id in ``applied`` and its layout in ``layouts``.

        Raises:
            ConflictError: Another writer was faster; nothing was committed.
            UnknownOutcomeError: It is unknown whether the commit landed.
        """

    def close(self) -> None:
        """Release the session state of reads and writes; keep all files."""


@runtime_checkable
class Versioned(Backend, Protocol):
    """A backend that writes rows and keeps versions itself, since its format has no engine."""

    def at(self, table: str, when: int | datetime) -> Snapshot:
        """Return an older version: by its number, or the newest version at a time.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: Files of the version may be deleted.
        """

    def publish(self, change: Change, operation: str) -> int:
        """Commit *change* as the next version, with the errors of :meth:`Backend.commit`."""

    def history(self, table: str) -> list[Commit]:
        """Return the commits of all versions, newest first."""

    def restore(self, table: str, version: int) -> int:
        """Commit the files of an older version as a new version; return its number."""

    def vacuum(self, table: str, older_than: timedelta, *, dry_run: bool) -> list[str]:
        """Delete files needed only by versions older than *older_than*; return their paths."""

    def publish_folder(self, table: str, *, dry_run: bool) -> Publication:
        """Make the visible files of the folder exactly the files of the newest version."""


@runtime_checkable
class Portable(Backend, Protocol):
    """A backend whose tables can be migrated to and from other formats."""

    external_files: bool
    """Whether a table can have files outside its folder."""
    field_ids: bool
    """Whether the format reads columns by field ids where files have them."""

    def at(self, table: str, when: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: The metadata of the version is deleted.
        """

    def define(self, snapshot: Snapshot) -> Definition:
        """Return the definition of the table, with notes on parts that no other format has."""

    def accept(self, definition: Definition) -> Definition:
        """Return *definition* as this format represents it, with notes on the differences."""

    def create(self, table: str, definition: Definition, source: Source) -> Snapshot:
        """Return the snapshot of *table* before its first commit, invisible to others.

        Files can be written and staged for it. :meth:`load` creates the table in one commit.

        Args:
            table: Path or identifier.
            definition: The result of :meth:`accept`.
            source: The version of the other table that is migrated.

        Raises:
            UsageError: The location or name is in use, or *table* is not a valid name.
        """

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
        """Return files at other locations as if this backend had written them.

        Args:
            snapshot: The result of :meth:`create`.
            files: File table of another table, with partition values of the same names.
            uris: Locations of the files.

        Raises:
            UnsupportedError: The format cannot reference files outside its folder, or cannot
                represent one of their partition values.
        """

    def load(self, load: Load) -> int:
        """Add files in one commit and return the version; create the table if it is missing.

        Raises:
            ConflictError: Another writer created or changed the table; nothing was committed.
            UnknownOutcomeError: It is unknown whether the commit landed.
        """

    def protect(self, snapshot: Snapshot) -> str:
        """Keep the table's own clean-ups from deleting shared files; return how, as text."""

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a table that was just created, but keep its adopted files.

        Raises:
            ConflictError: The table has more versions.
        """


Factory = Callable[["SparkSession"], Backend]
"""Constructor of a backend, such as its class. Entry points refer to it."""

GROUP = "zadapter.backends"


def names() -> list[str]:
    """Return the names of all installed backends."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Factory:
    """Return the factory of the backend registered as *name*.

    Raises:
        MissingBackendError: No installed package provides the backend, more than one does, or a
            dependency of the backend is missing.
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise MissingBackendError(
            f"unknown backend {name!r}; installed: {', '.join(names()) or 'none'}"
        )
    if len({entry.value for entry in found}) > 1:
        raise MissingBackendError(
            f"{len(found)} packages provide backend {name!r}: {', '.join(e.value for e in found)}; "
            "uninstall all but one"
        )
    return _load(found[0])


def _load(entry: EntryPoint) -> Factory:
    try:
        loaded: Any = entry.load()
    except ImportError as error:
        raise MissingBackendError(
            f"backend {entry.name!r} requires {error.name}; install the extra {entry.name!r}"
        ) from error
    except AttributeError as error:
        raise MissingBackendError(
            f"backend {entry.name!r} cannot be loaded: {error}; reinstall its package"
        ) from error
    return cast("Factory", loaded)
