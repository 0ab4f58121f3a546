"""Selection of the store of a table."""

import re
from pathlib import Path

from pyspark.sql import SparkSession

from zadapter.base.distribution import install_command
from zadapter.base.locations import path_of, reachable, unescape_uri
from zadapter.errors import MissingBackendError
from zadapter.spark.jvm.gateway import java_session
from zadapter.spark.jvm.java_classes import java_classes
from zadapter_parquet.store import catalog_tables, s3
from zadapter_parquet.store.contract import Files
from zadapter_parquet.store.hadoop import SCHEME, HadoopFiles
from zadapter_parquet.store.local import LocalFiles, local_path


def open_files(spark: SparkSession, table: str, *, make: bool = False) -> Files:
    """Open the files of *table*: a path, a URI, ``parquet.`path```, or a table of the catalog.

    Args:
        spark: A session, which provides the settings of stores.
        table: The table as the caller named it.
        make: Whether to create a missing folder.

    Raises:
        MissingBackendError: The table is in an object store, and obstore is not installed.
    """
    by_path = catalog_tables.BY_PATH.match(table)
    location = by_path["path"].replace("``", "`") if by_path else table
    is_path = by_path and re.search(r"[/\\:]", location)  # else a database may have that name
    listed = None if is_path or make else catalog_tables.find_table(spark, table)
    if listed is not None:  # a catalog has an escaped URI
        location = listed.location
        if location.startswith("file:"):
            return LocalFiles(Path(path_of(location)), make=make)
        location = unescape_uri(location)
    root = local_path(location)
    if root is not None:
        return LocalFiles(root, make=make)
    location = reachable(java_classes(spark), java_session(spark), location)
    if location.startswith(f"{SCHEME}:"):
        return HadoopFiles(spark, location, make=make)
    try:  # local folders and HDFS need no obstore
        from zadapter_parquet.store.object_store import ObjectFiles  # noqa: PLC0415
    except ModuleNotFoundError as error:
        hint = f"require {error.name}; {install_command('parquet')}"
        raise MissingBackendError(f"{location}: Parquet tables in object stores {hint}") from error
    return ObjectFiles(location, s3.options(spark, location))
