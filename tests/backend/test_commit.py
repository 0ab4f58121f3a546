"""The commit loop tries, looks, rebases and tries again, and tells the truth about it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.memory_log import MemoryLog, Time, outcome_of, rewrite_of
from zadapter.backend.commit import Landed, commit_change
from zadapter.base.commit_attempts import Attempts, Backoff, before_sending
from zadapter.errors import (
    NOT_COMMITTED,
    ConflictError,
    DataFileError,
    EngineError,
    ForeignChangeError,
    ReplacedTableError,
    StaleRewriteError,
    StoreError,
    UnknownOutcomeError,
    UnsentCommitError,
    UnsupportedError,
    UsageError,
    VerificationError,
)


def test_a_lost_answer_counts_as_success():
    """A commit that landed although its answer got lost is found out, and not repeated."""
    log = MemoryLog("ab", ["lost"])

    landed = outcome_of(log, rewrite_of(log, "ab"))

    assert landed == Landed(change=landed.change, version=None, attempts=1, stale=(), doubtful=True)
    assert len(log.versions) == 2


def test_files_of_a_commit_that_was_never_sent_may_be_deleted():
    """A call that is interrupted before its first attempt cleans up."""
    assert not Attempts().may_have_landed


def test_a_lost_race_is_run_again_on_the_new_head():
    """What others append stays."""
    log = MemoryLog("ab")
    rewrite = rewrite_of(log, "ab")
    log.write(files=log.head.files | {("foreign", None)})

    landed = outcome_of(log, rewrite)

    assert landed == Landed(change=landed.change, version=2, attempts=2, stale=(), doubtful=False)
    assert {path for path, _ in log.head.files} == {"new a", "new b", "foreign"}


def test_exchanges_whose_files_changed_are_left_behind():
    """A file that went, or lost rows, takes its own exchange out, and no other."""
    log = MemoryLog("abcd")
    rewrite = rewrite_of(log, "ab", "c", "d")
    log.delete("a")
    log.write(files=log.head.files - {("c", None)} | {("c", "rows 1 and 2")})

    landed = outcome_of(log, rewrite)

    assert landed.stale == rewrite.exchanges[:2]
    assert log.head.files == {("b", None), ("c", "rows 1 and 2"), ("new d", None)}


def test_nothing_is_left_when_all_files_changed():
    """The error names what is gone, and nothing was committed."""
    log = MemoryLog("ab")
    rewrite = rewrite_of(log, "ab")
    log.delete("b")

    error = outcome_of(log, rewrite)

    assert isinstance(error, StaleRewriteError)
    assert (error.table, error.gone) == ("t", ("b",))
    assert log.tried == ["fine"]


def test_another_definition_makes_everything_stale():
    """Rows written for one schema are not committed under another, though no file changed."""
    log = MemoryLog("ab")
    rewrite = rewrite_of(log, "a", "b")
    log.write(definition="altered")

    error = outcome_of(log, rewrite)

    assert isinstance(error, StaleRewriteError)
    assert error.gone == ("the table's definition",)


@pytest.mark.parametrize("fate", ["fine", "never", VerificationError("a file is gone")])
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_table_that_was_made_again_has_nothing_of_ours(fate, attempts):
    """Its id says so, whatever became of the attempt, and be its files named like the old ones."""
    log = MemoryLog("ab", [fate])
    rewrite = rewrite_of(log, "ab")
    log.write(id="another")

    error = outcome_of(log, rewrite, Backoff(attempts=attempts))

    assert isinstance(error, ReplacedTableError)
    assert len(log.tried) == 1


def test_a_commit_before_the_table_was_replaced_has_landed():
    """It is in the history of what has the name now, which can be brought back."""
    log = MemoryLog("ab", ["lost"])
    rewrite = rewrite_of(log, "ab")
    turns = iter([lambda: None, lambda: log.write(id="another")])
    log.others = lambda log: next(turns, lambda: None)()

    landed = outcome_of(log, rewrite)

    assert landed == Landed(change=landed.change, version=None, attempts=1, stale=(), doubtful=True)


def test_a_file_that_is_gone_is_not_looked_for_again():
    """It will not come back: there is one attempt, and nothing was committed."""
    log = MemoryLog("ab", [VerificationError("a file is gone")])

    error = outcome_of(log, rewrite_of(log, "ab"))

    assert isinstance(error, VerificationError)
    assert len(log.tried) == 1


@given(attempts=st.integers(1, 30))
@settings(deadline=None)
def test_races_are_lost_as_often_as_allowed(attempts):
    """The last attempt's conflict is the outcome; its own commit is looked for even then."""
    log, time = MemoryLog("a"), Time(lambda: 0.5)
    rewrite = rewrite_of(log, "a")
    log.others = lambda log: log.write()

    with pytest.raises(ConflictError):
        commit_change(log, rewrite, Attempts(Backoff(attempts=attempts, deadline=1e9), time.clock))

    assert len(log.tried) == attempts
    assert time.waits == [0.5 * min(10.0, 0.1 * 2**n) for n in range(attempts - 1)] + [0.0]


@given(jitter=st.floats(0.01, 1), deadline=st.floats(0, 100), slow=st.floats(0, 50))
@settings(deadline=None)
def test_no_attempt_starts_after_the_deadline(jitter, deadline, slow):
    """Neither waiting nor looking at the table, each *slow*, puts one off for long."""
    log, time, starts = MemoryLog("a"), Time(lambda: jitter), []
    rewrite = rewrite_of(log, "a")

    def fate():
        while True:
            starts.append(time.now)
            yield "fine"

    def others(log):
        time.now += slow
        log.write()

    log.fates, log.others = fate(), others

    with pytest.raises(ConflictError):
        commit_change(
            log, rewrite, Attempts(Backoff(attempts=1_000, deadline=deadline), time.clock)
        )

    assert all(start <= deadline + 2 * slow for start in starts)
    assert sum(time.waits) <= deadline


@pytest.mark.parametrize("second", ["fine", OSError("disk"), UsageError("no such column")])
def test_after_a_doubtful_attempt_every_failure_is_doubtful(second):
    """A conflict, or whatever else stops the loop, does not prove that the first did not land."""
    log = MemoryLog("a", ["late", second])
    rewrite = rewrite_of(log, "a")
    log.others = lambda log: log.write()

    error = outcome_of(log, rewrite, Backoff(attempts=2))

    assert isinstance(error, UnknownOutcomeError)
    assert error.commit_id == rewrite.id


def test_a_table_that_is_said_to_be_another_one_leaves_doubts_of_an_earlier_attempt():
    """The error stays, since its advice is right; that nothing was committed is not known."""
    log = MemoryLog("a", ["late", ReplacedTableError("t")])

    error = outcome_of(log, rewrite_of(log, "a"), Backoff(attempts=2))

    assert isinstance(error, ReplacedTableError)
    assert error.committed is None


def test_a_doubt_about_an_entry_of_the_format_itself_names_the_change():
    """Whoever looks for the other id finds it, and takes the change for committed."""
    log = MemoryLog("a", [UnknownOutcomeError("t", "of an entry that comes first")])
    rewrite = rewrite_of(log, "a")

    error = outcome_of(log, rewrite, Backoff(attempts=1))

    assert isinstance(error, UnknownOutcomeError)
    assert error.commit_id == rewrite.id


@pytest.mark.parametrize("fate", ["late", "fine"])
def test_a_log_that_cannot_be_read_leaves_doubts(fate):
    """Even after a lost race: who is told so may have lost to an earlier try of its own."""
    log = MemoryLog("a", [fate])
    rewrite = rewrite_of(log, "a")
    log.write()

    def snapshot(table, since=None):
        raise OSError("no network")

    log.snapshot = snapshot

    with pytest.raises(UnknownOutcomeError):
        commit_change(log, rewrite, Attempts(clock=Time().clock))


@pytest.mark.parametrize("kind", [StoreError, UsageError, UnsupportedError, UnsentCommitError])
def test_a_failure_that_is_no_race_is_not_tried_again(kind):
    """It is raised as it is, since it states that nothing was committed."""
    log = MemoryLog("a", [kind("refused")])

    error = outcome_of(log, rewrite_of(log, "a"))

    assert type(error) is kind
    assert len(log.tried) == 1


@pytest.mark.parametrize(
    "raised",
    [PermissionError("read only"), KeyError("etag"), EngineError("500"), DataFileError("?")],
)
def test_an_exception_that_states_no_outcome_leaves_doubts(raised):
    """A plug-in's exception may follow a commit that landed: its files must stay."""
    log = MemoryLog("a", [raised])
    rewrite = rewrite_of(log, "a")

    error = outcome_of(log, rewrite)

    assert isinstance(error, UnknownOutcomeError)
    assert error.commit_id == rewrite.id
    assert type(raised).__name__ in str(error)
    assert error.__cause__ is raised
    assert len(log.tried) == 1


def test_an_exception_after_the_commit_counts_as_success():
    """The table's history has the commit, whatever the plug-in says."""
    log = MemoryLog("ab", ["raw lost"])

    landed = outcome_of(log, rewrite_of(log, "ab"))

    assert landed == Landed(change=landed.change, version=None, attempts=1, stale=(), doubtful=True)
    assert len(log.versions) == 2


@pytest.mark.parametrize("kind", sorted(NOT_COMMITTED, key=lambda kind: kind.__name__))
def test_errors_before_sending_are_kept(kind):
    """Those that state that nothing was committed stay what they are."""
    error = StaleRewriteError("t", ["a"]) if kind is ConflictError else _made(kind)

    with pytest.raises(kind) as raised, before_sending("t"):
        raise error

    assert raised.value is error


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (OSError(28, "No space left on device"), StoreError),
        (PermissionError(13, "Permission denied"), StoreError),
        (KeyError("path"), UnsentCommitError),
        (EngineError("broken"), UnsentCommitError),
    ],
)
def test_an_exception_before_sending_states_that_nothing_was_committed(raised, kind):
    """The new files are then deleted; the exception is the cause."""
    with pytest.raises(kind) as caught, before_sending("t"):
        raise raised

    assert type(caught.value) in NOT_COMMITTED
    assert caught.value.__cause__ is raised


def _made(kind):
    arguments = {ForeignChangeError: ("t", "removed", ["a"], "restore it")}
    return kind(*arguments.get(kind, ("message",)))


@given(st.integers(1, 2_000), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1))
@settings(deadline=None)
def test_waits_grow_up_to_the_longest(attempts, initial, longest, jitter):
    """One fewer than attempts, never beyond the longest, however many there are."""
    waits = list(Backoff(attempts=attempts, initial=initial, longest=longest).waits(lambda: jitter))

    assert len(waits) == attempts - 1
    assert waits == sorted(waits)
    assert all(0 <= wait <= longest for wait in waits)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"initial": -1}, {"longest": -0.1}, {"deadline": -1}]
)
def test_a_backoff_makes_sense(wrong):
    """At least one attempt, and time goes forward."""
    with pytest.raises(UsageError):
        Backoff(**wrong)
