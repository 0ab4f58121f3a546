"""Simulation of plain Parquet tables: the real code on an in-memory store, scheduled by a seed.

Actors are threads that run one at a time. Each access to the store is a step, after which the seed
chooses the next actor, the outcome of a request, and which actor dies.
"""

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

import pyarrow as pa

from tests.parquet.kit.log import ENTRY
from tests.parquet.kit.network import Network, Scheduler
from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.errors import ConflictError, StoreError, UnknownOutcomeError
from zadapter.table.file_stats import schema, total
from zadapter.table.snapshot import Change, Exchange, Operation, Staged
from zadapter_parquet import ParquetBackend
from zadapter_parquet.format.paths import DATA
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.log.snapshot import Version, snapshot
from zadapter_parquet.operations import moving, publishing, vacuuming


def table_of(paths):
    """Return a file table of these paths, with one row each."""
    columns = {"path": paths, "size": [1] * len(paths), "rows": [1] * len(paths)}
    made = schema({}, {})
    arrays = [
        pa.array(columns.get(f.name, [{}] * len(paths) if f.name in {"partition", "stats"}
                             else [None] * len(paths)), f.type)
        for f in made
    ]  # fmt: skip
    return pa.table(arrays, schema=made)


@dataclass
class World:
    """Table of four files, with writers and a vacuum."""

    seed: int
    faults: bool = True
    rows: dict = field(default_factory=dict)
    """Rows of each file that was ever written."""
    outcomes: dict = field(default_factory=dict)
    """Result that each transaction returned to its author."""
    appended: dict = field(default_factory=dict)
    removed: dict = field(default_factory=dict)

    def __post_init__(self):
        self.scheduler = Scheduler(self.seed)
        self.store = Network(self.scheduler, self.faults, self.rows)
        self.backend = ParquetBackend(None)
        self.ids = random.Random(self.seed)
        paths = [f"{n}.parquet" for n in range(4)]
        for n, path in enumerate(paths):
            self.store.held[path], self.rows[path] = b"x", [n]
        self.store.faults = False
        files = table_of(paths)
        counts = {name: total(files, name) for name in ("size", "rows")}
        entry = commit_entries.write_first(self.store, replace(ENTRY, files=4, **counts), files)
        Log(self.store, "t").claim(replace(entry, timestamp=1))
        self.store.faults = self.faults

    def run(self):
        """Run all actors, then deliver all requests."""
        self.scheduler.run({
            "rewriter": lambda: [self.rewrite(2) for _ in range(2)],
            "rival": lambda: self.rewrite(3),
            "merger": self.merge,
            "appender": lambda: [self.append(100 + n) for n in range(2)],
            "deleter": self.delete_one,
            "cleaner": self.clean,
            "publisher": self.publish_folder,
        })  # fmt: skip
        if self.seed % 2:
            self.scheduler.run({
                "publisher": self.publish_folder,
                "rival": self.publish_folder,
                "appender": lambda: self.append(200),
                "cleaner": self.clean,
            })  # fmt: skip
        self.store.faults = False
        self.store.deliver()
        return self

    def _base(self):
        base = snapshot("t", self.store, Version(entry=Log(self.store, "t").head()))
        return base, self.backend.files(base)

    def _write(self, contents):
        folder = f"{DATA}/{UUID(int=self.ids.getrandbits(128)).hex}"
        paths = [f"{folder}/{n}.rows" for n in range(len(contents))]
        for path, rows in zip(paths, contents, strict=True):
            self.rows[path] = self.rows[publishing.visible_path(path)] = rows
            self.store.write(path, b"x")
        handle = (folder, None, False)
        return Staged(files=table_of(paths), paths={p: p for p in paths}, handle=handle)

    def _publish(self, operation, base, removed, staged):
        change = Change(
            base=base,
            operation=Operation(operation),
            exchanges=(Exchange(removed=removed, added=staged.files),),
            staged=(staged,),
        )
        self.outcomes[change.id] = "died"
        try:
            commit_change(
                self.backend,
                change,
                Attempts(Backoff(attempts=self.seed % 4 + 1, initial=0.0)),
            )
            self.outcomes[change.id] = "landed"
        except UnknownOutcomeError:
            self.outcomes[change.id] = "unknown"
        except (ConflictError, StoreError):
            self.outcomes[change.id] = "lost"
            self.store.delete(staged.paths)
        return change.id

    def rewrite(self, files):
        base, live = self._base()
        going = live.slice(0, files)
        rows = [row for path in going["path"].to_pylist() for row in self.rows[path]]
        self._publish("optimize", base, going, self._write([rows]))

    def merge(self):
        """Two jobs of one plan: both are written, then one is committed after the other."""
        base, live = self._base()
        going = [live.take(list(range(job, live.num_rows, 2))) for job in range(2)]
        rows = [
            [row for path in job["path"].to_pylist() for row in self.rows[path]] for job in going
        ]
        for job, staged in list(zip(going, [self._write([held]) for held in rows], strict=True)):
            self._publish("optimize", base, job, staged)

    def append(self, row):
        base, live = self._base()
        staged = self._write([[row]])
        self.appended[staged.handle[0]] = [row]
        self._publish("append", base, live.slice(0, 0), staged)

    def delete_one(self):
        base, live = self._base()
        path = live["path"].to_pylist()[-1]
        staged = self._write([self.rows[path][1:]])
        self.removed[staged.handle[0]] = self.rows[path][:1]
        self._publish("delete", base, live.slice(live.num_rows - 1), staged)

    def clean(self):
        with suppress(ConflictError, UnknownOutcomeError, StoreError):
            vacuuming.vacuum(self.store, "t", timedelta(0), dry_run=False)

    def publish_folder(self):
        with suppress(ConflictError, UnknownOutcomeError, StoreError):
            publishing.publish(self.store, "t", dry_run=False)

    def check(self):
        """Raise AssertionError if a law is broken."""
        assert self.scheduler.errors == []
        log = Log(self.store, "t")
        entries = list(log.entries_between(-1, log.head().version))
        assert [e.version for e in entries] == list(range(len(entries)))
        times = Counter(e.transaction for e in entries)
        assert max(times.values()) == 1, "a commit landed twice"
        for transaction, outcome in self.outcomes.items():
            assert outcome != "landed" or times[transaction], "a commit that landed is gone"
            assert outcome != "lost" or not times[transaction], "a lost commit has landed"
        expected, versions = Counter(range(4)), {None}
        for entry in entries:
            if entry.operation.value != "abort":
                expected.update(self.appended.get(entry.folder, ()))
                expected.subtract(self.removed.get(entry.folder, ()))
            versions.add(tuple(sorted(expected.elements())))
            if entry.version >= entries[-1].oldest or entry is entries[-1]:
                live = stats_table.load(self.store, entry.parts, {}, {})["path"].to_pylist()
                lying = moving.current_paths(self.store, entries[-1], live)
                assert Counter(row for p in lying for row in self.rows[p]) == +expected, "rows"
                assert all(path in self.store.held for path in lying), "a live file was deleted"
        assert self.store.seen <= versions, "the folder was no version"
        publishing.publish(self.store, "t", dry_run=False)
        assert self.store.look() == tuple(sorted(expected.elements())), "the folder is older"
