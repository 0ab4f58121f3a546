"""Files beside a table, in memory."""

from datetime import datetime, timezone

from zadapter.errors import StoreError
from zadapter.table.staged_files import StagedFile


class Memory:
    """Files beside a table, and files of writes, by the write's id."""

    def __init__(self, root):
        self.files, self.writes, self.broken, self.named = {}, {}, set(), set()
        self.root = root

    def names(self, folder):
        self._check("names")
        return [path.rpartition("/")[2] for path in self.files if path.startswith(folder)]

    def read(self, path):
        self._check("read")
        return self.files.get(path)

    def write(self, path, data):
        self._check("write")
        self.files[path] = data

    def delete(self, path):
        self._check("delete")
        self.files.pop(path, None)

    def staged(self, write):
        self._check("staged")
        return self.writes.get(write.id, [])

    def is_named(self, write, after, until):
        self._check("is_named")
        return write.id in self.named

    def remove(self, write):
        self._check("remove")
        self.writes.pop(write.id, None)

    def _check(self, method):
        if method in self.broken:
            raise StoreError(f"{method} fails")

    def stage(self, write, modified=None):
        modified = modified or datetime.now(timezone.utc)
        file = StagedFile(location=write.id, size=1024, modified=int(modified.timestamp() * 1_000))
        self.writes[write.id] = [file]
