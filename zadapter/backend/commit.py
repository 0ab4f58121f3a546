"""The commit loop: try, look, rebase, try again.

After a failed attempt the loop takes *one* snapshot, looks for its own commit id in it, and rebases
on that same snapshot.  With two snapshots its own commit could land in between, its inputs would
seem gone, and live files would be discarded as stale (2 952 of 20 000 simulated histories).
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from zadapter.base.interrupts import deferred
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    UnknownOutcomeError,
    UsageError,
    VerificationError,
    ZadapterError,
)
from zadapter.table.snapshot import Exchange, Snapshot

A = TypeVar("A", bound="Attempt")
A_contra = TypeVar("A_contra", bound="Attempt", contravariant=True)


class Attempt(Protocol):
    """What can be committed: a change of a table's files, or a load of new ones."""

    @property
    def base(self) -> Snapshot:
        """The version it is made for."""

    @property
    def id(self) -> str:
        """What its commit is found by."""

    @property
    def table_id(self) -> str | None:
        """Id of the table that it changes; None: it may make the table."""

    def rebased(  # noqa: PYI019 - typing.Self is younger than Python 3.10
        self: A, head: Snapshot, live: pa.Table
    ) -> tuple[A, tuple[Exchange, ...]]:
        """Put it on top of *head*; return it, and the exchanges that were left behind."""


class Versions(Protocol):
    """What a table has been, as a backend tells it."""

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the newest version."""

    def files(self, snapshot: Snapshot) -> pa.Table:
        """Return the files of that version."""


class Log(Versions, Protocol[A_contra]):
    """The part of a backend that the loop needs."""

    def commit(self, change: A_contra, /) -> int:
        """Try once."""


@dataclass(frozen=True, slots=True)
class Through(Generic[A]):
    """A log that commits in a way of its own."""

    versions: Versions
    commit: Callable[[A], int]

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the newest version."""
        return self.versions.snapshot(table, since)

    def files(self, snapshot: Snapshot) -> pa.Table:
        """Return the files of that version."""
        return self.versions.files(snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """When to try again after losing a race: exponential, with full jitter, up to a deadline."""

    attempts: int = 8
    """How often to try at most, the first try included."""
    initial: float = 0.1
    """Longest wait before the second try, in seconds; it doubles from try to try."""
    longest: float = 10.0
    """No single wait is longer, in seconds."""
    deadline: float = 300.0
    """No try starts later than this after the first one, in seconds."""

    def __post_init__(self) -> None:
        if self.attempts % 1 or self.attempts < 1:
            raise UsageError(f"a backoff takes a whole number of attempts, at least 1: {self}")
        if not min(self.initial, self.longest, self.deadline) >= 0:  # NaN is no time, either
            raise UsageError(f"a backoff needs at least one attempt and no negative time: {self}")

    def waits(self, jitter: Callable[[], float]) -> Iterator[float]:
        """Yield the seconds to wait before the second, third, … try.

        Args:
            jitter: Returns a number from 0 to 1 each time it is called.
        """
        for attempt in range(self.attempts - 1):
            yield jitter() * min(self.longest, self.initial * 2.0 ** min(attempt, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit that is in the table."""

    version: int | None
    """The version it made; None where that is no longer known after a lost answer."""
    attempts: int
    stale: tuple[Exchange, ...]
    """Exchanges left behind, because another writer changed their files."""
    doubtful: bool
    """Whether an attempt had an unknown outcome: then nothing may be discarded."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time, so that tests need not wait for it."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random  # noqa: S311 - spreads waits, guards nothing


@deferred
def publish(log: Log[A], change: A, backoff: Backoff, clock: Clock | None = None) -> Landed:
    """Commit *change*, trying again after lost races and lost answers.

    Raises:
        StaleRewriteError: All its files were changed by others; nothing was committed.
        ConflictError: Races were lost until attempts ran out; nothing was committed.
        ReplacedTableError: Another table has taken the name; nothing of the change is in it.
        VerificationError: Staged files are gone; nothing was committed.
        UnknownOutcomeError: It is not known whether it landed; nothing may be discarded.
    """
    clock = clock or Clock()
    start = change.base
    waits = backoff.waits(clock.jitter)
    end = clock.now() + backoff.deadline
    stale: tuple[Exchange, ...] = ()
    doubtful = False
    for attempt in count(1):
        version, failure = _try(log, change, doubtful=doubtful)
        if failure is None:
            return Landed(version=version, attempts=attempt, stale=stale, doubtful=doubtful)
        doubtful = doubtful or isinstance(failure, UnknownOutcomeError)
        wait = next(waits, None)
        if wait is not None and clock.now() + wait > end:
            wait = None
        clock.sleep(wait or 0.0)
        # a client may have tried twice by itself, and lost to its first try: only the table knows
        with _doubts(change, doubtful=True):
            head = log.snapshot(start.table, since=start)
        with _doubts(change, doubtful=doubtful):
            if change.id in head.applied:
                return Landed(version=None, attempts=attempt, stale=stale, doubtful=doubtful)
            if change.table_id not in {None, head.id}:
                raise ReplacedTableError(start.table)
            if wait is None or clock.now() > end or isinstance(failure, VerificationError):
                raise failure
            change, left = change.rebased(head, log.files(head))
        stale += left
    raise AssertionError("unreachable")


def _try(log: Log[A], change: A, *, doubtful: bool) -> tuple[int | None, ZadapterError | None]:
    try:
        with _doubts(change, doubtful=doubtful):
            return log.commit(change), None
    except (ConflictError, UnknownOutcomeError, VerificationError) as failure:
        return None, failure


@contextmanager
def _doubts(change: Attempt, *, doubtful: bool) -> Iterator[None]:
    """Report whatever goes wrong after an attempt of unknown outcome as just that."""
    try:
        yield
    except Exception as error:
        if doubtful and not isinstance(error, UnknownOutcomeError | ReplacedTableError):
            raise UnknownOutcomeError(change.base.table, change.id) from error
        raise
