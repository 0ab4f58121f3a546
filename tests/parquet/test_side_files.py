"""The files of a write that was never committed."""

from uuid import UUID

from tests.parquet.kit.log import MemoryStore
from zadapter.table.staged_files import StagedWrite
from zadapter_parquet.operations.side_files import SideFiles, data_folder
from zadapter_parquet.store.guard_files import TEXT, WRITING


class Noting(MemoryStore):
    """A store that notes what was deleted, in order."""

    def delete(self, paths):
        self.deleted = list(paths)
        super().delete(self.deleted)


def test_guards_are_deleted_last():
    """Until then an engine that walks the folder meets one, and fails."""
    files, write = Noting(), UUID(int=7).hex
    folder = data_folder(write)
    for own in ("a", "b"):
        files.write(f"{folder}/{own}/{WRITING}", TEXT)
        files.write(f"{folder}/{own}/x/part-0.parquet", b"rows")

    SideFiles(files, "t").remove(StagedWrite(id=write, layout=None))

    assert files.held == {}
    assert [path.endswith(WRITING) for path in files.deleted] == [False, False, True, True]
