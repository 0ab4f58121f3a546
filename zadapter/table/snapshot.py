"""Values that backends and the core exchange: snapshots, staged files, rewrites."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import Parts
from zadapter.errors import StaleRewriteError, UnknownOutcomeError
from zadapter.layout.layout import Layout, LayoutStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The version of another table from which a table was migrated."""

    format: str
    id: str
    """Id of the other table (``Snapshot.id``)."""
    version: int
    columns: str
    """Digest of its columns' names, types and ids. It detects a column that was replaced under the
    same name."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version of a table."""

    table: str
    """The table as the caller named it."""
    format: str
    version: int
    location: str
    """Root folder of the table, as a URI."""
    identifier: str | None = None
    """The table's name in the session's catalogs, in backticks; None: no name."""
    schema: pa.Schema
    """Columns by their logical names."""
    partition: Mapping[str, pa.DataType]
    """Partition fields and their types: columns of the table, or transforms of them. All rows of a
    file have the same values."""
    id: str
    """Identifies the table, independent of its location and name."""
    definition: str
    """Identifies schema, partition spec and properties. A rewrite can be rebased iff it is
    unchanged."""
    physical: Mapping[Parts, Parts]
    """Names of columns in the files, where they differ from the logical names."""
    without_stats: frozenset[Parts]
    """Leaf columns for which the table's log collects no stats."""
    without_bounds: frozenset[Parts] = frozenset()
    """Leaf columns of types for which the format keeps no usable min and max."""
    applied: frozenset[str] = frozenset()
    """Ids of zadapter's commits since the requested version."""
    layouts: LayoutStore = field(default_factory=dict[str, Layout], repr=False)
    """Layouts stored with the table, by id."""
    source: Callable[[], Source | None] = field(default=lambda: None, repr=False, compare=False)
    """Returns the table and version from which the table was migrated, or None. The call reads the
    table's history."""
    handle: Any = field(default=None, repr=False, compare=False)
    """The backend's reference to this version."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Files that are written but invisible to readers."""

    paths: Mapping[str, str] = field(repr=False)
    """URI of each file, by its path in the log."""
    handle: Any = field(default=None, repr=False, compare=False)
    """The backend's data for the commit."""


@dataclass(frozen=True, kw_only=True)
class Staged(Written):
    """Written files, with the metadata that the log will hold."""

    files: pa.Table = field(repr=False)
    """File table of the files that hold rows."""

    def sizes(self, files: pa.Table) -> dict[str, int]:
        """Return the bytes of *files*, by URI."""
        rows = zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)
        return {self.paths[path]: size for path, size in rows}


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """Removed files of one partition, and the added files that replace them."""

    removed: pa.Table = field(repr=False)
    added: pa.Table = field(repr=False)


C = TypeVar("C", bound="Change")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Exchanges that become visible in one commit."""

    base: Snapshot
    exchanges: tuple[Exchange, ...]
    staged: Staged
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def table_id(self) -> str | None:
        """Id of the table that changes; None: the change registers a folder as a table."""
        return self.base.id if self.base.version >= 0 else None

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each added file, by URI."""
        return self.staged.sizes(pa.concat_tables(each.added for each in self.exchanges))

    def rebased(  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self: C, head: Snapshot, live: pa.Table
    ) -> tuple[C, tuple[Exchange, ...]]:
        """Rebase the exchanges whose removed files are still live on *head*.

        Args:
            head: The newest version of the table.
            live: The file table of *head*.

        Returns:
            The rebased change, and the exchanges that were dropped.

        Raises:
            StaleRewriteError: All exchanges are stale.
            UnknownOutcomeError: The change has landed, but the table's history no longer shows it.
        """
        alive = keys(live)
        if {path for path, _ in alive} & set(self.staged.files["path"].to_pylist()):
            raise UnknownOutcomeError(self.base.table, self.id)
        same = head.definition == self.base.definition
        stale = tuple(e for e in self.exchanges if not same or keys(e.removed) - alive)
        if len(stale) == len(self.exchanges):
            gone = [path for e in stale for path, _ in keys(e.removed) - (alive if same else set())]
            raise StaleRewriteError(self.base.table, sorted(gone))
        kept = tuple(e for e in self.exchanges if e not in stale)
        return replace(self, base=head, exchanges=kept), stale


@dataclass(frozen=True, kw_only=True)
class Rewrite(Change):
    """Exchanges that keep the rows and place them by a layout."""

    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Load:
    """Files with rows of another table. The load creates the table if it does not exist yet."""

    base: Snapshot
    staged: tuple[Staged, ...]
    source: Source
    layouts: tuple[Layout, ...] = ()
    """Layouts of the files."""
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def table_id(self) -> None:
        """None: the load may create the table. ``rebased`` checks an existing table."""

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each added file, by URI."""
        return {uri: size for each in self.staged for uri, size in each.sizes(each.files).items()}

    def rebased(self, head: Snapshot, live: pa.Table) -> tuple["Load", tuple[Exchange, ...]]:  # noqa: ARG002 - all that is live stays
        """Rebase the load on *head*.

        Raises:
            StaleRewriteError: Another load has landed, or the table's definition has changed.
        """
        if (head.source(), head.definition) != (self.base.source(), self.base.definition):
            raise StaleRewriteError(self.base.table, ["the migrated version"])
        return replace(self, base=head), ()


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit in the history of a table."""

    version: int
    timestamp: datetime
    """In UTC."""
    operation: str
    id: str
    files_added: int = 0
    files_removed: int = 0
    rows_added: int = 0
    rows_removed: int = 0


@dataclass(frozen=True, kw_only=True)
class Publication:
    """Result of publishing a folder, or of a dry run."""

    table: str
    """The table as the caller named it."""
    version: int
    """The version that the folder shows; for a dry run, the current version."""
    moved: Mapping[str, str]
    """Visible path of each moved file, by its hidden path. Both are relative to the table."""
    removed: tuple[str, ...]
    """Visible files of older versions, which were deleted."""
    dry_run: bool
    """Whether nothing was changed."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the folder already showed the newest version."""
        return not self.moved and not self.removed


def keys(files: pa.Table) -> set[tuple[str, str | None]]:
    """Return the identity of each file: its path and its row-level deletes."""
    return set(zip(files["path"].to_pylist(), files["deletes"].to_pylist(), strict=True))


def chosen(files: pa.Table, paths: set[str]) -> pa.Table:
    """Return the rows of a file table with one of *paths*."""
    return files.filter(pc.is_in(files["path"], pa.array(sorted(paths), pa.string())))
