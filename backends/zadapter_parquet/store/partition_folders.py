"""Partition folders of a table, and folders that raise an error since Spark does not read them.

Spark lists files by ``HadoopFSUtils.shouldFilterOutPathName``, and finds partitions by
``PartitioningUtils.parsePartition``. It silently skips some files beside those that it reads, such
as those of a subfolder ``old`` or those beside partition folders. Rows of such files may not join a
table, so these folders raise an error.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from zadapter.errors import UnsupportedError
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.store.contract import ListedFile
from zadapter_parquet.store.hive_names import NULL, partition_folders, texts, value, values


def partition_columns(files: Sequence[ListedFile]) -> tuple[str, ...]:
    """Return the names of the partition columns.

    Raises:
        UnsupportedError: Spark does not read one of the files, files differ in partition columns, a
            folder has no column or value, or two columns differ in case only.
    """
    partitioned = [file.path for file in files if partition_folders(file.path)]
    for file in files:
        _check_read(file.path, partitioned)
    first = tuple(column for column, _ in texts(partitioned[0])) if partitioned else ()
    if len({name.lower() for name in first}) < len(first):
        raise UnsupportedError(
            f"{partitioned[0]} is in two folders of one partition column, or of columns that "
            f"differ only in case: {', '.join(first)}; rename one of the folders"
        )
    for path in partitioned:
        _check_folders(path, partitioned[0], first)
    return first


def _check_read(path: str, partitioned: Sequence[str]) -> None:
    """Check that Spark reads a file, given the files in partition folders.

    Raises:
        UnsupportedError: Spark skips it, or stops at its folder.
    """
    folders, kept = path.split("/")[:-1], partition_folders(path)
    if partitioned and not kept:
        where = f"the folder {'/'.join(folders)!r}" if folders else "the folder itself"
        raise UnsupportedError(
            f"{path} is in {where}, but {partitioned[0]} is in a partition folder, so Spark does "
            "not read both; move it out of the table's folder, or into a partition folder"
        )
    if folders and not partitioned:
        raise UnsupportedError(
            f"{path} is in the folder {folders[0]!r}, which Spark does not read as part of the "
            "table, since its name is not of the form column=value; move the folder out of the "
            "table's folder, or its files directly into the table's folder"
        )
    if folders[: len(kept)] != kept:
        at = folders.index(next(name for name in folders if "=" not in name))
        raise UnsupportedError(
            f"{path} is in the folder {folders[at]!r}, which is not a partition, above the "
            f"partition folder {kept[-1]!r}; pass {'/'.join(folders[: at + 1])!r} as the table"
        )


def _check_folders(path: str, first: str, columns: tuple[str, ...]) -> None:
    """Check the partition folders of a file, given those of the first file.

    Raises:
        UnsupportedError: The columns differ, or a column's name or value is empty.
    """
    found = texts(path)
    for column, text in found:
        if not column or not text:
            raise UnsupportedError(
                f"{path} is in a partition folder without a {'value' if column else 'column'}; "
                "rename the folder"
            )
        if value(text) == NULL:
            raise UnsupportedError(
                f"{path} has the partition value {NULL!r}, which other readers take for null; "
                "rename the folder"
            )
    if tuple(column for column, _ in found) != columns:
        raise UnsupportedError(
            f"{path} has the partition columns {[column for column, _ in found]}, but {first} has "
            f"{list(columns)}; rename the folders, or move one of them out of the table's folder"
        )


@dataclass(frozen=True, kw_only=True)
class PartitionFolders:
    """Names of a table's partition folders, which rewrites keep as they are.

    Other programs escape other characters than Spark: ``city=New%20York``.
    """

    types: Mapping[str, pa.DataType] = field(default_factory=dict[str, pa.DataType])
    """Types of the partition columns."""
    names: Mapping[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])
    """Folders below the table's folder, by the values of the partition columns."""

    def match_folders(self, folders: Iterable[str]) -> dict[str, str]:
        """Return the table's folder of the same values for each folder, or that folder itself."""
        if not self.types:
            return {folder: folder for folder in folders}
        return {folder: self.names.get(key, folder) for folder, key in _keys(folders, self.types)}


def folders_of(paths: Iterable[str], types: Mapping[str, pa.DataType]) -> PartitionFolders:
    """Return the partition folders of files.

    Names of visible folders take precedence: older releases of zadapter named the others by Spark.

    Raises:
        UnsupportedError: Two folders have the same values, so a rewrite would merge them.
    """
    if not types:
        return PartitionFolders()
    folders: dict[bool, list[str]] = {True: [], False: []}
    for path in paths:
        folders[path.startswith(f"{HIDDEN}/")].append("/".join(partition_folders(path)))
    names = {key: folder for folder, key in _keys(folders[True], types)}
    theirs: dict[tuple[object, ...], str] = {}
    for folder, key in _keys(folders[False], types):
        other = theirs.setdefault(key, folder)
        if other != folder:
            raise UnsupportedError(
                f"the partition folders {other!r} and {folder!r} have the same values "
                f"({', '.join(map(repr, key))}), so a rewrite would merge them; rename one of them "
                "before zadapter first writes to the table, or write the rows into a new folder"
            )
    return PartitionFolders(types=types, names=names | theirs)


def _keys(
    folders: Iterable[str], types: Mapping[str, pa.DataType]
) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield each distinct folder, and the values of the partition columns in its name."""
    distinct = list(dict.fromkeys(folders))
    paths = [f"{folder}/" for folder in distinct]
    columns = [values(paths, name, type_).to_pylist() for name, type_ in types.items()]
    yield from zip(distinct, zip(*columns, strict=True), strict=True)
