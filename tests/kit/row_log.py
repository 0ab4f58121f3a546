"""In-memory table whose files have rows: a multiset with duplicates and nulls."""

from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tests.kit.memory_log import LAYOUT, Version, snapshot_of
from zadapter.errors import ConflictError, UnknownOutcomeError
from zadapter.rewrite.rebase import Followed, Remaining
from zadapter.spark.checksum import RowTotals
from zadapter.table.file_stats import empty
from zadapter.table.snapshot import (
    Change,
    Exchange,
    Operation,
    Staged,
    keys,
    select_paths,
)


class RowLog:
    """Table of rows in files, with row-level deletes and a log of versions.

    A commit lands if its base is the head, or, where the log is not *strict*, if all files that it
    removes are live. The fate of a commit is "fine"; "lost": it arrives, but its answer is lost; or
    "never": it does not arrive, and nobody says so.
    """

    def __init__(self, files, *, strict=True, fates=(), others=lambda log: None):
        self.rows, self.deleted = {}, {None: frozenset()}
        self.strict, self.fates, self.others = strict, iter(fates), others
        self.versions = [Version(frozenset((self.new_file(rows), None) for rows in files))]

    @property
    def head(self):
        return self.versions[-1]

    def new_file(self, rows):
        path = f"file {len(self.rows)}"
        self.rows[path] = tuple(rows)
        return path

    def new_deletes(self, positions):
        name = f"deletes {len(self.deleted)}"
        self.deleted[name] = frozenset(positions)
        return name

    def write(self, **changes):
        self.versions.append(replace(self.head, **({"commit": None} | changes)))

    def live_at(self, file):
        """Return the live rows of a file, by position."""
        path, deletes = file
        rows = enumerate(self.rows[path])
        return {at: row for at, row in rows if at not in self.deleted[deletes]}

    def content(self, version):
        """Return the multiset of the rows of a version."""
        return Counter(row for file in version.files for row in self.live_at(file).values())

    def snapshot(self, table, since=None):
        self.others(self)
        news = [] if since is None else self.versions[since.version + 1 :]
        return snapshot_of(table, self.versions, news)

    def files(self, snapshot):
        self.others(self)
        return self.listed(self.versions[snapshot.version].files)

    def listed(self, files):
        rows = [
            {
                "path": path,
                "deletes": deletes,
                "size": 1,
                "rows": len(self.live_at((path, deletes))),
            }
            for path, deletes in sorted(files, key=str)
        ]
        return pa.Table.from_pylist(rows, schema=empty({}, {}).schema)

    def commit(self, change):
        self.others(self)
        fate = next(self.fates, "fine")
        version = None if fate == "never" else self.land(change)
        if fate != "fine":
            raise UnknownOutcomeError(change.base.table, change.id)
        if version is None:
            raise ConflictError(change.base.table)
        return version

    def land(self, change):
        """Compare and swap; return the new version, or None."""
        removed = {file for exchange in change.exchanges for file in keys(exchange.removed)}
        added = {file for exchange in change.exchanges for file in keys(exchange.added)}
        is_head = change.base.version == len(self.versions) - 1
        same = change.base.definition == self.head.definition
        if not same or not (is_head or (not self.strict and removed <= self.head.files)):
            return None
        assert removed <= self.head.files, "a rewrite of what is gone brings deleted rows back"
        self.write(files=self.head.files - removed | added, commit=change.id)
        return len(self.versions) - 1

    def rewrite(self, *groups):
        """Return a rewrite of groups of live files: the rows of each, in two new files."""
        exchanges = []
        for group in groups:
            rows = sorted((r for f in group for r in self.live_at(f).values()), key=str)
            new = [self.new_file(part) for part in (rows[::2], rows[1::2]) if part]
            exchanges.append(
                Exchange(
                    removed=self.listed(group), added=self.listed([(path, None) for path in new])
                )
            )
        staged = Staged(files=pa.concat_tables(e.added for e in exchanges), paths={})
        return Change(
            base=self.snapshot("t"),
            operation=Operation.OPTIMIZE,
            exchanges=tuple(exchanges),
            staged=(staged,),
            layouts=(LAYOUT,),
        )

    def follow(self, staged):
        """Return what follows rows to the files of *staged*, as Spark does on real tables."""

        @contextmanager
        def followed(conflicts, head):
            self.others(self)
            live = dict(self.versions[head.version].files)
            found = [self.find_moved(conflict, live) for conflict in conflicts]

            def leave_out(chosen):
                self.others(self)
                marks = {path: at for n in chosen for path, at in found[n].marks.items()}
                ids = {path: self.new_deletes(at) for path, at in marks.items()}
                files = [(path, ids.get(path)) for path in staged.files["path"].to_pylist()]
                marked = self.listed(files)
                live = marked.filter(pc.greater(marked["rows"], 0))
                added = [conflicts[n].exchange.added["path"].to_pylist() for n in chosen]
                return Remaining(
                    staged=(Staged(files=marked, paths={}),),
                    added=[select_paths(live, set(paths)) for paths in added],
                    changed=len(ids),
                )

            yield Followed(
                left=[totals(each.left) for each in found],
                returned=[each.returned for each in found],
                found=[totals(each.taken) for each in found],
                leave_out=leave_out,
            )

        return followed

    def find_moved(self, conflict, live):
        """Return the rows of a conflict that left, and take as many equal ones from new files."""
        gone = [row for file in keys(conflict.gone) for row in self.live_at(file).values()]
        changed = {path: self.live_at((path, deletes)) for path, deletes in keys(conflict.changed)}
        now = {path: self.live_at((path, live[path])) for path in changed}
        left = Counter(gone)
        for path, before in changed.items():
            left.update(row for at, row in before.items() if at not in now[path])
        returned = sum(len(now[path].keys() - before.keys()) for path, before in changed.items())
        taken, marks = Counter(), {}
        for path, _ in keys(conflict.exchange.added):
            for at, row in self.live_at((path, None)).items():
                if taken[row] < left[row]:
                    taken[row] += 1
                    marks.setdefault(path, set()).add(at)
        return Moved(left, returned, taken, marks)


class Moved(NamedTuple):
    """Rows that left, how many others returned, equal rows in new files, and their places."""

    left: Counter
    returned: int
    taken: Counter
    marks: dict


def totals(rows):
    return RowTotals(sum(rows.values()), str(sorted((+rows).items(), key=str)), ())
