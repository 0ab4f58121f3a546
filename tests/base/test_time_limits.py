"""Exceptions of the caller's own signal handlers, such as those of time limits, without Spark."""

import signal
import sys

import pytest

from tests.base.kit.signals import interrupt, python_s_handler, spark_context  # noqa: F401
from zadapter.backend.commit import Landed
from zadapter.base import interrupts
from zadapter.base.interrupts import defer_signals, interruptible, terminate


class TimeLimit(Exception):  # noqa: N818 - such as Celery's soft limit
    """What a handler of the user's raises."""


class TaskTimeout(BaseException):
    """The same, and not even an Exception."""


@pytest.fixture(
    params=[TimeLimit("10 minutes"), TaskTimeout("task"), TimeoutError("alarm")], ids=repr
)
def limit(request):
    """A handler of SIGALRM that raises, as time limits have it, and what it raises."""

    def handler(_number, _frame):
        raise request.param

    before = signal.signal(signal.SIGALRM, handler)
    yield request.param
    assert signal.getsignal(signal.SIGALRM) is handler
    signal.signal(signal.SIGALRM, before)


def test_a_time_limit_waits_for_the_clean_up(context, limit):
    """The jobs are cancelled at once; the user's own exception is raised, not that of a job."""
    cleaned = []

    def run():
        with interruptible(context, "call it again"):
            interrupt(signal.SIGALRM)
            interrupt(signal.SIGALRM)
            try:
                context.job()
            except OSError:
                interrupt(signal.SIGALRM)
                cleaned.append(True)
                raise

    with pytest.raises(type(limit)) as ended:
        run()

    assert ended.value is limit
    assert cleaned == [True]
    if sys.version_info >= (3, 11):
        assert "nothing was committed. call it again" in limit.__notes__


def test_a_time_limit_during_a_commit_waits_for_its_outcome(context, limit):
    """The commit ends, and what was committed is known."""
    landed = []

    @defer_signals
    def commit():
        interrupt(signal.SIGALRM)
        landed.append(True)
        return Landed(version=7, change=None, attempts=1, stale=(), doubtful=False)

    def run():
        with interruptible(context):
            commit()
            commit()

    with pytest.raises(type(limit)) as ended:
        run()

    assert ended.value is limit
    assert landed == [True]
    if sys.version_info >= (3, 11):
        assert "versions committed by this call: 7" in limit.__notes__


def test_a_limit_while_handlers_are_replaced_leaves_none_of_ours(context, limit, monkeypatch):
    """Else Ctrl-C would be recorded for ever, by a run that has ended."""
    replace, before = signal.signal, signal.getsignal(signal.SIGINT)

    def replaced(number, handler):
        if number == signal.SIGALRM:
            monkeypatch.undo()
            raise limit
        return replace(number, handler)

    def run():
        with interruptible(context):
            context.job()

    monkeypatch.setattr(signal, "signal", replaced)
    with pytest.raises(type(limit)):
        run()

    assert signal.getsignal(signal.SIGINT) is before
    assert interrupts._watches == []  # noqa: SLF001 - what the next call would find


def test_a_limit_while_handlers_are_restored_is_raised_after_them(context, limit, monkeypatch):
    """All of them are the caller's again."""
    replace, before = signal.signal, signal.getsignal(signal.SIGTERM)
    mine = replace(signal.SIGTERM, terminate)

    def replaced(number, handler):
        found = replace(number, handler)
        if number == signal.SIGALRM and handler is not limit and not raised:
            raised.append(handler)
            raise limit
        return found

    raised = []

    def run():
        with interruptible(context):
            monkeypatch.setattr(signal, "signal", replaced)

    try:
        with pytest.raises(type(limit)):
            run()
        assert raised
        assert signal.getsignal(signal.SIGTERM) is terminate
    finally:
        monkeypatch.undo()
        replace(signal.SIGTERM, mine)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_time_limit_within_a_call_within_a_call_ends_both(context, limit):
    """The outer call records it, and cancels what the inner one has started."""

    def run():
        with interruptible(context), interruptible(context):
            interrupt(signal.SIGALRM)
            context.job()

    with pytest.raises(type(limit)) as ended:
        run()

    assert ended.value is limit
