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
    """The version of another table whose rows a table has got."""

    format: str
    id: str
    """Of the other table (``Snapshot.id``)."""
    version: int
    columns: str
    """Digest of its columns' names, types and ids: another one under the same name is another."""


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
    """The table's name in the session's catalogs, in backticks; None: it has none."""
    schema: pa.Schema
    """Columns by their logical names."""
    partition: Mapping[str, pa.DataType]
    """Columns of what is read whose values no two rows of a file may differ in, with their types:
    columns of the table, or transforms of them."""
    id: str
    """Stands for the table, wherever it lies and whatever it is called."""
    definition: str
    """Stands for schema, partitioning and properties: a rewrite survives iff it stays the same."""
    physical: Mapping[Parts, Parts]
    """How files name the columns, where they do it differently."""
    without_stats: frozenset[Parts]
    """Leaf columns of which the table's log collects no stats."""
    without_bounds: frozenset[Parts] = frozenset()
    """Leaf columns of types that the format keeps no usable min and max of."""
    applied: frozenset[str] = frozenset()
    """Ids of zadapter's commits since the version asked for."""
    layouts: LayoutStore = field(default_factory=dict[str, Layout], repr=False)
    """Layouts kept with the table, by id."""
    source: Callable[[], Source | None] = field(default=lambda: None, repr=False, compare=False)
    """Returns what the table was migrated from, and up to which version, or None; its history is
    read for that only when somebody asks."""
    handle: Any = field(default=None, repr=False, compare=False)
    """What the backend needs to find this version again."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """Files that are written but invisible to readers."""

    paths: Mapping[str, str] = field(repr=False)
    """For each path in the log, where the file lies, as a URI."""
    handle: Any = field(default=None, repr=False, compare=False)
    """What the backend needs to commit them."""


@dataclass(frozen=True, kw_only=True)
class Staged(Written):
    """Written files, and what the log will say of them."""

    files: pa.Table = field(repr=False)
    """File table of those that hold rows."""

    def sizes(self, files: pa.Table) -> dict[str, int]:
        """Return the bytes of some of the files, by their URIs."""
        rows = zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)
        return {self.paths[path]: size for path, size in rows}


@dataclass(frozen=True, kw_only=True, eq=False)
class Exchange:
    """Files of one partition that go, and those that come for them, with the same rows."""

    removed: pa.Table = field(repr=False)
    added: pa.Table = field(repr=False)


C = TypeVar("C", bound="Change")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Exchanges that become visible at once."""

    base: Snapshot
    exchanges: tuple[Exchange, ...]
    staged: Staged
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def table_id(self) -> str | None:
        """Id of the table that it changes; None: it is about to make a folder a table."""
        return self.base.id if self.base.version >= 0 else None

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each file that comes, by its URI."""
        return self.staged.sizes(pa.concat_tables(each.added for each in self.exchanges))

    def rebased(  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self: C, head: Snapshot, live: pa.Table
    ) -> tuple[C, tuple[Exchange, ...]]:
        """Put the exchanges whose files are unchanged on top of *head*.

        Args:
            head: The newest version of the table.
            live: Its file table.

        Returns:
            The change that can go on, and the exchanges that were left behind.

        Raises:
            StaleRewriteError: Nothing can go on.
            UnknownOutcomeError: It has landed, and the table's history no longer says so.
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
    """Exchanges of files with the same rows, placed along a layout."""

    layout: Layout


@dataclass(frozen=True, kw_only=True)
class Load:
    """Files with rows of another table; where the base is no table yet, they make it one."""

    base: Snapshot
    staged: tuple[Staged, ...]
    source: Source
    layouts: tuple[Layout, ...] = ()
    """What placed their rows."""
    id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def table_id(self) -> None:
        """None: it may make the table, and whether it is the right one is for ``rebased``."""

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each file that comes, by its URI."""
        return {uri: size for each in self.staged for uri, size in each.sizes(each.files).items()}

    def rebased(self, head: Snapshot, live: pa.Table) -> tuple["Load", tuple[Exchange, ...]]:  # noqa: ARG002 - all that is live stays
        """Put the files on top of *head*.

        Raises:
            StaleRewriteError: Somebody else has carried rows meanwhile, or the table is another.
        """
        if (head.source(), head.definition) != (self.base.source(), self.base.definition):
            raise StaleRewriteError(self.base.table, ["the version that was migrated"])
        return replace(self, base=head), ()


@dataclass(frozen=True, kw_only=True)
class Commit:
    """What a version's commit has done."""

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
    """What publishing a folder has done, or would do."""

    table: str
    """The table as the caller named it."""
    version: int
    """The version that the folder is; of a dry run, the current one."""
    moved: Mapping[str, str]
    """The visible name of each file, by the hidden one that it had. Both are within the table."""
    removed: tuple[str, ...]
    """Visible files of older versions, which were deleted."""
    dry_run: bool
    """Whether this is only what would be done."""

    @property
    def nothing_to_do(self) -> bool:
        """Tell whether the folder was the newest version already."""
        return not self.moved and not self.removed


def keys(files: pa.Table) -> set[tuple[str, str | None]]:
    """Return what identifies each file: its path and the row-level deletes on it."""
    return set(zip(files["path"].to_pylist(), files["deletes"].to_pylist(), strict=True))


def chosen(files: pa.Table, paths: set[str]) -> pa.Table:
    """Return the rows of a file table with one of *paths*."""
    return files.filter(pc.is_in(files["path"], pa.array(sorted(paths), pa.string())))
