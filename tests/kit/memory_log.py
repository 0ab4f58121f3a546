"""In-memory table for the commit loop: a log, rewrites and a clock."""

from dataclasses import dataclass, replace

import pyarrow as pa

from tests.kit.builders import fitted
from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts, Clock
from zadapter.base.outcome import stating
from zadapter.errors import ConflictError, UnknownOutcomeError, ZadapterError
from zadapter.table.snapshot import Change, Exchange, Operation, Snapshot, Staged, keys

LAYOUT = fitted([[1.0]], 1)


@dataclass(frozen=True)
class Version:
    """Version of the table: files with their row-level deletes."""

    files: frozenset[tuple[str, str | None]]
    definition: str = "as planned"
    id: str = "memory"
    commit: str | None = None


def snapshot_of(table, versions, news):
    """Return the newest of *versions* as a snapshot, with the commits of *news*."""
    head = versions[-1]
    return Snapshot(
        table=table,
        format="memory",
        version=len(versions) - 1,
        location="memory:",
        schema=pa.schema([]),
        partition={},
        id=head.id,
        definition=head.definition,
        physical={},
        without_stats=frozenset(),
        applied=frozenset(version.commit for version in news),
    )


class MemoryLog:
    """Table whose commits are a strict compare-and-swap on its version.

    *others* runs before each step. The fate of a commit is "fine"; "lost": it arrives, but its
    answer is lost; "never": it does not arrive; or "late": it arrives in :meth:`catch_up`. With
    "raw" before it, the exception is not one of zadapter's.
    """

    def __init__(self, paths, fates=(), others=lambda log: None):
        self.versions = [Version(frozenset((path, None) for path in paths))]
        self.fates, self.others = iter(fates), others
        self.tried, self.late, self.looked = [], [], 0

    @property
    def head(self):
        return self.versions[-1]

    def write(self, **changes):
        self.versions.append(replace(self.head, **({"commit": None} | changes)))

    def delete(self, path):
        self.write(files=frozenset(file for file in self.head.files if file[0] != path))

    def snapshot(self, table, since=None):
        self.others(self)
        self.looked = len(self.versions) - 1
        news = [] if since is None else self.versions[since.version + 1 :]
        return snapshot_of(table, self.versions, news)

    def files(self, snapshot):
        self.others(self)
        return listed(*self.versions[snapshot.version].files)

    def commit(self, rewrite):
        self.others(self)
        fate = next(self.fates, "fine")
        self.tried.append(fate)
        if isinstance(fate, Exception):
            raise fate
        if fate.endswith("late"):
            self.late.append(rewrite)
        landed = fate.endswith(("fine", "lost")) and self.land(rewrite)
        if fate.startswith("raw"):
            raise OSError("connection reset")
        if fate != "fine":
            raise UnknownOutcomeError(rewrite.base.table, rewrite.id)
        if not landed:
            raise ConflictError(rewrite.base.table)
        return len(self.versions) - 1

    def land(self, rewrite):
        """Compare and swap."""
        if rewrite.base.version != len(self.versions) - 1:
            return False
        removed = {file for exchange in rewrite.exchanges for file in keys(exchange.removed)}
        added = {file for exchange in rewrite.exchanges for file in keys(exchange.added)}
        assert removed <= self.head.files, "a rewrite of what is gone brings deleted rows back"
        self.write(files=self.head.files - removed | added, commit=rewrite.id)
        return True

    def catch_up(self):
        """Deliver the late commits."""
        arrived, self.late = self.late, []
        for rewrite in arrived:
            self.land(rewrite)


class Time:
    """Clock that only advances during sleep."""

    def __init__(self, jitter=lambda: 1.0):
        self.now, self.waits = 0.0, []
        self.clock = Clock(now=lambda: self.now, sleep=self.sleep, jitter=jitter)

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.now += seconds


def listed(*files):
    ordered = sorted(files, key=str)
    path, deletes = zip(*ordered, strict=True) if ordered else ((), ())
    return pa.table({"path": pa.array(path, "string"), "deletes": pa.array(deletes, "string")})


def rewrite_of(log, *exchanges):
    """Return a rewrite of the current *log*; each exchange lists the paths to replace."""
    pairs = tuple(
        Exchange(
            removed=listed(*((path, None) for path in paths)),
            added=listed(*((f"new {path}", None) for path in paths)),
        )
        for paths in exchanges
    )
    staged = Staged(files=pa.concat_tables(pair.added for pair in pairs), paths={})
    return Change(
        base=log.snapshot("t"),
        operation=Operation.OPTIMIZE,
        exchanges=pairs,
        staged=(staged,),
        layouts=(LAYOUT,),
    )


def outcome_of(log, rewrite, backoff=None):
    """Publish a rewrite, and return the result or zadapter's error."""
    try:
        with stating():
            return commit_change(log, rewrite, Attempts(backoff, Time().clock))
    except ZadapterError as error:
        return error
