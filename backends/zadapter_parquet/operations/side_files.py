"""Small files beside a table of Parquet files, and the files of writes that were not committed."""

from zadapter.table.snapshot import Snapshot
from zadapter.table.staged_files import StagedFile, StagedWrite
from zadapter_parquet.format.paths import DATA
from zadapter_parquet.log.log import Log
from zadapter_parquet.rows import staging
from zadapter_parquet.store.contract import Files


def data_folder(write: str) -> str:
    """Return the folder of the files of one write, by the write's id."""
    return f"{DATA}/{write}"


class SideFiles:
    """Small files, and files of writes."""

    def __init__(self, files: Files, table: str) -> None:
        self._files, self._table = files, table
        self.read, self.write, self.root = files.read, files.write, files.uri

    def list_modification_times(self, folder: str) -> dict[str, int]:
        """Return when each file in a folder was modified, by name; none if it does not exist."""
        files = self._files.list_files(folder)
        return {file.path.rpartition("/")[2]: file.modified // 1_000 for file in files}

    def delete(self, path: str) -> None:
        """Delete a file, if it exists."""
        self._files.delete([path])

    def list_staged(self, write: StagedWrite) -> list[StagedFile]:
        """Return the files in the folder of a write."""
        return [
            StagedFile(location=file.path, size=file.size, modified=file.modified // 1_000)
            for file in self._files.list_files(data_folder(write.id))
        ]

    def is_named(self, write: StagedWrite, after: int | None, until: int | None) -> bool:
        """Return whether a log entry after a version, up to another one, names a write's folder.

        Raises:
            CorruptLogError: An entry is missing or damaged.
        """
        if until is None:
            return False
        entries = Log(self._files, self._table).entries_between(
            -1 if after is None else after, until
        )
        return any(entry.folder == data_folder(write.id) for entry in entries)

    def remove(self, write: StagedWrite) -> None:
        """Delete the files of a write."""
        staging.remove(self._files, data_folder(write.id))


def side_files(snapshot: Snapshot) -> SideFiles:
    """Return the files beside a table."""
    return SideFiles(snapshot.handle.files, snapshot.table)
