"""Plain Parquet table on local disk that runs the real code without Spark."""

import json
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.builders import fitted
from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.table.footers import file_table
from zadapter.table.snapshot import Change, Exchange, Operation, Written, select_paths
from zadapter_parquet import ParquetBackend
from zadapter_parquet.format.entries import UNREGISTERED
from zadapter_parquet.format.paths import DATA, HIDDEN
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes, moving, registration
from zadapter_parquet.rows import rows
from zadapter_parquet.store import catalog_tables

COLUMNS = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": {}}],
    }
)
LAYOUT = fitted([[1, 2, 3]], 1)
AT_ONCE = Backoff(attempts=3, initial=0.0)


def put(path, numbers):
    """Write a data file, in place of Spark."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), path)


def made(root):
    """Make a folder of two files that is not registered."""
    put(root / "one.parquet", [0, 1])
    put(root / "two.parquet", [2, 3])
    return Folder(root)


class Backend(ParquetBackend):
    """Parquet backend, with fixed columns in place of Spark's schema inference, and no catalog."""

    def snapshot(self, table, since=None):
        with (
            patch.object(rows, "schema_of", lambda spark, location: COLUMNS),
            patch.object(catalog_tables, "find_table_at", lambda spark, location: None),
        ):
            return super().snapshot(table, since)


class Folder:
    """Table with the column ``n``, as one process sees it."""

    def __init__(self, root):
        self.root, self.table, self.backend = Path(root), str(root), Backend(None)

    def snapshot(self, version=None):
        if version in {None, UNREGISTERED}:
            return self.backend.snapshot(self.table)
        return self.backend.at(self.table, version)

    def live(self, version=None):
        """Return the files of a version after checking their existence and sizes."""
        snapshot = self.snapshot(version)
        files = self.backend.files(snapshot)
        external_changes.check_live(
            snapshot.handle.files, self.table, snapshot.handle.version.head, files
        )
        return files

    def rows(self, version=None):
        """Return the rows of a version, with duplicates."""
        snapshot, live = self.snapshot(version), self.live(version)
        return sorted(self._read(live["path"].to_pylist(), snapshot))

    def walked(self):
        """Return the rows that an engine reads from all files with the suffix ``.parquet``."""
        found = [path.relative_to(self.root) for path in self.root.rglob("*.parquet")]
        return sorted(self._read(found))

    def hidden(self, kind):
        """Return the hidden files of one kind."""
        return {p for p in (self.root / HIDDEN / kind).rglob("*") if p.is_file()}

    def _read(self, paths, snapshot=None):
        if snapshot is not None:
            paths = moving.current_paths(snapshot.handle.files, snapshot.handle.version.head, paths)
        found = [pq.read_table(self.root / path, partitioning=None) for path in paths]
        return [n for table in found for n in table["n"].to_pylist()]

    def versions(self):
        """Return the rows of every readable version."""
        entry = self.snapshot().handle.version.entry
        first = min(entry.oldest, entry.version)
        return {version: self.rows(version) for version in range(first, entry.version + 1)}

    def commits(self):
        """Return the ids of all commits, none if the folder is not registered."""
        if self.snapshot().version is None:
            return set()
        return {commit.id for commit in self.backend.history(self.table)}

    def register(self):
        snapshot = self.snapshot()
        version = snapshot.handle.version
        if version.file_table is not None:
            files = snapshot.handle.files
            registration.register(Log(files, self.table), files, version, version.file_table)

    def append(self, numbers, **said):
        snapshot = self.snapshot()
        return self.add(snapshot, self.stage(snapshot, numbers), **said)

    def add(self, snapshot, staged, **said):
        """Commit a staged file."""
        nothing = self.backend.files(snapshot).slice(0, 0)
        return self._publish("append", snapshot, nothing, staged, **said)

    def delete(self, number):
        """Rewrite the files that contain a row, if any."""
        snapshot = self.snapshot()
        files = self.backend.files(snapshot)
        paths = files["path"].to_pylist()
        going = {path for path in paths if number in self._read([path], snapshot)}
        if not going:
            return None
        staying = [n for n in self._read(sorted(going), snapshot) if n != number]
        staged = self.stage(snapshot, staying)
        return self._publish("delete", snapshot, select_paths(files, going), staged)

    def rewrite(self):
        """Rewrite the files without a layout into one file with a layout, if there are any."""
        snapshot = self.snapshot()
        files = self.backend.files(snapshot)
        going = files.filter(files["layout"].is_null())
        if not going.num_rows:
            return None
        numbers = sorted(self._read(going["path"].to_pylist(), snapshot))
        staged = self.stage(snapshot, numbers, LAYOUT.id)
        exchange = Exchange(removed=going, added=staged.files)
        change = Change(
            base=snapshot,
            operation=Operation.OPTIMIZE,
            exchanges=(exchange,),
            staged=(staged,),
            layouts=(LAYOUT,),
        )
        return commit_change(self.backend, change, Attempts(AT_ONCE))

    def vacuum(self, older_than):
        return self.backend.vacuum(self.table, older_than, dry_run=False)

    def publish(self, *, dry_run=False):
        return self.backend.publish_folder(self.table, dry_run=dry_run)

    def stage(self, snapshot, numbers, layout=None, below=""):
        """Write a file without committing it."""
        folder = f"{DATA}/{uuid4().hex}"
        path = f"{folder}/{below}0.rows"
        put(self.root / path, numbers)
        written = Written(paths={path: path}, handle=(folder, layout, False))
        read = registration.read_footers(snapshot.handle.files, [path])
        files = file_table(snapshot, {path: read[path].footer})
        return self.backend.stage(snapshot, written, files)

    def _publish(self, operation, snapshot, going, staged, **said):
        exchange = Exchange(removed=going, added=staged.files)
        change = Change(
            base=snapshot,
            operation=Operation(operation),
            exchanges=(exchange,),
            staged=(staged,),
            **said,
        )
        return commit_change(self.backend, change, Attempts(AT_ONCE))
