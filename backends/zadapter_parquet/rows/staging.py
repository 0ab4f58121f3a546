"""Write data files where no other reader takes them for rows of the folder.

Engines that walk a folder find files by the ending ``.parquet``, or right below folders such as
``day=1``.  What stays under ``_zadapter/`` has neither: such engines see version 0.  Spark's writer
insists on both, so files are renamed when it is done.  Until then a guard lies beside them: a file
with the ending that is no Parquet, whose name says what to do. Engines that walk stop at it with an
error instead of reading rows twice.

A file's path still names its partition values, for engines that are given paths.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from zadapter.table.encoding import Encoding
from zadapter.table.orphan_files import remove_folder, removing
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.rows import rows as data
from zadapter_parquet.store import guard_files
from zadapter_parquet.store.contract import Files

DATA = f"{HIDDEN}/data"
ENDING = ".rows"
"""How data files end. Engines that are given a path read it, whatever its ending."""
_BELOW = "rows"
"""Folder between that of a partition and its files."""
_SPARKS_ENDING = ".parquet"
_SPECIAL = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
"""Of ``ExternalCatalogUtils.escapePathName``."""


def write(
    files: Files,
    rows: DataFrame,
    folder: str,
    partition: Sequence[str],
    encoding: Encoding,
    *,
    int96: bool = False,
) -> list[str]:
    """Write each partition of *rows* as one file for each of its partition values.

    Args:
        files: The table's files.
        rows: The rows.
        folder: Within the table; may hold files of the same commit.
        partition: Columns whose values stand in the files' paths and not in the files.
        encoding: How the rows are put into Parquet.
        int96: Whether moments are.

    Returns:
        The paths of the files.

    Raises:
        StoreError: The store does not let us write.
    """
    own = f"{folder}/{uuid4().hex}"
    sparks = f"{own}/{uuid4().hex}"
    # an engine that asks for **/day=*/* must not find what Spark has not finished
    columns = {f"{uuid4().hex}-{at}": name for at, name in enumerate(partition)}
    with _guarded(files, rows.sparkSession, own):
        data.write(rows, files.location(sparks), columns, encoding, int96=int96)
        found = (file.path for file in files.listed(sparks))
        written = sorted(path for path in found if path.endswith(_SPARKS_ENDING))
        renamed = {
            path: f"{own}/{_folders(path.removeprefix(f'{sparks}/'), columns)}{at:06d}{ENDING}"
            for at, path in enumerate(written)
        }
        files.move(renamed)
        # checksums of local files, empty folders
        remove_folder(rows.sparkSession, files.location(sparks))
    return list(renamed.values())


def _folders(path: str, columns: Mapping[str, str]) -> str:
    """Return the partition folders of a file that Spark has written, by the columns' own names."""
    values = [name.split("=", 1) for name in path.split("/")[:-1]]
    named = "".join(f"{_escaped(columns[key])}={value}/" for key, value in values)
    return f"{named}{_BELOW}/" if values else ""


def _escaped(column: str) -> str:
    """Return a column's name as Spark writes it into the name of a folder."""
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", column)


@contextmanager
def _guarded(files: Files, spark: SparkSession, folder: str) -> Iterator[None]:
    """Have engines that walk stop while Spark writes into *folder*; leave nothing after a failure.

    Raises:
        StoreError: The store does not let us write.
    """
    guard = f"{folder}/{guard_files.WRITING}"

    def remove() -> None:
        # no entry of the log speaks of this folder; the guard goes last
        files.delete(sorted((file.path for file in files.listed(folder)), key=guard.__eq__))

    files.write(guard, guard_files.TEXT)
    with removing(spark, remove):
        yield
    files.delete([guard])
