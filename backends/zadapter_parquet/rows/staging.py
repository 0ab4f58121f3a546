"""Writes of data files that engines do not read as part of the folder.

Engines that walk a folder find files by the suffix ``.parquet``, or directly below folders such as
``day=1``. Files under ``_zadapter/`` have neither, so these engines read version 0. Spark's writer
creates both, so its files are renamed after the write. Until then, a guard is beside them: a file
with the suffix that is not Parquet, whose name states what to do. Engines that walk the folder fail
at it instead of reading rows twice.

The path of a data file contains its partition values, for engines that read paths.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from zadapter.spark.jvm.removal import remove_folder, removing
from zadapter.table.encoding import Encoding
from zadapter_parquet.rows import rows as data
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files
from zadapter_parquet.store.partition_folders import PartitionFolders

ENDING = ".rows"
"""Suffix of data files. Engines read a given path with any suffix."""
_PART = re.compile(r"/part-(\d+)-[^/]*\Z")
_ROWS_FOLDER = "rows"
"""Folder between a partition folder and its files."""
_SPARK_SUFFIX = ".parquet"
_SPECIAL = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""Characters that Spark escapes in folder names (``ExternalCatalogUtils.escapePathName``)."""


def write(
    files: Files,
    rows: DataFrame,
    folder: str,
    partition: PartitionFolders,
    encoding: Encoding,
    *,
    int96: bool = False,
) -> list[str]:
    """Write each partition of *rows* as one file per partition value.

    Args:
        files: The table's files.
        rows: The rows.
        folder: Folder within the table; it may contain files of the same commit.
        partition: Columns whose values are in the files' paths only, and the table's folders.
        encoding: Parquet encoding of the rows.
        int96: Whether timestamps are stored as INT96.

    Returns:
        Paths of the files.

    Raises:
        StoreError: The store rejects writes.
    """
    own = f"{folder}/{uuid4().hex}"
    source = f"{own}/{uuid4().hex}"
    # a pattern such as **/day=*/* must not match files that Spark is writing
    columns = {f"{uuid4().hex}-{at}": name for at, name in enumerate(partition.types)}
    with _guard_folder(files, rows.sparkSession, own):
        data.write(rows, files.location(source), columns, encoding, int96=int96)
        paths = (file.path for file in files.list_files(source))
        written = sorted(path for path in paths if path.endswith(_SPARK_SUFFIX))
        folders = {path: _folders(path.removeprefix(f"{source}/"), columns) for path in written}
        kept = partition.match_folders(folders.values())
        renamed = {
            path: f"{own}/{_below(kept[folders[path]])}{_task(path)}{ENDING}" for path in written
        }
        files.move(renamed)
        # removes checksum files and empty folders
        remove_folder(rows.sparkSession, files.location(source))
    return list(renamed.values())


def _task(path: str) -> str:
    """Return the number of the task that has written a file, in six digits or more."""
    return f"{int(_PART.search(path)[1]):06d}"  # type: ignore[index]


def _folders(path: str, columns: Mapping[str, str]) -> str:
    """Return the partition folders of a file that Spark has written, with the columns' names."""
    values = [name.split("=", 1) for name in path.split("/")[:-1]]
    return "/".join(f"{_escape_column(columns[key])}={value}" for key, value in values)


def _below(folders: str) -> str:
    """Return the folder of files in partition folders, which ends with a slash."""
    return f"{folders}/{_ROWS_FOLDER}/" if folders else ""


def _escape_column(column: str) -> str:
    """Escape a column's name as Spark does in folder names."""
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", column)


@contextmanager
def _guard_folder(files: Files, spark: SparkSession, folder: str) -> Iterator[None]:
    """Guard *folder* while Spark writes into it, and empty it after a failure.

    Raises:
        StoreError: The store rejects writes.
    """
    guard = f"{folder}/{guard_files.WRITING}"

    # no log entry names this folder. Spark's committer removes what repeated tasks have written
    files.write(guard, guard_files.TEXT)
    with removing(spark, lambda _: remove(files, folder)):
        yield
    files.delete([guard])


def remove(files: Files, folder: str) -> None:
    """Delete the files of writes in a folder, the guards against engines that walk it last."""
    paths = (file.path for file in files.list_files(folder))
    files.delete(sorted(paths, key=lambda path: path.endswith(f"/{guard_files.WRITING}")))
