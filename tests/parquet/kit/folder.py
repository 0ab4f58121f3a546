"""A table of Parquet files on local disk, with the real code at work; only Spark is left out."""

import json
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.builders import fitted
from tests.parquet.kit.world import Loop
from zadapter.backend.commit import Backoff, publish
from zadapter.table.footers import file_table
from zadapter.table.snapshot import Change, Exchange, Rewrite, Written, chosen
from zadapter_parquet import ParquetBackend
from zadapter_parquet.format.paths import HIDDEN
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes, move_plan, registration
from zadapter_parquet.rows import rows, staging

COLUMNS = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}],
    }
)
LAYOUT = fitted([[1, 2, 3]], 1)
AT_ONCE = Backoff(attempts=3, initial=0.0)


def put(path, numbers):
    """Write a data file, as Spark does in earnest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)


def made(root):
    """A folder of two files, which is no table yet."""
    put(root / "one.parquet", [0, 1])
    put(root / "two.parquet", [2, 3])
    return Folder(root)


class Backend(ParquetBackend):
    """The backend, told what only Spark can tell: which columns the files have."""

    def snapshot(self, table, since=None):
        with patch.object(rows, "schema_of", lambda spark, location: COLUMNS):
            return super().snapshot(table, since)


class Folder:
    """A table with the column ``n``, as one process sees it."""

    def __init__(self, root):
        self.root, self.table, self.backend = Path(root), str(root), Backend(None)

    def snapshot(self, version=None):
        if version in {None, registration.UNREGISTERED}:
            return self.backend.snapshot(self.table)
        return self.backend.at(self.table, version)

    def live(self, version=None):
        """The files of a version, after a look that each is there and as long as it was."""
        snapshot = self.snapshot(version)
        files = self.backend.files(snapshot)
        external_changes.check_live(
            snapshot.handle.files, self.table, snapshot.handle.version.head, files
        )
        return files

    def rows(self, version=None):
        """The rows of a version, each as often as it is in the files."""
        snapshot, live = self.snapshot(version), self.live(version)
        return sorted(self._read(live["path"].to_pylist(), snapshot))

    def walked(self):
        """The rows that an engine sees which reads all files ending in ``.parquet``."""
        found = [path.relative_to(self.root) for path in self.root.rglob("*.parquet")]
        return sorted(self._read(found))

    def hidden(self, kind):
        """The files of a kind that zadapter has written."""
        return {p for p in (self.root / HIDDEN / kind).rglob("*") if p.is_file()}

    def _read(self, paths, snapshot=None):
        if snapshot is not None:
            paths = move_plan.places(snapshot.handle.files, snapshot.handle.version.head, paths)
        found = [pq.read_table(self.root / path, partitioning=None) for path in paths]
        return [n for table in found for n in table["n"].to_pylist()]

    def versions(self):
        """The rows of every version that can be read."""
        entry = self.snapshot().handle.version.entry
        first = min(entry.oldest, entry.version)
        return {version: self.rows(version) for version in range(first, entry.version + 1)}

    def commits(self):
        """The ids of all commits; none, if the folder is no table yet."""
        if self.snapshot().version == registration.UNREGISTERED:
            return set()
        return {commit.id for commit in self.backend.history(self.table)}

    def register(self):
        snapshot = self.snapshot()
        version = snapshot.handle.version
        if version.found is not None:
            files = snapshot.handle.files
            registration.register(Log(files, self.table), files, version, version.found)

    def append(self, numbers, **said):
        snapshot = self.snapshot()
        return self.add(snapshot, self.stage(snapshot, numbers), **said)

    def add(self, snapshot, staged, **said):
        """Commit what was staged."""
        nothing = self.backend.files(snapshot).slice(0, 0)
        return self._publish("append", snapshot, nothing, staged, **said)

    def delete(self, number):
        """Write the files anew that hold a row, if any does."""
        snapshot = self.snapshot()
        files = self.backend.files(snapshot)
        paths = files["path"].to_pylist()
        going = {path for path in paths if number in self._read([path], snapshot)}
        if not going:
            return None
        staying = [n for n in self._read(sorted(going), snapshot) if n != number]
        staged = self.stage(snapshot, staying)
        return self._publish("delete", snapshot, chosen(files, going), staged)

    def rewrite(self):
        """Put the rows of files without a layout into one that has it, if there are such files."""
        snapshot = self.snapshot()
        files = self.backend.files(snapshot)
        going = files.filter(files["layout"].is_null())
        if not going.num_rows:
            return None
        numbers = sorted(self._read(going["path"].to_pylist(), snapshot))
        staged = self.stage(snapshot, numbers, LAYOUT.id)
        exchange = Exchange(removed=going, added=staged.files)
        rewrite = Rewrite(base=snapshot, exchanges=(exchange,), staged=staged, layout=LAYOUT)
        return publish(self.backend, rewrite, AT_ONCE)

    def vacuum(self, older_than):
        return self.backend.vacuum(self.table, older_than, dry_run=False)

    def publish(self, *, dry_run=False):
        return self.backend.publish_folder(self.table, dry_run=dry_run)

    def stage(self, snapshot, numbers, layout=None, below=""):
        """Write a file that no commit speaks of yet."""
        folder = f"{staging.DATA}/{uuid4().hex}"
        path = f"{folder}/{below}0.rows"
        put(self.root / path, numbers)
        written = Written(paths={path: path}, handle=(folder, layout, False))
        read = registration.read_footers(snapshot.handle.files, [path])
        files = file_table(snapshot, {path: read[path].footer})
        return self.backend.stage(snapshot, written, files)

    def _publish(self, operation, snapshot, going, staged, **said):
        exchange = Exchange(removed=going, added=staged.files)
        change = Change(base=snapshot, exchanges=(exchange,), staged=staged, **said)
        return publish(Loop(self.backend, operation), change, AT_ONCE)
