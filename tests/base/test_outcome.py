"""Each error states whether to repeat the call, and whether the call has committed anything."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from zadapter import errors
from zadapter.base.outcome import record_landing, sending, stating, withdrawn
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import (
    NOT_COMMITTED,
    ConflictError,
    EngineError,
    StoreError,
    UnknownOutcomeError,
    VersionExpiredError,
    ZadapterError,
)

PAGE = Path(errors.__file__).parent / "docs" / "reference" / "errors.md"
FACTS = {"yes": True, "no": False, "unknown": None}


def classes(base=ZadapterError):
    """Return a class of errors, and those below it."""
    return [base, *(each for kind in base.__subclasses__() for each in classes(kind))]


EVERY = [kind for kind in classes() if kind.__module__ == errors.__name__]


def error_of(kind):
    """Return an error, whatever its class needs to be made."""
    error = kind.__new__(kind)
    ZadapterError.__init__(error, "text")
    return error


def raised(call):
    with pytest.raises(ZadapterError) as caught:
        translates_errors(call)("t")
    return caught.value


@pytest.mark.parametrize("kind", EVERY)
def test_a_class_claims_only_what_its_errors_prove(kind):
    """Files are deleted after those of ``NOT_COMMITTED``; a version expires where it is read."""
    assert (kind.committed is False) == issubclass(kind, (*NOT_COMMITTED, VersionExpiredError))
    assert kind.committed is False or not kind.retryable


@pytest.mark.parametrize("kind", EVERY)
def test_an_error_before_any_commit_says_that_nothing_is_committed(kind):
    """Whatever failed; only an unknown outcome stays unknown."""

    def call(_):
        raise error_of(kind)

    found = raised(call)

    assert found.committed is (None if kind is UnknownOutcomeError else False)
    assert found.retryable == kind.retryable


@pytest.mark.parametrize("kind", EVERY)
def test_an_error_while_a_commit_is_sent_says_what_it_proves(kind):
    """If it proves nothing, the outcome is unknown, and nobody is told to repeat the call."""

    def call(_):
        with sending():
            raise error_of(kind)

    found = raised(call)

    assert found.committed is kind.committed
    assert found.retryable == (kind.retryable and kind.committed is not None)


@pytest.mark.parametrize("kind", EVERY)
def test_an_error_after_a_commit_says_that_it_landed(kind):
    """Also if a later commit of the call was refused."""

    def call(_):
        with sending():
            pass
        with sending():
            raise error_of(kind)

    found = raised(call)

    assert found.committed is (None if kind.committed is None else True)


def test_a_failure_of_a_store_while_a_commit_is_sent_is_not_taken_for_a_refusal():
    """The same failure is retryable before the commit."""

    def before(_):
        raise OSError(28, "No space left on device")

    def during(_):
        with sending():
            raise OSError(28, "No space left on device")

    found = [raised(before), raised(during)]

    assert [type(error) for error in found] == [StoreError, StoreError]
    assert [(error.committed, error.retryable) for error in found] == [(False, True), (None, False)]


def test_one_of_several_commits_has_landed():
    """What comes after it in the block is not all that was done."""

    def call(_):
        with sending():
            record_landing()
            raise ConflictError("others were faster")

    assert raised(call).committed is True


def test_what_was_removed_again_is_not_committed():
    def call(_):
        with sending():
            pass
        withdrawn()
        raise EngineError("text")

    assert raised(call).committed is False


def test_a_call_within_a_call_has_its_own_outcome():
    """The self-test of a release commits to a table of its own."""

    def call(_):
        with stating(), suppress(ZadapterError), sending():
            raise EngineError("text")
        with stating(), sending():
            pass
        raise EngineError("text")

    assert raised(call).committed is False


def test_the_page_of_errors_lists_every_class():
    """With what its attributes say, its cause and what to do."""
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| \w.+ \| \w.+ \|$", page, re.MULTILINE)

    assert {name: (FACTS[again], FACTS[done]) for name, again, done in rows} == {
        kind.__name__: (kind.retryable, kind.committed) for kind in EVERY if kind is not EVERY[0]
    }
