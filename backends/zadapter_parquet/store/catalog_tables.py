"""Parquet tables of the session's catalog, such as a Hive metastore.

Readers of such a table list the folders of its partitions in the catalog, or the table's folder.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from zadapter.base.java_errors import first_line
from zadapter.base.locations import bare, folders_below, remove_new_warehouse, unescape_uri
from zadapter.base.names import quote, split
from zadapter.errors import (
    EngineError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
)
from zadapter.spark.jvm import spark_names
from zadapter.spark.jvm.gateway import Py4JJavaError, java_session
from zadapter.spark.jvm.java_classes import java_classes
from zadapter_parquet.store import guard_files, hive_names
from zadapter_parquet.store.contract import ListedFile
from zadapter_parquet.store.hive_names import is_folder_type

BY_PATH = re.compile(r"(?i)parquet\.`(?P<path>(?:[^`]|``)+)`\Z")
"""A table that is named by its path."""
_TABLE = re.compile(r"^Table: (.*)$", re.MULTILINE)
_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)
_PARQUET = "parquet"
_logger = logging.getLogger(__name__)
_BUILT_IN = {"avro", "csv", "hive", "jdbc", "json", "orc", "text", "xml"}
"""Providers of Spark that no format of zadapter reads."""
_SELECTING = {"pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup"}
"""Options by which readers choose files."""
_PARTITION = re.compile(r"\tPartition Values: \[(.*?)\]\n\tLocation: (.*?)\n\t", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class CatalogTable:
    """A Parquet table of the session's catalog."""

    name: str
    """Quoted identifier."""
    location: str
    """Escaped URI of the folder."""
    partition: Mapping[str, str]
    """Types of the partition columns in Spark's schema JSON."""
    tracked: bool
    """Whether readers take the partitions from the catalog."""
    has_stats: bool

    def types(self, inferred: Mapping[str, str]) -> dict[str, str]:
        """Return the types of partition columns, given those inferred from folder names.

        Folder names such as ``p=01`` are text or numbers, as in the catalog. They are text if the
        values of the catalog's type have several texts, such as times.
        """
        by_name = {name.lower(): type_ for name, type_ in self.partition.items()}
        stated = {name: by_name.get(name.lower(), type_) for name, type_ in inferred.items()}
        return {
            name: type_ if is_folder_type(type_) else "string" for name, type_ in stated.items()
        }


def find_table(spark: SparkSession, table: str) -> CatalogTable | None:
    """Return the table of the session's catalog with a name, or None if it can only be a path.

    Raises:
        UnknownTableError: The table has the format of another backend, or is in another catalog.
        UnsupportedError: It is bucketed, or its readers choose files by an option.
        UsageError: It is a view, or no backend supports its provider.
    """
    if spark_names.is_path(table):
        return None
    state: Any = java_session(spark).sessionState()
    with remove_new_warehouse(spark):
        identifier, other = spark_names.in_session_catalog(spark, table)
        if other is not None and "view" in other:
            raise UsageError(f"{table} is {other}; pass its underlying table, or its path")
        if other is not None:
            raise UnknownTableError(f"{table} is {other}, not a Parquet table")
        if identifier is None or not state.catalog().tableExists(identifier):
            return None
        return _check_entry(table, state.catalog().getTableMetadata(identifier))


def find_table_at(spark: SparkSession, location: str) -> CatalogTable | None:
    """Return the Parquet table of the session's catalog whose folder is at a location, or None.

    Args:
        spark: The session.
        location: Location of a folder, unescaped.

    Raises:
        UnsupportedError: The table is bucketed, its readers choose files by an option, or the
            folder is one of its partitions.
    """
    state: Any = java_session(spark).sessionState()
    with remove_new_warehouse(spark):
        for entry in _entries(state, location):
            name = quote(_parts(entry))
            below = folders_below(location, unescape_uri(str(entry.location())))
            try:
                _check_provider(name, entry)
            except ZadapterError:  # its readers do not take the folder for Parquet
                continue
            if below == ():
                return _check_entry(name, entry)
            if below and "=" in below[0]:
                raise UnsupportedError(
                    f"{location} is a partition of {name}, a table of the session's catalog; pass "
                    "that table, with a condition on its partition columns"
                )
    return None


def _entries(state: Any, location: str) -> list[Any]:
    """Return the catalog entries of tables whose folder contains the location.

    If the catalog does not answer, the list is empty.

    A path can be read and rewritten without the metastore, as Spark itself does.
    """
    try:
        return list(_near(state.catalog().externalCatalog(), location))
    except (Py4JJavaError, PySparkException) as error:
        _logger.warning(
            "the tables of the session's catalog cannot be listed, so %s is taken for a folder of "
            "no table: %s",
            location,
            first_line(error),
        )
        return []


def _near(catalog: Any, location: str) -> Iterator[Any]:
    """Yield the entries of tables in whose folder a location is."""
    for database in str(catalog.listDatabases().mkString("\n")).splitlines():
        try:
            names = catalog.listTables(database)
            # one text: a call for each table would take seconds
            entries = str(catalog.getTablesByName(database, names).mkString("\n"))
        except (Py4JJavaError, PySparkException):  # a database of others, which may not be listed
            continue
        for text in entries.split("CatalogTable(\n"):
            name, uris = _TABLE.search(text), _LOCATION.findall(text)
            # what is printed may be escaped or not, so the entry itself decides
            near = (
                folders_below(location, each) for uri in uris for each in (uri, unescape_uri(uri))
            )
            if name and any(folders is not None for folders in near):
                yield catalog.getTable(database, name[1])


def _parts(entry: Any) -> tuple[str, str, str]:
    identifier = entry.identifier()
    return spark_names.SESSION, str(identifier.database().get()), str(identifier.table())


def _check_entry(table: str, entry: Any) -> CatalogTable:
    _check_provider(table, entry)
    if entry.bucketSpec().isDefined():
        raise UnsupportedError(
            f"{table} is bucketed, and rewritten files would be in no bucket; pass another table"
        )
    options = entry.storage().properties()
    keys = {key.lower() for key in options.keys().mkString("\n").splitlines()}
    if selecting := sorted(keys & _SELECTING):
        raise UnsupportedError(
            f"{table} has the option {selecting[0]}, by which its readers choose files, so its "
            "rows are unknown; create the table without it"
        )
    fields = json.loads(str(entry.partitionSchema().json()))["fields"]
    return CatalogTable(
        name=quote(_parts(entry)),
        location=str(entry.location()),
        partition={field["name"]: str(field["type"]) for field in fields},
        tracked=bool(entry.tracksPartitionsInCatalog()) and bool(fields),
        has_stats=bool(entry.stats().isDefined()),
    )


def _check_provider(table: str, entry: Any) -> None:
    if str(entry.tableType().name()) == "VIEW":
        raise UsageError(f"{table} is a view; pass its underlying table")
    provider = str(entry.provider().get()).lower() if entry.provider().isDefined() else "hive"
    serde = str(entry.storage().serde().get()) if entry.storage().serde().isDefined() else ""
    if provider == _PARQUET or (provider == "hive" and _PARQUET in serde.lower()):
        return
    if provider in _BUILT_IN:
        raise UsageError(
            f"{table} is a table of provider {provider}, which no backend of zadapter supports"
        )
    raise UnknownTableError(f"{table} is a {provider} table, not a Parquet table")


def check_partitions(spark: SparkSession, table: CatalogTable, files: Iterable[ListedFile]) -> None:
    """Check that the partitions of the catalog are the partition folders of the table.

    Args:
        spark: The session.
        table: The table.
        files: Files of the table's folder.

    Raises:
        UnsupportedError: A partition has a location of its own, or a folder is no partition.
    """
    if not table.tracked:
        return
    known = _partitions(spark, table)
    for file in hive_names.visible(files):
        folder = file.path.rpartition("/")[0]
        if guard_files.stands_for(file.path) or _parse_partition_values(folder) in known:
            continue
        raise UnsupportedError(
            f"{table.name}: the folder {folder!r} is not a partition in the catalog, so readers "
            f"do not see its rows; run MSCK REPAIR TABLE {table.name}, or move the folder away"
        )


def _partitions(spark: SparkSession, table: CatalogTable) -> set[tuple[str, ...]]:
    """Return the values of the partitions in the catalog.

    Raises:
        UnsupportedError: A partition has a location of its own.
    """
    jvm = java_classes(spark)
    state: Any = java_session(spark).sessionState()
    name = spark_names.Name(spark_names.SESSION, split(table.name)[1:])
    identifier = spark_names.session_identifier(spark, name)
    partitions = state.catalog().listPartitions(identifier, jvm.scala.Option.empty())
    root = f"{_path(unescape_uri(table.location))}/"
    known = set[tuple[str, ...]]()
    # one text: a call for each partition would take seconds
    for spec, location in _PARTITION.findall(str(partitions.mkString("\n"))):
        folder = _path(location).removeprefix(root)
        values = _parse_partition_values(folder)
        if set(spec.split(", ")) not in _specs(folder, table.partition):
            raise UnsupportedError(
                f"{table.name}: partition [{spec}] is at {location}, not in the folder of its name "
                "in the table's folder; move its files there, or pass another table"
            )
        known.add(values)
    return known


def _path(location: str) -> str:
    return bare(location).rstrip("/")


def _parse_partition_values(folder: str) -> tuple[str, ...]:
    """Return the partition values in the name of a folder."""
    return tuple(unquote(name.partition("=")[2]) for name in folder.split("/"))


def _specs(folder: str, columns: Iterable[str]) -> list[set[str]]:
    """Return the partition of a folder in each way that the catalog prints it; none if it is none.

    The order of the columns varies. Spark prints null, or the folder's name for it.
    """
    names = [unquote(name.partition("=")[0]).lower() for name in folder.split("/")]
    if names != [column.lower() for column in columns]:
        return []
    spec = ", ".join(
        f"{c}={v}" for c, v in zip(columns, _parse_partition_values(folder), strict=True)
    )
    return [set(text.split(", ")) for text in (spec, spec.replace(f"={hive_names.NULL}", "=null"))]


def refresh(spark: SparkSession, table: CatalogTable) -> None:
    """Make readers of the catalog see the files and partitions that are in the folder now.

    Raises:
        EngineError: The catalog fails; the folder itself is complete.
    """
    statements = [f"MSCK REPAIR TABLE {table.name} SYNC PARTITIONS"] if table.tracked else []
    statements.append(f"REFRESH TABLE {table.name}")
    if table.has_stats:
        statements.append(f"ANALYZE TABLE {table.name} COMPUTE STATISTICS NOSCAN")
    try:
        for statement in statements:
            spark.sql(statement)
    except Exception as error:
        raise EngineError(
            f"{table.name}: the folder was published, but the catalog was not refreshed: "
            f"{first_line(error)}; run {'; '.join(statements)}"
        ) from error
