"""The commit loop: commit, read the table, rebase, retry.

After a failed attempt the loop reads *one* snapshot, searches it for its own commit id, and rebases
on that same snapshot. With two snapshots, its own commit could land between them. The inputs would
then appear removed, and live files would be discarded as stale (2 952 of 20 000 simulated
histories).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import pyarrow as pa

from zadapter.base.commit_attempts import Attempts
from zadapter.base.interrupts import accepting_signals, defer_signals, ignoring_errors, reraise
from zadapter.base.java_errors import first_line
from zadapter.base.outcome import sending
from zadapter.errors import (
    NOT_COMMITTED,
    ConflictError,
    ReplacedTableError,
    UnknownOutcomeError,
    VerificationError,
    ZadapterError,
)
from zadapter.table.snapshot import Change, Exchange, Snapshot


class CommitLog(Protocol):
    """The part of a backend that the commit loop needs."""

    def snapshot(self, table: str, since: Snapshot | None = None) -> Snapshot:
        """Return the current version of *table*."""

    def files(self, snapshot: Snapshot) -> pa.Table:
        """Return the file table of *snapshot*."""

    def commit(self, change: Change) -> int:
        """Attempt one commit and return the new version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A commit that landed in the table."""

    version: int | None
    """The version it created; None if it is unknown, since an answer was lost."""
    change: Change
    """The change as it was sent last. If ``doubtful``, an earlier form of it may have landed."""
    attempts: int
    stale: tuple[Exchange, ...]
    """Exchanges that were dropped, because another writer changed their files."""
    doubtful: bool
    """Whether an attempt had an unknown outcome. If so, no file may be discarded."""


Rebase = Callable[[Change, Snapshot, pa.Table], tuple[Change, tuple[Exchange, ...]]]
"""Bases a change on the head, given the head's file table; see :meth:`Change.rebase`."""


def drop_stale(
    change: Change, head: Snapshot, live: pa.Table
) -> tuple[Change, tuple[Exchange, ...]]:
    """Base *change* on *head* without the exchanges whose files others have changed."""
    return change.rebase(head, live)


@defer_signals
@sending()
def commit_change(
    log: CommitLog, change: Change, attempts: Attempts, rebase: Rebase = drop_stale
) -> Landed:
    """Commit *change*, and retry after lost races and lost answers.

    Args:
        log: The table.
        change: The change.
        attempts: The attempts that are left. Before each one, ``may_have_landed`` is set; it is
            reset only when the table or an error of ``NOT_COMMITTED`` has shown that none landed.
        rebase: Bases the change on the newest version after a conflict.

    Raises:
        StaleRewriteError: Other writers changed all its files; nothing was committed.
        ConflictError: All attempts lost a race; nothing was committed.
        ReplacedTableError: Another table has taken the name; it contains nothing of the change.
        VerificationError: Staged files are missing; nothing was committed.
        UnknownOutcomeError: It is unknown whether the commit landed; no file may be discarded. An
            exception that is not in ``NOT_COMMITTED`` has an unknown outcome, too.
    """
    start = change.base
    stale: tuple[Exchange, ...] = ()
    doubtful = False
    for attempt in count(1):
        tried = _try(log, change, attempts, doubtful=doubtful)
        failure = tried.failure
        if failure is None:
            return Landed(
                version=tried.version,
                change=change,
                attempts=attempt,
                stale=stale,
                doubtful=doubtful,
            )
        doubtful = doubtful or isinstance(failure, UnknownOutcomeError)
        attempts.wait()
        # a client may have retried and lost to its own first attempt: only the table shows it
        with _doubts(change, doubtful=True):
            head = log.snapshot(start.table, since=start)
        with _doubts(change, doubtful=doubtful):
            if change.id in head.applied:
                return Landed(
                    version=None, change=change, attempts=attempt, stale=stale, doubtful=doubtful
                )
            if start.version is not None and start.id != head.id:
                replaced = ReplacedTableError(start.table)
                replaced.committed = None if doubtful else False
                raise replaced
            live = log.files(head)
            change.check_not_live(live)
            attempts.may_have_landed = doubtful
            if attempts.are_over() or tried.final:
                raise _final_error(failure, change, doubtful=doubtful)
            with nullcontext() if doubtful else accepting_signals():
                change, left = rebase(change, head, live)
        stale += left
    raise AssertionError("unreachable")


def _final_error(failure: ZadapterError, change: Change, *, doubtful: bool) -> ZadapterError:
    """Return the error that ends the last attempt, as an error of this change."""
    if isinstance(failure, UnknownOutcomeError) and failure.commit_id != change.id:
        # a format commits its own entries first, whose ids say nothing about the change
        unknown = UnknownOutcomeError(change.base.table, change.id)
        unknown.__cause__ = failure
        return unknown
    if isinstance(failure, ReplacedTableError) and doubtful:
        failure.committed = None
    return failure


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt of a commit: the new version, or a failure and whether another may succeed."""

    version: int | None = None
    failure: ZadapterError | None = None
    final: bool = False


def _try(log: CommitLog, change: Change, attempts: Attempts, *, doubtful: bool) -> _Attempt:
    attempts.may_have_landed = True
    try:
        with _doubts(change, doubtful=doubtful):
            return _Attempt(version=log.commit(change))
    except (ConflictError, VerificationError) as failure:
        return _Attempt(failure=failure, final=isinstance(failure, VerificationError))
    except NOT_COMMITTED as failure:
        attempts.may_have_landed = doubtful
        reraise(failure)
        raise
    except UnknownOutcomeError as failure:
        reraise(failure)
        return _Attempt(failure=failure)
    except Exception as error:  # noqa: BLE001 - it does not state that nothing was committed
        reraise(error)
        unknown = UnknownOutcomeError(change.base.table, change.id, _describe_error(error))
        unknown.__cause__ = error
        return _Attempt(failure=unknown, final=True)


def _describe_error(error: Exception) -> str:
    name = type(error).__name__
    with ignoring_errors():  # the JVM, which has the message, may be gone
        return f"{name}: {first_line(error)}"
    return name


@contextmanager
def _doubts(change: Change, *, doubtful: bool) -> Iterator[None]:
    """Raise errors that follow an attempt of unknown outcome as UnknownOutcomeError."""
    try:
        yield
    except Exception as error:
        if doubtful and not isinstance(error, UnknownOutcomeError | ReplacedTableError):
            reraise(error)
            raise UnknownOutcomeError(change.base.table, change.id) from error
        raise
