"""Signals of tests, and what stands for Spark while they arrive."""

import os
import signal
import threading

import pytest


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


@pytest.fixture(name="context")
def spark_context():
    return Context()
