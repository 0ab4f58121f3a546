"""Small files in an Iceberg table's folder, accessed through the table's FileIO."""

from collections.abc import Collection, Iterator
from functools import cached_property

from zadapter.base.java_errors import causes
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import StagedFile, StagedWrite
from zadapter_iceberg.jvm import JavaObject
from zadapter_iceberg.table.files_table import is_in_any_snapshot
from zadapter_iceberg.table.snapshots import Version

_HADOOP = "org.apache.iceberg.hadoop.HadoopFileIO"
"""It lists folders; others list keys by their prefix, and no folder exists there."""


def data_folder(table: JavaObject, write: StagedWrite) -> str:
    """Return the folder of the files of one write."""
    data = _data_path(table) or f"{table.location()}/data"
    layout = "" if write.layout is None else f"/zadapter-{write.layout}"
    return f"{data.rstrip('/')}{layout}/{write.id}"


def _data_path(table: JavaObject) -> str:
    """Return the folder for data files in the table's properties, or an empty text."""
    return str(table.properties().getOrDefault("write.data.path", ""))


class Store:
    """Files in one table's folder.

    Iceberg's ``remove_orphan_files`` ignores names that start with an underscore.
    """

    def __init__(self, table: JavaObject, version: Version | None = None) -> None:
        self._table, self._version = table, version
        self._io = table.io()
        self._location = table.location()

    @cached_property
    def root(self) -> str:
        """The folder of the table's data, or the table's."""
        return _data_path(self._table) or str(self._location)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it does not exist."""
        file = self._io.newInputFile(f"{self._location}/{path}")
        if not file.exists():
            return None
        stream = file.newStream()
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, path: str, data: bytes) -> None:
        """Create or overwrite a file."""
        stream = self._io.newOutputFile(f"{self._location}/{path}").createOrOverwrite()
        try:
            stream.write(bytearray(data))
        finally:
            stream.close()

    def list_modification_times(self, folder: str) -> dict[str, int]:
        """Return when each file in a folder was modified, by name; none if it does not exist."""
        files = _list_infos(self._io, f"{self._location}/{folder}/")
        return {str(f.location()).rpartition("/")[2]: int(f.createdAtMillis()) for f in files}

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._io.deleteFile(f"{self._location}/{path}")

    def list_staged(self, write: StagedWrite) -> list[StagedFile]:
        """Return the files in the folder of a write."""
        return [
            StagedFile(
                location=str(file.location()),
                size=int(file.size()),
                modified=int(file.createdAtMillis()),
            )
            for file in _list_infos(self._io, f"{data_folder(self._table, write)}/")
        ]

    def is_named(self, write: StagedWrite, after: int | None, until: int | None) -> bool:  # noqa: ARG002 - all snapshots are asked
        """Return whether a snapshot of any branch or tag names files of a write."""
        return self._version is not None and is_in_any_snapshot(self._version, f"/{write.id}/")

    def remove(self, write: StagedWrite) -> None:
        """Delete the folder of a write."""
        remove_from(self._io, data_folder(self._table, write), ())


def remove_from(io: JavaObject, folder: str, kept: Collection[str]) -> None:
    """Delete the files in a folder except those of the names *kept*; without names, all of it."""
    if not kept:
        io.deletePrefix(folder)
        return
    locations = [str(file.location()) for file in _list_infos(io, f"{folder}/")]
    for location in locations:
        if location.rpartition("/")[2] not in kept:
            io.deleteFile(location)


def _list_infos(io: JavaObject, prefix: str) -> Iterator[JavaObject]:
    """Yield the ``FileInfo`` of all files below *prefix*, which ends in a slash."""
    # most tables have no such folder, and PySpark converts exceptions in 20 to 50 ms
    if str(io.getClass().getName()) == _HADOOP and not io.newInputFile(prefix).exists():
        return
    try:
        found = io.listPrefix(prefix).iterator()
        while found.hasNext():
            yield found.next()
    except Exception as error:
        if not any("FileNotFoundException" in cause for cause in causes(error)):
            raise


def side_files(snapshot: Snapshot) -> Store:
    """Return the files beside a table."""
    return Store(snapshot.handle.pinned, snapshot.handle)
