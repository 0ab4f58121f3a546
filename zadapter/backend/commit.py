"""The commit loop: commit, read the table, rebase, retry.

After a failed attempt the loop reads *one* snapshot, searches it for its own commit id, and rebases
on that same snapshot. With two snapshots, its own commit could land between them. The inputs would
then appear removed, and live files would be discarded as stale (2 952 of 20 000 simulated
histories).
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import pyarrow as pa

from zadapter.base.interrupts import deferred
from zadapter.base.java_errors import first_line
from zadapter.errors import (
    NOT_COMMITTED,
    ConflictError,
    ReplacedTableError,
    UnknownOutcomeError,
    UsageError,
    VerificationError,
    ZadapterError,
)
from zadapter.table.snapshot import Change, Exchange, Snapshot


class Log(Protocol):
    """The part of a backend that the commit loop needs."""

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*."""

    def files(self, snapshot: Snapshot) -> pa.Table:
        """Return the file table of *snapshot*."""

    def commit(self, change: Change) -> int:
        """Attempt one commit and return the new version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Retry policy for commits that lose a race: exponential, with full jitter and a deadline."""

    attempts: int = 8
    """Maximum number of attempts, including the first."""
    initial: float = 0.1
    """Maximum wait before the second attempt, in seconds. It doubles with each attempt."""
    longest: float = 10.0
    """Upper limit of every wait, in seconds."""
    deadline: float = 300.0
    """Time since the start, in seconds, after which no attempt starts."""

    def __post_init__(self) -> None:
        if self.attempts % 1 or self.attempts < 1:
            raise UsageError(f"attempts= must be a whole number, at least 1: {self}")
        if not min(self.initial, self.longest, self.deadline) >= 0:  # also rejects NaN
            raise UsageError(f"initial=, longest= and deadline= must not be negative: {self}")

    def waits(self, jitter: Callable[[], float]) -> Iterator[float]:
        """Yield the seconds to wait before the second, third, … attempt.

        Args:
            jitter: Returns a random number from 0 to 1.
        """
        for attempt in range(self.attempts - 1):
            yield jitter() * min(self.longest, self.initial * 2.0 ** min(attempt, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit that landed in the table."""

    version: int | None
    """The version it created; None: unknown, since an answer was lost."""
    attempts: int
    stale: tuple[Exchange, ...]
    """Exchanges that were dropped, because another writer changed their files."""
    doubtful: bool
    """Whether an attempt had an unknown outcome. If so, no file may be discarded."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Clock, sleep and jitter of the commit loop, which tests replace."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random  # noqa: S311 - spreads waits, guards nothing


@deferred
def publish(log: Log, change: Change, backoff: Backoff, clock: Clock | None = None) -> Landed:
    """Commit *change*, and retry after lost races and lost answers.

    Raises:
        StaleRewriteError: Other writers changed all its files; nothing was committed.
        ConflictError: All attempts lost a race; nothing was committed.
        ReplacedTableError: Another table has taken the name; it contains nothing of the change.
        VerificationError: Staged files are missing; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed; no file may be discarded. An
            exception that is not in ``NOT_COMMITTED`` has an unknown outcome, too.
    """
    clock = clock or Clock()
    start = change.base
    waits = backoff.waits(clock.jitter)
    end = clock.now() + backoff.deadline
    stale: tuple[Exchange, ...] = ()
    doubtful = False
    for attempt in count(1):
        tried = _try(log, change, doubtful=doubtful)
        failure = tried.failure
        if failure is None:
            return Landed(version=tried.version, attempts=attempt, stale=stale, doubtful=doubtful)
        doubtful = doubtful or isinstance(failure, UnknownOutcomeError)
        wait = next(waits, None)
        if wait is not None and clock.now() + wait > end:
            wait = None
        clock.sleep(wait or 0.0)
        # a client may have retried and lost to its own first attempt: only the table shows it
        with _doubts(change, doubtful=True):
            head = log.snapshot(start.table, since=start)
        with _doubts(change, doubtful=doubtful):
            if change.id in head.applied:
                return Landed(version=None, attempts=attempt, stale=stale, doubtful=doubtful)
            if start.version is not None and start.id != head.id:
                raise ReplacedTableError(start.table)
            if wait is None or clock.now() > end or tried.final:
                raise failure
            change, left = change.rebased(head, log.files(head))
        stale += left
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt of a commit: the new version, or a failure and whether another may succeed."""

    version: int | None = None
    failure: ZadapterError | None = None
    final: bool = False


def _try(log: Log, change: Change, *, doubtful: bool) -> _Attempt:
    try:
        with _doubts(change, doubtful=doubtful):
            return _Attempt(version=log.commit(change))
    except (ConflictError, UnknownOutcomeError) as failure:
        return _Attempt(failure=failure)
    except VerificationError as failure:
        return _Attempt(failure=failure, final=True)
    except NOT_COMMITTED:
        raise
    except Exception as error:  # noqa: BLE001 - it does not state that nothing was committed
        unknown = UnknownOutcomeError(change.base.table, change.id, _named(error))
        unknown.__cause__ = error
        return _Attempt(failure=unknown, final=True)


def _named(error: Exception) -> str:
    name = type(error).__name__
    with suppress(Exception):  # the JVM, which has the message, may be gone
        return f"{name}: {first_line(error)}"
    return name


@contextmanager
def _doubts(change: Change, *, doubtful: bool) -> Iterator[None]:
    """Raise errors that follow an attempt of unknown outcome as UnknownOutcomeError."""
    try:
        yield
    except Exception as error:
        if doubtful and not isinstance(error, UnknownOutcomeError | ReplacedTableError):
            raise UnknownOutcomeError(change.base.table, change.id) from error
        raise
