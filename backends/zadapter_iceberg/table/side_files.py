"""Small files in an Iceberg table's folder, accessed through the table's FileIO."""

from collections.abc import Iterator

from zadapter.base.java_errors import causes
from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_write import StagedFile, StagedWrite
from zadapter_iceberg.jvm import JavaObject


def data_folder(table: JavaObject, write: StagedWrite) -> str:
    """Return the folder of the files of one write."""
    data = dict(table.properties()).get("write.data.path", f"{table.location()}/data").rstrip("/")
    layout = "" if write.layout is None else f"/zadapter-{write.layout}"
    return f"{data}{layout}/{write.id}"


class Store:
    """Files in one table's folder.

    Iceberg's ``remove_orphan_files`` ignores names that start with an underscore.
    """

    def __init__(self, table: JavaObject) -> None:
        self._table = table
        self._io = table.io()
        self._location = table.location()

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

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none if it does not exist."""
        listed = self._listed(f"{self._location}/{folder}/")
        return [str(file.location()).rpartition("/")[2] for file in listed]

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._io.deleteFile(f"{self._location}/{path}")

    def staged(self, write: StagedWrite) -> list[StagedFile]:
        """Return the files in the folder of a write."""
        return [
            StagedFile(
                location=str(file.location()),
                size=int(file.size()),
                modified=int(file.createdAtMillis()),
            )
            for file in self._listed(f"{data_folder(self._table, write)}/")
        ]

    def remove(self, write: StagedWrite) -> None:
        """Delete the folder of a write."""
        self._io.deletePrefix(data_folder(self._table, write))

    def _listed(self, prefix: str) -> Iterator[JavaObject]:
        """Yield the ``FileInfo`` of all files below *prefix*, which ends in a slash."""
        try:
            found = self._io.listPrefix(prefix).iterator()
            while found.hasNext():
                yield found.next()
        except Exception as error:
            if not any("FileNotFoundException" in cause for cause in causes(error)):
                raise


def side_files(snapshot: Snapshot) -> Store:
    """Return the files beside a table."""
    return Store(snapshot.handle.pinned)
