"""What zadapter needs to know about a table format, and where to find it."""

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

    What the table's features forbid raises :class:`~zadapter.errors.UnsupportedError` from
    ``snapshot``, naming the feature, before anything is written.
    """

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*.

        Args:
            table: Path or identifier.
            since: Report the ids of zadapter's commits after this version as ``applied``.

        Raises:
            UnknownTableError: There is no such table of this format.
            UnsupportedError: The table uses a feature that zadapter cannot keep.
        """

    def files(self, snapshot: Snapshot, columns: Sequence[Parts] = ()) -> pa.Table:
        """Return the files of *snapshot* with stats of *columns* (see ``filestats``)."""

    def uris(self, snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
        """Return where the files with *paths* in the file table lie."""

    def widen_stats(self, snapshot: Snapshot, columns: Sequence[Parts]) -> Snapshot:
        """Have the table collect stats of *columns* from now on."""

    def read(self, snapshot: Snapshot, files: pa.Table) -> "DataFrame":
        """Return the live rows of *files*, with what the format needs to keep a row's identity.

        Behind the table's columns come those of ``snapshot.partition`` that the table has not.
        """

    def write(
        self, snapshot: Snapshot, rows: "DataFrame", layout: Layout | None, encoding: Encoding
    ) -> Written:
        """Write each partition of *rows*, in order, as one file that no reader sees.

        Args:
            snapshot: The version the rows were read from.
            rows: The rows.
            layout: What placed them; None: nothing has.
            encoding: How the rows are put into Parquet.
        """

    def stage(self, snapshot: Snapshot, written: Written, files: pa.Table) -> Staged:
        """Return what the format's log will say of *written*.

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

        The rewrite's id shows up in ``applied`` of every later snapshot, its layout in ``layouts``.

        Raises:
            ConflictError: Nothing was committed; another writer was faster.
            UnknownOutcomeError: It may or may not have been committed.
        """

    def close(self) -> None:
        """Let go of what the session holds for reads and writes; files stay."""


@runtime_checkable
class Versioned(Backend, Protocol):
    """A backend that writes rows and keeps versions itself, for lack of an engine that does."""

    def at(self, table: str, when: int | datetime) -> Snapshot:
        """Return an older version: the one with this number, or the newest at that time.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: Its files may be gone.
        """

    def publish(self, change: Change, operation: str) -> int:
        """Make *change* the next version, as :meth:`Backend.commit` does."""

    def history(self, table: str) -> list[Commit]:
        """Return the commits of all versions, newest first."""

    def restore(self, table: str, version: int) -> int:
        """Make the files of an older version those of a new one."""

    def vacuum(self, table: str, older_than: timedelta, *, dry_run: bool) -> list[str]:
        """Delete what no version needs that is newer than *older_than*; return it."""

    def publish_folder(self, table: str, *, dry_run: bool) -> Publication:
        """Make the visible files of the folder those of the newest version, and no others."""


@runtime_checkable
class Portable(Backend, Protocol):
    """A backend whose tables can be migrated to other formats, and from them."""

    external_files: bool
    """Whether a table can have files outside its folder."""
    field_ids: bool
    """Whether it reads columns of files by their ids, where they have some."""

    def at(self, table: str, when: int) -> Snapshot:
        """Return an older version.

        Raises:
            UnknownTableError: There is no such table or version.
            VersionExpiredError: What it was is no longer known.
        """

    def define(self, snapshot: Snapshot) -> Definition:
        """Return what the table is, and note what no other format can be told."""

    def accept(self, definition: Definition) -> Definition:
        """Return *definition* as this format can hold it, and note what became of it."""

    def create(self, table: str, definition: Definition, source: Source) -> Snapshot:
        """Return what *table* will be before its first commit, which nobody else can see yet.

        Files can be written and staged for it; :meth:`load` makes them a table, all at once.

        Args:
            table: Path or identifier.
            definition: What :meth:`accept` has returned.
            source: What is migrated.

        Raises:
            UsageError: Something else is there already, or it is no name of a table.
        """

    def adopt(self, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
        """Return files that lie somewhere else as if they had been written here.

        Args:
            snapshot: What :meth:`create` has returned.
            files: File table of another table, with partition values of the same names.
            uris: Where they lie.

        Raises:
            UnsupportedError: This format cannot name files outside its folder, or a partition value
                of theirs.
        """

    def load(self, load: Load) -> int:
        """Add files, all in one commit, and return the version; make the table if there is none.

        Raises:
            ConflictError: Nothing was committed; somebody else made the table, or changed it.
            UnknownOutcomeError: It may or may not have been committed.
        """

    def protect(self, snapshot: Snapshot) -> str:
        """Have the table's own clean-ups leave files alone that are shared; say how."""

    def drop(self, snapshot: Snapshot) -> None:
        """Remove a table that was just made, but not the files it has adopted.

        Raises:
            ConflictError: It has got more versions.
        """


Factory = Callable[["SparkSession"], Backend]
"""What an entry point names: a backend's class, say."""

GROUP = "zadapter.backends"


def names() -> list[str]:
    """Return the names of all installed backends."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> Factory:
    """Return the backend registered as *name*, to be called with a Spark session.

    Raises:
        MissingBackendError: No installed package provides it, more than one does, or what it
            needs is missing.
    """
    found = list(entry_points(group=GROUP, name=name))
    if not found:
        raise MissingBackendError(f"no backend {name!r}; installed: {', '.join(names()) or 'none'}")
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
            f"backend {entry.name!r} needs {error.name}; install zadapter's extra {entry.name!r}"
        ) from error
    except AttributeError as error:
        raise MissingBackendError(
            f"backend {entry.name!r} is not in what is installed: {error}; install it anew"
        ) from error
    return cast("Factory", loaded)
