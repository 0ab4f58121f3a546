"""Snapshots of plain Parquet tables."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import pyarrow as pa

from zadapter.errors import UnsupportedError
from zadapter.layout.store import Layouts
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot
from zadapter.table.spark_schema import arrow_schema
from zadapter_parquet.format.entries import UNREGISTERED, Entry, LogOperation, digest
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.contract import Files
from zadapter_parquet.store.partition_folders import PartitionFolders, folders_of

_REWRITES = {LogOperation.OPTIMIZE, LogOperation.MOVE, LogOperation.PUBLISH}
"""Operations that change no row."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """Version of a table, or of a folder that is not registered."""

    entry: Entry
    file_table: pa.Table | None = field(default=None, repr=False)
    """File table with all stats of a folder that is not registered; None for a table."""
    aborted: frozenset[str] = frozenset()
    """Folders of commits that were aborted since an older version."""
    newer: Entry | None = None
    """Entry of the current version, if this is an older one."""

    @property
    def head(self) -> Entry:
        """Return the entry of the current version, which determines where files are."""
        return self.newer or self.entry


@dataclass(frozen=True, kw_only=True)
class Handle:
    """Reference to a version of a table."""

    files: Files
    version: Version
    partition: Mapping[str, pa.DataType]

    @cached_property
    def folders(self) -> PartitionFolders:
        """The partition folders of the live files.

        Raises:
            UnsupportedError: Two folders have the same values, so a rewrite would merge them.
        """
        if not self.partition:
            return PartitionFolders()
        tables = (
            [self.version.file_table]
            if self.version.file_table is not None
            else (stats_table.read(self.files, p, ["path"]) for p in self.version.entry.parts)
        )
        paths = chain.from_iterable(table["path"].to_pylist() for table in tables)
        return folders_of(paths, self.partition)


def snapshot(
    table: str, files: Files, version: Version, applied: frozenset[str] = frozenset()
) -> Snapshot:
    """Return the snapshot of *version*."""
    entry = version.entry
    schema = arrow_schema(json.loads(entry.schema))
    partition = {name: schema.field(name).type for name in entry.partition}
    handle = Handle(files=files, version=version, partition=partition)
    return Snapshot(
        table=table,
        format="parquet",
        version=None if entry.version == UNREGISTERED else entry.version,
        location=files.uri,
        schema=schema,
        partition=partition,
        definition=digest("\0".join([entry.table, entry.schema, *entry.partition]).encode()),
        physical={},
        without_stats=frozenset(),
        applied=applied,
        layouts=Layouts(files),
        check_rewritable=lambda: _check_rewritable(table, handle),
        id=entry.table,
        source=lambda: entry.source,
        rewritten=lambda since: [
            (found.version - 1, found.version)
            for found in Log(files, table).entries_between(since, entry.version)
            if found.operation in _REWRITES
        ],
        handle=handle,
    )


def _check_rewritable(table: str, handle: Handle) -> None:
    """Check that a rewrite keeps the partition folders apart.

    Raises:
        UnsupportedError: Two folders have the same values, as ``zip=01`` and ``zip=1`` have in
            tables of older releases, for which both were the number 1.
    """
    try:
        handle.folders  # noqa: B018 - looked up once for all writes
    except UnsupportedError as error:
        raise UnsupportedError(f"{table}: {error}") from error


def with_partition(
    files: pa.Table, partition: Mapping[str, pa.DataType], layout: str | None
) -> pa.Table:
    """Fill partition values from the paths, and the layout's id, into a file table."""
    paths = files["path"].to_pylist()
    arrays = [hive_names.values(paths, name, type_) for name, type_ in partition.items()]
    field = file_stats.schema({}, partition).field("partition")
    values = file_stats.structs(arrays, field.type, files.num_rows)
    files = file_stats.replace_column(files, field, values)
    layouts = pa.array([layout] * files.num_rows, pa.string())
    return files.set_column(files.schema.get_field_index("layout"), "layout", layouts)
