"""Phases without Spark: seconds, log lines, secrets, observers that fail."""

import logging
import subprocess
import sys
from contextlib import contextmanager

import pytest

from zadapter.base.phases import call, observing, phase


def test_a_phase_logs_one_line_with_its_facts(caplog):
    """The text is for people, the attributes of the record are for programs."""
    caplog.set_level(logging.INFO, logger="zadapter")
    seconds = {"write": 1.0}

    with phase("write", "lake/t", seconds) as step:
        step.note(version=None, files=1_000, bytes=2048)

    (record,) = caplog.records
    assert (record.name, record.levelname) == ("zadapter.phases", "INFO")
    assert record.getMessage() == f"write lake/t: {step.seconds:.1f} s, 1,000 files, 2 KB"
    assert (record.phase, record.table) == ("write", "lake/t")
    assert (record.files, record.bytes, record.seconds) == (1_000, 2048, step.seconds)
    assert not hasattr(record, "version")
    assert seconds["write"] == 1 + step.seconds


def test_a_failure_is_raised_and_not_logged(caplog):
    """It would be seen twice; its seconds count."""
    caplog.set_level(logging.DEBUG)
    seconds = {}

    def fail():
        with call("optimize", "t", seconds), phase("write", "t", seconds):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()

    assert caplog.records == []
    assert set(seconds) == {"write", "total"}


def test_secrets_of_a_location_are_masked(caplog):
    """Logs go to places where the table's readers do not."""
    caplog.set_level(logging.INFO, logger="zadapter")

    with phase("plan", "s3://id:hidden@bucket/t"):
        pass

    (record,) = caplog.records
    assert record.table == "s3://***@bucket/t"
    assert "hidden" not in caplog.text


def failing_at_start(step):
    raise ValueError("an observer is broken")


@contextmanager
def failing_at_end(step):
    yield
    raise ValueError("an observer is broken")


class FailingHandler(logging.Handler):
    def emit(self, record):
        raise ValueError("a handler is broken")


@pytest.mark.parametrize("broken", [failing_at_start, failing_at_end])
def test_a_broken_observer_changes_nothing(broken):
    """After a commit an error would delete live files."""
    seconds = {}

    with observing(broken), phase("commit", "t", seconds):
        landed = True

    assert landed
    assert set(seconds) == {"commit"}


def test_a_broken_handler_of_logs_changes_nothing():
    """Neither does a handler that lets its errors through."""
    logger, handler = logging.getLogger("zadapter"), FailingHandler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with phase("commit", "t") as step:
            pass
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)

    assert step.seconds > 0


def test_observers_see_the_call_of_a_phase():
    """A display groups phases by call, and stops when its block ends."""
    seen = []

    @contextmanager
    def look(step):
        seen.append((step.name, step.call and step.call.name))
        yield

    with observing(look), call("optimize", "t"), phase("plan", "t"):
        pass
    with phase("plan", "t"):
        pass

    assert seen == [("optimize", None), ("plan", "optimize")]


SPANS = """
import zadapter.base.phases as phases
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

kept, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
try:
    with phases.call("optimize", "t"):
        with phases.phase("plan", "t") as step:
            step.note(version=3, bytes=2048)
        with phases.phase("write", "t"):
            raise ValueError("token=hidden is refused")
except ValueError:
    pass
plan, write, whole = kept.get_finished_spans()
assert [span.name for span in (plan, write, whole)] == [
    "zadapter.plan", "zadapter.write", "zadapter.optimize"
]
assert plan.parent.span_id == write.parent.span_id == whole.context.span_id
assert dict(plan.attributes) == {
    "zadapter.table": "t", "zadapter.seconds": step.seconds,
    "zadapter.version": 3, "zadapter.bytes": 2048,
}
assert plan.status.is_unset
assert write.status.description == "ValueError: token=*** is refused", write.status.description
assert not write.events
"""


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_phases_are_spans_where_open_telemetry_is_installed():
    """In a process of its own, since a process has one provider."""
    ended = python(SPANS)

    assert ended.stderr == ""
    assert ended.returncode == 0


def test_open_telemetry_is_not_needed():
    """Without its API nothing changes, and nothing is printed."""
    ended = python(
        "import sys; sys.modules['opentelemetry'] = None\n"
        "import zadapter, zadapter.base.phases as phases\n"
        "with phases.phase('plan', 't'): pass\n"
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
