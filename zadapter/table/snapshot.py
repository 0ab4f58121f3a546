"""Values that backends and the core exchange: snapshots, staged files, changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.names import NameParts
from zadapter.errors import RETRY, StaleRewriteError, UnknownOutcomeError
from zadapter.layout.layout import Layout, LayoutStore
from zadapter.table import file_stats

MOST_PIECES = 1_000
"""Number of pieces of a file table at most that are left as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The version of another table from which a table was migrated."""

    format: str
    id: str
    """Id of the other table (``Snapshot.id``)."""
    version: int | None
    """None: the table had no versions."""
    columns: str
    """Digest of its columns' names, types and ids. It detects a column that was replaced under the
    same name."""

    @property
    def number(self) -> int:
        """The version as logs store it: -1 if the table had no versions."""
        return -1 if self.version is None else self.version

    def to_dict(self) -> dict[str, Any]:
        """Return the source as logs store it."""
        return {**asdict(self), "version": self.number}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Source":
        """Return the source of a log's entry."""
        version = int(stored["version"])
        return cls(**{**stored, "version": None if version < 0 else version})


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version of a table."""

    table: str
    """The table as the caller named it."""
    format: str
    version: int | None
    """None: a folder that is not registered as a table, or a table that is not created yet."""
    location: str
    """Root folder of the table, as a URI."""
    identifier: str | None = None
    """The table's name in the session's catalogs, in backticks; None for no name."""
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
    physical: Mapping[NameParts, NameParts]
    """Names of columns in the files, where they differ from the logical names."""
    field_ids: Mapping[NameParts, int] = field(default_factory=dict[NameParts, int])
    """Ids by which the format finds columns in files; empty: it finds them by name."""
    without_stats: frozenset[NameParts]
    """Leaf columns for which the table's log collects no stats."""
    without_bounds: frozenset[NameParts] = frozenset()
    """Leaf columns of types for which the format keeps no usable min and max."""
    stored_types: Mapping[NameParts, str] = field(default_factory=dict[NameParts, str])
    """Types of columns in the format, where Spark reads them as another type."""
    target_file_size: int | None = None
    """Maximum bytes of a written file, as the table's properties state; None if they state none."""
    sort_order: str = ""
    """Order in which the table's definition asks for rows to be written; empty if none."""
    sort_columns: tuple[NameParts, ...] = ()
    """Columns of this order, without those of transforms that do not preserve it."""
    clustering: tuple[NameParts, ...] = ()
    """Columns that the table's definition asks to cluster by, by their logical names."""
    applied: frozenset[str] = frozenset()
    """Ids of zadapter's commits since the requested version."""
    layouts: LayoutStore = field(default_factory=dict[str, Layout], repr=False)
    """Layouts stored with the table, by id."""
    source: Callable[[], Source | None] = field(default=lambda: None, repr=False, compare=False)
    """Returns the table and version from which the table was migrated, or None. The call reads the
    table's history."""
    rewritten: Callable[[int], Sequence[tuple[int, int]]] = field(
        default=lambda _: (), repr=False, compare=False
    )
    """Returns the commits since an older version that state that they change no row, such as a
    rewrite of files: the version before each, and its own, oldest first. The call reads the table's
    history."""
    properties: Callable[[], Mapping[str, str]] = field(default=dict, repr=False, compare=False)
    """Returns the properties of the table's definition; none if the format has none."""
    check_rewritable: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """Raises :class:`~zadapter.errors.UnsupportedError` if the files of this version can be read,
    but no rewrite of them can be right. The call may read the table's log."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """Removed files of one partition, and the added files that replace them."""

    removed: pa.Table = field(repr=False)
    added: pa.Table = field(repr=False)


class Operation(str, Enum):
    """Kind of a change, as the format's history shows it."""

    OPTIMIZE = "optimize"
    """Keeps all rows, and places them by the change's layout."""
    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    MIGRATE = "migrate"
    """Adds rows of another table, the change's source."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Files that leave a table and files that join it, in one commit."""

    base: Snapshot
    """The snapshot that the change applies to. A change of a pending table creates the table, with
    the definition that the pending snapshot holds."""
    operation: Operation
    exchanges: tuple[Exchange, ...]
    """Removed and added files. Other writers may make some of them stale, but not parts of one."""
    staged: tuple[Staged, ...]
    """The staged files, which contain the added files of the exchanges."""
    layouts: tuple[Layout, ...] = ()
    """Layouts of the added files."""
    source: Source | None = None
    """The table and version whose rows the change adds, for a migration."""
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def added(self) -> pa.Table:
        """File table of the added files."""
        return _concat_files(self.base, [exchange.added for exchange in self.exchanges])

    @property
    def removed(self) -> pa.Table:
        """File table of the removed files."""
        return _concat_files(self.base, [exchange.removed for exchange in self.exchanges])

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each added file, by URI."""
        uris = {path: uri for staged in self.staged for path, uri in staged.paths.items()}
        added = self.added
        rows = zip(added["path"].to_pylist(), added["size"].to_pylist(), strict=True)
        return {uris[path]: size for path, size in rows}

    def check_not_live(self, live: pa.Table) -> None:
        """Check that no staged file is live, because the history may have expired.

        Raises:
            UnknownOutcomeError: One is live, so the change has landed.
        """
        staged = [path for written in self.staged for path in written.files["path"].to_pylist()]
        if pc.any(pc.is_in(live["path"], pa.array(staged, pa.string()))).as_py():
            raise UnknownOutcomeError(self.base.table, self.id)

    def find_stale(self, head: Snapshot, live: pa.Table) -> tuple[Exchange, ...]:
        """Return the exchanges of which a removed file is not live on *head* as it was.

        Args:
            head: The newest version of the table.
            live: The file table of *head*.

        Raises:
            StaleRewriteError: Another writer has migrated rows.
            UnknownOutcomeError: The change has landed, but the table's history no longer shows it.
        """
        self.check_not_live(live)
        if self.source is not None and head.source() != self.base.source():
            raise StaleRewriteError(self.base.table, ["the migrated version"])
        if not self.fits(head):
            return self.exchanges
        alive = keys(select_paths(live, {path for path, _ in keys(self.removed)}))
        return tuple(e for e in self.exchanges if keys(e.removed) - alive)

    def fits(self, head: Snapshot) -> bool:
        """Return whether the table's definition is still the one that the change is based on."""
        return head.definition == self.base.definition

    def rebase(self, head: Snapshot, live: pa.Table) -> tuple["Change", tuple[Exchange, ...]]:
        """Rebase the exchanges whose removed files are still live on *head*.

        Args:
            head: The newest version of the table.
            live: The file table of *head*.

        Returns:
            The rebased change, and the exchanges that were dropped.

        Raises:
            StaleRewriteError: All exchanges are stale, or another writer has migrated rows.
            UnknownOutcomeError: The change has landed, but the table's history no longer shows it.
        """
        stale = self.find_stale(head, live)
        if len(stale) == len(self.exchanges):
            raise self.stale_error(head, live)
        kept = tuple(e for e in self.exchanges if e not in stale)
        return replace(self, base=head, exchanges=kept), stale

    def stale_error(
        self, head: Snapshot, live: pa.Table, reasons: Sequence[str] = ()
    ) -> StaleRewriteError:
        """Return the error that all exchanges are stale on *head*, with reasons as sentences."""
        removed = keys(self.removed)
        alive = keys(select_paths(live, {path for path, _ in removed}))
        changed = sorted(path for path, _ in removed - alive) if self.fits(head) else []
        stale = changed or ["the table's definition"]
        if not reasons:
            return StaleRewriteError(self.base.table, stale)
        return StaleRewriteError(self.base.table, stale, advice=". ".join([*reasons, RETRY]))


def _concat_files(base: Snapshot, tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables) if tables else file_stats.empty({}, base.partition)


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
class Published:
    """What a backend has published of a folder, or would publish."""

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
    versions: tuple[int, ...] = ()
    """Versions that were committed, each of which moves files."""

    @property
    def nothing_to_do(self) -> bool:
        """Whether the folder already showed the newest version."""
        return not self.moved and not self.removed


@dataclass(frozen=True, kw_only=True)
class Vacuumed:
    """What a backend has deleted of old versions, or would delete."""

    paths: list[str]
    """Paths relative to the table."""
    versions: tuple[int, ...] = ()
    """Versions that were committed: they say which versions have expired."""


def keys(files: pa.Table) -> set[tuple[str, str | None]]:
    """Return the identity of each file: its path and its row-level deletes."""
    return set(zip(files["path"].to_pylist(), files["deletes"].to_pylist(), strict=True))


def select_paths(files: pa.Table, paths: set[str]) -> pa.Table:
    """Return the rows of a file table with one of *paths*."""
    return files.filter(_among(files, paths))


def without(files: pa.Table, paths: set[str]) -> pa.Table:
    """Return the rows of a file table with none of *paths*.

    Where they lie in few places, the other rows are not copied.
    """
    if not paths:
        return files
    among = _among(files, paths).to_numpy()
    edges = np.flatnonzero(np.diff(among, prepend=True, append=True)).tolist()
    starts, stops = edges[::2], edges[1::2]
    if len(starts) > MOST_PIECES:
        return files.filter(pa.array(~among))
    pieces = [files.slice(at, end - at) for at, end in zip(starts, stops, strict=True)]
    return pa.concat_tables([files.slice(0, 0), *pieces])


def _among(files: pa.Table, paths: set[str]) -> pa.ChunkedArray:
    return pc.is_in(files["path"], pa.array(sorted(paths), pa.string()))
