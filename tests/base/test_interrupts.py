"""Signals that end a run, without Spark."""

import os
import signal
import sys
import threading
from types import SimpleNamespace

import pytest

from zadapter.backend.commit import Landed
from zadapter.base import interrupts
from zadapter.base.interrupts import Interrupted, deferred, interruptible, terminate
from zadapter.errors import UnknownOutcomeError


class Context:
    """Stands for a SparkContext; its jobs end when they are cancelled."""

    def __init__(self):
        self.tags, self.properties = set(), {}
        self.cancelled = threading.Event()

    def getLocalProperty(self, key):  # noqa: N802 - Spark's name
        return self.properties.get(key)

    def setLocalProperty(self, key, value):  # noqa: N802 - Spark's name
        self.properties[key] = value

    def setInterruptOnCancel(self, wanted):  # noqa: N802 - Spark's name
        self.properties["spark.job.interruptOnCancel"] = str(wanted).lower()

    def addJobTag(self, tag):  # noqa: N802 - Spark's name
        self.tags.add(tag)

    def removeJobTag(self, tag):  # noqa: N802 - Spark's name
        self.tags.remove(tag)

    def cancelJobsWithTag(self, tag):  # noqa: N802 - Spark's name
        if tag in self.tags:
            self.cancelled.set()

    def job(self):
        """Run until cancelled, as a call to the JVM does."""
        assert self.cancelled.wait(30)
        raise OSError("job cancelled")


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def python_s_handler():
    """Shells start what runs in their background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def context():
    return Context()


def test_a_signal_cancels_the_jobs_and_ends_the_run(context):
    """The call into the JVM is never broken off: it fails, what is around it cleans up."""
    cleaned = []

    def run():
        with interruptible(context, "call it again"):
            interrupt()
            interrupt()
            try:
                context.job()
            except OSError:
                interrupt()
                cleaned.append(True)
                raise

    with pytest.raises(KeyboardInterrupt) as ended:
        run()

    assert str(ended.value) == "interrupted; nothing was committed. call it again"
    assert cleaned == [True]
    assert context.tags == set()
    assert context.properties == {"spark.job.interruptOnCancel": None}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("landed", [True, False])
def test_a_commit_under_way_ends_first(context, landed):
    """Its outcome is known then, or known to be unknown."""

    @deferred
    def commit():
        interrupt()
        if not landed:
            raise UnknownOutcomeError("t", "c0ffee")
        return Landed(version=7, attempts=1, stale=(), doubtful=False)

    def run():
        with interruptible(context):
            commit()

    with pytest.raises(Interrupted) as ended:
        run()

    says = "versions committed by this call: 7" if landed else "outcome of commit c0ffee is unknown"
    assert says in str(ended.value)


def test_jobs_of_a_commit_are_not_cancelled(context):
    """A commit may need Spark to find out what became of it."""
    watch = interrupts.Watch("")
    watch.note(signal.SIGINT, None)
    context.addJobTag("tag")

    for watch.deferring in (True, False):
        looks = iter([False, True])
        ended = SimpleNamespace(wait=lambda _, looks=looks: next(looks))
        interrupts.cancel(context, "tag", watch, ended)
        assert context.cancelled.is_set() == (not watch.deferring)


def test_no_commit_begins_after_a_signal(context):
    """Whoever has asked to stop finds the table as it was."""
    sent = []

    def run():
        with interruptible(context):
            interrupt()
            deferred(lambda: sent.append(True))()

    with pytest.raises(Interrupted, match="nothing was committed"):
        run()

    assert sent == []


def test_a_handler_of_the_user_s_own_stays(context):
    """A program that handles Ctrl-C itself goes on doing so."""
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        with interruptible(context):
            interrupt()
    finally:
        signal.signal(signal.SIGINT, before)

    assert seen == [signal.SIGINT]


@pytest.mark.parametrize("asked", [True, False])
def test_sigterm_ends_a_run_only_where_that_was_asked_for(context, asked):
    """The command line asks for it; a program's own process ends as ever."""
    handlers = []

    def run():
        with interruptible(context):
            handlers.append(signal.getsignal(signal.SIGTERM))
            if asked:
                interrupt(signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, terminate if asked else signal.SIG_DFL)
    try:
        if asked:
            with pytest.raises(Interrupted) as ended:
                run()
            assert ended.value.number == signal.SIGTERM
        else:
            run()
            assert handlers == [signal.SIG_DFL]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_get_no_signals(context):
    """A run in a thread is tagged, and handles nothing."""
    seen = []

    def run():
        with interruptible(context):
            seen.append((len(context.tags), signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [(1, signal.default_int_handler)]


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

    @deferred
    def commit():
        interrupt(signal.SIGALRM)
        landed.append(True)
        return Landed(version=7, attempts=1, stale=(), doubtful=False)

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
