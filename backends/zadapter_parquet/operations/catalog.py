"""Tables that may be listed in the session's catalog: current version, publication and vacuum."""

from dataclasses import replace
from datetime import timedelta

from pyspark.sql import SparkSession

from zadapter.errors import EngineError, UnsupportedError
from zadapter.table.snapshot import Published, Snapshot, Vacuumed
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version, snapshot
from zadapter_parquet.operations import external_changes, publishing, registration, vacuuming
from zadapter_parquet.store import catalog_tables
from zadapter_parquet.store.catalog_tables import CatalogTable
from zadapter_parquet.store.open import open_files


def current(spark: SparkSession, table: str) -> Snapshot:
    """Return the current version, which is None for a folder without a log.

    Raises:
        UnknownTableError: The folder has no Parquet files.
        UnsupportedError: Its files do not form one table, or not that of the catalog, which has
            the table's name or location.
        CorruptLogError: The log is damaged.
        ForeignChangeError: Visible files were added, changed or removed outside the log.
    """
    listed_as = catalog_tables.find_table(spark, table)
    files = open_files(spark, table)
    if listed_as is not None:
        catalog_tables.check_partitions(spark, listed_as, files.list_files())
    log = Log(files, table)
    if log.exists():
        version = Version(entry=external_changes.check_folder(log, files, table))
    else:
        owner = listed_as or catalog_tables.find_table_at(spark, files.uri)
        version = registration.read_folder(spark, files, table, owner)
    found = snapshot(table, files, version)
    if listed_as is None:
        return found
    _check_columns(listed_as, found)
    return replace(found, identifier=listed_as.name)


def _check_columns(listed_as: CatalogTable, found: Snapshot) -> None:
    """Check that the partition columns are those of the catalog.

    Raises:
        UnsupportedError: They are not, or text such as ``01`` would become a number.
    """
    stated, actual = list(listed_as.partition), list(found.partition)
    if [name.lower() for name in stated] != [name.lower() for name in actual]:
        raise UnsupportedError(
            f"{found.table} is partitioned by {stated} in the catalog, but its folders are by "
            f"{actual}; create the table in the catalog with the columns of its folders"
        )
    for name, type_ in zip(stated, found.partition.values(), strict=True):
        if listed_as.partition[name] == "string" and str(type_) != "string":
            raise UnsupportedError(
                f"{found.table}: partition column {name!r} is a string in the catalog, but {type_} "
                "in the table's log, which was created by its path; pass the path"
            )


def publish(spark: SparkSession, table: str, *, dry_run: bool) -> Published:
    """Publish the newest version, also to readers of the catalog.

    Raises:
        EngineError: The folder was published, but the catalog was not refreshed.
    """
    listed_as = catalog_tables.find_table(spark, table)
    files = open_files(spark, table)
    if listed_as is not None:
        catalog_tables.check_partitions(spark, listed_as, files.list_files())
    publication = publishing.publish(files, table, dry_run=dry_run)
    if listed_as is not None and not dry_run:
        try:
            catalog_tables.refresh(spark, listed_as)
        except EngineError as error:
            error.committed = bool(publication.versions)
            raise
    return publication


def vacuum(spark: SparkSession, table: str, older_than: timedelta, *, dry_run: bool) -> Vacuumed:
    """Delete files of old versions, except files that readers of the catalog see.

    Raises:
        UnsupportedError: Readers of the catalog see some of the files.
    """
    keep_visible = catalog_tables.find_table(spark, table) is not None
    files = open_files(spark, table)
    return vacuuming.vacuum(files, table, older_than, dry_run=dry_run, keep_visible=keep_visible)
