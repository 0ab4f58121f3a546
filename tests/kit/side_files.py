"""Files beside a table, in memory."""

from datetime import datetime, timezone

from zadapter.errors import StoreError
from zadapter.table.staged_files import StagedFile


class Memory:
    """Files beside a table, and files of writes, by the write's id.

    *now* is the store's clock; that of the machine does not matter.
    """

    def __init__(self, root):
        self.files, self.writes, self.broken, self.named = {}, {}, set(), set()
        self.times, self.now = {}, datetime.now(timezone.utc)
        self.root = root

    def list_modification_times(self, folder):
        self._check("list_modification_times")
        names = {path: path.rpartition("/")[2] for path in self.files if path.startswith(folder)}
        return {name: milliseconds(self.times[path]) for path, name in names.items()}

    def read(self, path):
        self._check("read")
        return self.files.get(path)

    def write(self, path, data):
        self._check("write")
        self.files[path], self.times[path] = data, self.now

    def delete(self, path):
        self._check("delete")
        self.files.pop(path, None)

    def list_staged(self, write):
        self._check("list_staged")
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
        modified = milliseconds(modified or self.now)
        self.writes[write.id] = [StagedFile(location=write.id, size=1024, modified=modified)]


def milliseconds(time):
    return int(time.timestamp() * 1_000)
