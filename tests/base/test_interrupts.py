"""Signals that end a run, without Spark."""

import signal
import threading
from types import SimpleNamespace

import pytest

from tests.base.kit.signals import interrupt, python_s_handler, spark_context  # noqa: F401
from zadapter.backend.commit import Landed
from zadapter.base import interrupts
from zadapter.base.interrupts import Interrupted, defer_signals, interruptible, terminate
from zadapter.errors import UnknownOutcomeError


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

    @defer_signals
    def commit():
        interrupt()
        if not landed:
            raise UnknownOutcomeError("t", "c0ffee")
        return Landed(version=7, change=None, attempts=1, stale=(), doubtful=False)

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
            defer_signals(lambda: sent.append(True))()

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


def test_another_thread_ends_the_run_of_a_thread(context):
    """A thread gets no signals: the watch that it was given stands for them."""
    watch, ended = interrupts.Watch(""), []

    def run():
        with interrupts.watching(watch), interruptible(context):
            context.job()

    def thread():
        try:
            run()
        except Interrupted as error:
            ended.append(str(error))

    other = threading.Thread(target=thread)
    other.start()
    watch.note(signal.SIGINT, None)
    other.join()

    assert ended == ["interrupted; nothing was committed"]


def test_a_commit_of_a_thread_defers_its_watch(context):
    """As in the main thread: what has landed is in the error, and nothing is sent after it."""
    watch, sent, ended = interrupts.Watch(""), [], []

    @defer_signals
    def commit():
        sent.append(watch.deferring)
        watch.note(signal.SIGINT, None)
        return Landed(version=7, change=None, attempts=1, stale=(), doubtful=False)

    def thread():
        try:
            with interrupts.watching(watch), interruptible(context):
                commit()
                commit()
        except Interrupted as error:
            ended.append(str(error))

    other = threading.Thread(target=thread)
    other.start()
    other.join()

    assert sent == [True]
    assert ended == ["interrupted; versions committed by this call: 7"]


def test_a_run_of_a_thread_knows_that_its_watch_ends_it():
    """What is told of its end is that it was interrupted, not that it failed."""
    watch = interrupts.Watch("")

    with interrupts.watching(watch):
        before = interrupts.is_interrupted()
        watch.note(signal.SIGINT, None)
        after = interrupts.is_interrupted()

    assert (before, after, interrupts.is_interrupted()) == (False, True, False)
