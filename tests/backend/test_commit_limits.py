"""A time limit of the caller can be raised at any step of a commit, and deletes no live file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

import zadapter
from tests.kit.memory_log import MemoryLog, Time, rewrite_of
from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts, Backoff, before_sending
from zadapter.base.interrupts import callers_exception, ignoring_errors
from zadapter.errors import (
    ConflictError,
    StoreError,
    UnknownOutcomeError,
    UnsentCommitError,
    VerificationError,
    ZadapterError,
)

OURS = str(Path(zadapter.__file__).parent)
CLOSED = {"<genexpr>", "_causes", "waits"}
"""Generators. Python ignores what is raised where it closes one that nobody needs any more."""
FATES = [
    ["fine"],
    ["lost"],
    ["never"],
    ["late", "fine"],
    ["raw fine"],
    ["raw late"],
    [StoreError("the disk is full")],
    [UnsentCommitError("no such class")],
]


class TimeLimit(Exception):  # noqa: N818 - such as Celery's
    """A time limit of the caller."""


class GivenUp(BaseException):
    """One that is not even an Exception."""


@contextmanager
def limited(at: int, error: BaseException) -> Iterator[list[int]]:
    """Raise an exception at the return of a function of zadapter, counted from one."""
    counted = [0]

    def profile(frame, event, _):
        code = frame.f_code
        if event == "return" and code.co_filename.startswith(OURS) and code.co_name not in CLOSED:
            counted[0] += 1
            if counted[0] == at:
                sys.setprofile(None)
                raise error

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def a_race(fates, *, rival):
    """A log, a change of it, and a rival whose commit comes first."""
    log = MemoryLog("ab", list(fates))
    change = rewrite_of(log, "ab")
    if rival:
        log.write(files=log.head.files | {("foreign", None)})
    return log, change, Attempts(Backoff(attempts=3), Time().clock)


@pytest.mark.parametrize("rival", [False, True])
@pytest.mark.parametrize("error", [TimeLimit("soft limit"), GivenUp("task")])
@pytest.mark.parametrize("fates", FATES, ids=str)
def test_files_that_may_be_live_are_known_at_every_return(fates, error, rival):
    """Unless the attempts say that none can have landed, no file of the change is deleted."""
    log, change, attempts = a_race(fates, rival=rival)
    with limited(0, error) as counted, suppress(ZadapterError):
        commit_change(log, change, attempts)
    whole = counted[0]
    assert whole > 5

    for at in range(1, whole + 1):
        log, change, attempts = a_race(fates, rival=rival)
        with pytest.raises(type(error)), limited(at, error):
            commit_change(log, change, attempts)
        log.catch_up()
        landed = change.id in {version.commit for version in log.versions}
        assert attempts.may_have_landed or not landed, f"return {at} of {whole}"


@pytest.mark.parametrize("kind", [ConflictError, VerificationError])
def test_a_lost_race_counts_only_when_the_table_shows_it(kind):
    """A client may have retried and lost to its own first request, which has landed."""
    log, change, attempts = a_race([kind("lost")], rival=False)

    def snapshot(table, since=None):
        raise OSError("no network")

    log.snapshot = snapshot

    with pytest.raises(UnknownOutcomeError):
        commit_change(log, change, attempts)

    assert attempts.may_have_landed


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("kind", [ConflictError, VerificationError])
def test_files_that_are_live_count_more_than_a_history_that_has_expired(kind, attempts):
    """The client lost to its own first request, and others have expired the version since."""
    log, change, _ = a_race([], rival=False)
    limited_to = Attempts(Backoff(attempts=attempts), Time().clock)

    def commit(each):
        assert log.land(each)
        log.write(commit=None)
        raise kind("lost")

    look = log.snapshot
    log.commit = commit
    log.snapshot = lambda table, since=None: replace(look(table, since), applied=frozenset())

    with pytest.raises(UnknownOutcomeError):
        commit_change(log, change, limited_to)

    assert limited_to.may_have_landed


def test_an_exception_that_the_caller_handles_is_not_one_of_the_call():
    """Who calls in an ``except`` or ``finally`` gets what the call itself meets."""
    try:
        raise TimeLimit("handled")  # noqa: TRY301 - what the caller has met before
    except TimeLimit:
        with ignoring_errors():
            raise OSError("ignored")  # noqa: B904 - its context is what this is about
        log, change, attempts = a_race(["fine"], rival=True)
        landed = commit_change(log, change, attempts)

    assert landed.attempts == 2


def test_a_conflict_of_another_backend_is_a_conflict():
    """Whatever exception of its own led to it, it is tried again."""
    log, change, attempts = a_race(["fine"], rival=False)
    commit, conflicts = log.commit, iter([ConflictError("lost")])

    def lost_once(each):
        for conflict in conflicts:
            raise conflict from TimeLimit("the backend's own")
        return commit(each)

    log.commit = lost_once

    assert commit_change(log, change, attempts).attempts == 2


@pytest.mark.parametrize("wrap", [UnknownOutcomeError("t", "1"), UnsentCommitError("no")])
def test_a_limit_is_not_taken_for_a_failure_of_the_commit(wrap):
    """A backend may state what it knows; the caller gets what the caller has raised."""
    log, change, attempts = a_race(["fine"], rival=False)

    def commit(_):
        raise wrap from TimeLimit("soft limit")

    log.commit = commit

    with pytest.raises(TimeLimit):
        commit_change(log, change, attempts)

    assert attempts.may_have_landed == isinstance(wrap, UnknownOutcomeError)


def test_a_limit_before_the_commit_is_sent_is_known_as_such():
    """Then the files can be deleted."""
    log, change, attempts = a_race(["fine"], rival=False)

    def commit(_):
        with before_sending("t"):
            raise TimeLimit("soft limit")

    log.commit = commit

    with pytest.raises(TimeLimit):
        commit_change(log, change, attempts)

    assert not attempts.may_have_landed


@pytest.mark.parametrize("error", [OSError("gone"), ValueError("bad"), StoreError("full")])
def test_errors_of_steps_are_ignored_where_nothing_depends_on_them(error):
    """And a limit is not, not even if a step has made another error of it."""
    with ignoring_errors():
        raise error
    with pytest.raises(TimeLimit), ignoring_errors():
        raise TimeLimit("soft limit")
    with pytest.raises(TimeLimit), ignoring_errors():
        raise error from TimeLimit("soft limit")


def test_chains_of_errors_may_be_cyclic():
    """As those of Java are."""
    first, second = OSError("a"), OSError("b")
    first.__cause__, second.__cause__ = second, first

    assert callers_exception(first) is None
