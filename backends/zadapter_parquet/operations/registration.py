"""Registration of a plain Parquet folder as version 0 of a table."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zadapter.base.java_errors import checksum_mismatch, first_line
from zadapter.base.locations import map_files
from zadapter.base.translate_errors import texts
from zadapter.errors import UnknownTableError, UnsupportedError
from zadapter.table.footers import Footer, file_table, parse
from zadapter.table.snapshot import Snapshot
from zadapter_parquet.format.entries import UNREGISTERED, Entry, LogOperation, digest
from zadapter_parquet.log import commit_entries
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version, snapshot, with_partition
from zadapter_parquet.operations import other_contents
from zadapter_parquet.rows import rows
from zadapter_parquet.rows.unreadable import has_int96, obstacles
from zadapter_parquet.store import hive_names
from zadapter_parquet.store.catalog_tables import CatalogTable
from zadapter_parquet.store.contract import Files, ListedFile, probe
from zadapter_parquet.store.partition_folders import folders_of, partition_columns


@dataclass(frozen=True, kw_only=True)
class Read:
    """Facts from a file's footer."""

    footer: Footer
    columns: str
    """Parquet schema as text; files with equal texts have the same columns."""
    obstacles: tuple[str, ...] = ()
    """Columns that Spark cannot read, or would write with another type, with reasons."""
    int96: bool = False
    """Whether the file has an INT96 column."""


def read_folder(
    spark: SparkSession, files: Files, table: str, listed_as: CatalogTable | None = None
) -> Version:
    """Return the content of a folder as an unregistered version.

    Args:
        spark: A session.
        files: The folder.
        table: The table as the caller named it.
        listed_as: The table in the session's catalog; None: it is a path.

    Raises:
        UnknownTableError: The folder has no Parquet files.
        UnsupportedError: Its files do not form one table.
    """
    all_files = list(files.list_files())
    other_contents.refuse(files, all_files)
    listed = hive_names.visible(all_files)
    if not listed:
        raise UnknownTableError(f"{table}: no Parquet files found; check the path")
    partition = partition_columns(listed)
    types = hive_names.column_types(listed, partition)
    footers = read_footers(files, [file.path for file in listed])
    _refuse_columns(files, footers)
    columns = _merge_schemas(_schemas(spark, files, footers))
    schema = _with_partition(columns, types if listed_as is None else listed_as.types(types))
    entry = _entry(files.uri, schema, partition, listed, footers)
    unregistered = snapshot(table, files, Version(entry=entry))
    _check_partitions(unregistered, [file.path for file in listed])
    stats = file_table(unregistered, {path: facts.footer for path, facts in footers.items()})
    return Version(
        entry=entry, file_table=with_partition(stats, unregistered.partition, layout=None)
    )


def register(log: Log, files: Files, version: Version, table: pa.Table) -> Entry:
    """Commit version 0 with the files that were found.

    Raises:
        ConflictError: Another writer created the log first.
        StoreError: The store rejects writes.
        UnsupportedError: The store cannot create a file atomically.
    """
    probe(files)
    entry = commit_entries.write_first(files, version.entry, table)
    log.claim(entry)
    return entry


def _entry(
    uri: str,
    schema: dict[str, Any],
    partition: tuple[str, ...],
    listed: Sequence[ListedFile],
    footers: Mapping[str, Read],
) -> Entry:
    return Entry(
        version=UNREGISTERED,
        previous="",
        transaction=uuid4().hex,
        operation=LogOperation.REGISTER,
        read_version=UNREGISTERED,
        timestamp=0,
        # a concurrent registration of the same files results in the same id
        table=digest("\n".join([uri, *sorted(map(str, listed))]).encode()),
        schema=json.dumps(schema),
        partition=partition,
        parts=(),
        files=len(listed),
        size=sum(file.size for file in listed),
        rows=sum(facts.footer.rows for facts in footers.values()),
        oldest=0,
        int96=any(facts.int96 for facts in footers.values()),
    )


def _with_partition(
    columns: dict[str, Any],
    types: Mapping[str, str],
) -> dict[str, Any]:
    names = {field["name"].lower(): field["name"] for field in columns["fields"]}
    for name in types:
        if name.lower() in names:
            raise UnsupportedError(
                f"column {names[name.lower()]!r} of the files is also partition column {name!r}; "
                "rename the partition folders, or rewrite the files without the column"
            )
    added = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in types.items()
    ]
    return columns | {"fields": [*columns["fields"], *added]}


def _check_partitions(found: Snapshot, paths: Sequence[str]) -> None:
    """Check that the names of partition folders are values of their columns' types.

    Raises:
        UnsupportedError: They are not, or two folders have the same values.
    """
    try:
        folders_of(paths, found.partition)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(
            f"{found.table}: the names of its partition folders are not of the types "
            f"{ {name: str(type_) for name, type_ in found.partition.items()} } that the session's "
            f"catalog states: {error}; rename the folders, or correct the table in the catalog"
        ) from error


def _schemas(spark: SparkSession, files: Files, footers: Mapping[str, Read]) -> dict[str, str]:
    """Return Spark's schema of one file for each distinct Parquet schema, by path."""
    examples = {facts.columns: path for path, facts in reversed(list(footers.items()))}
    return {path: _schema(spark, files.location(path)) for path in reversed(examples.values())}


def _schema(spark: SparkSession, location: str) -> str:
    try:
        return rows.schema_of(spark, location)
    except PySparkException as error:
        if checksum_mismatch(texts(error)):  # the file's types are not the reason
            raise
        raise UnsupportedError(
            f"Spark cannot read {location}: {first_line(error)}; rewrite the file with supported "
            "types, for example timestamps in microseconds"
        ) from error


def read_footers(files: Files, paths: Sequence[str]) -> dict[str, Read]:
    """Read the footers of *paths*.

    Raises:
        UnsupportedError: A file is not Parquet, is truncated, or is encrypted.
        CorruptLogError: A link leads out of the table.
    """
    footers = map_files(lambda path: _read(files, path), paths, files.uri)
    return dict(zip(paths, footers, strict=True))


def _read(store: Files, path: str) -> Read:
    try:
        with store.open_file(path) as file:
            metadata = pq.read_metadata(file)
            # the first line contains the object's memory address
            columns = str(metadata.schema).partition("\n")[2]
            return Read(
                footer=parse(file.size(), metadata),
                columns=columns,
                obstacles=obstacles(metadata),
                int96=has_int96(metadata),
            )
    except (pa.ArrowException, OSError) as error:
        raise UnsupportedError(
            f"{store.location(path)} cannot be read as Parquet: {error}; restore the file, or move "
            "it out of the folder"
        ) from error


def _refuse_columns(files: Files, footers: Mapping[str, Read]) -> None:
    """Check that Spark reads all columns, and writes them with the same type.

    Raises:
        UnsupportedError: There is a column that it does not.
    """
    for path, facts in footers.items():
        if facts.obstacles:
            raise UnsupportedError(f"{files.location(path)}: column {facts.obstacles[0]}")


def _merge_schemas(schemas: Mapping[str, str]) -> dict[str, Any]:
    """Merge the schemas of files that differ by added columns.

    Args:
        schemas: Each distinct schema in Spark's JSON, by the path of a file that has it.

    Raises:
        UnsupportedError: A column has two types, or two columns differ in case only.
    """
    fields: dict[str, tuple[str, dict[str, Any]]] = {}
    for path, text in schemas.items():
        for field in json.loads(text)["fields"]:
            name = field["name"]
            nullable = field | {"nullable": True}
            first, other = fields.setdefault(name.lower(), (path, nullable))
            if other["name"] != name or other["type"] != nullable["type"]:
                raise UnsupportedError(
                    f"column {name!r} has type {nullable['type']} in {path}, but column "
                    f"{other['name']!r} has type {other['type']} in {first}; files may only differ "
                    "by added columns"
                )
    return {"type": "struct", "fields": [nullable for _, nullable in fields.values()]}
