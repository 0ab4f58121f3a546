"""Options of the JVMs that tests start.

A test runs each piece of code a few times. Of all the processor time of a test session, Java's
optimizing compiler takes a third, and tests that start a JVM of their own end before it pays off.
Its fast compiler needs no profile. It changes no result, only how fast code is that runs for long.

The journeys in ``integration/journeys`` remove all of Spark's variables: they run as a user does.
"""

import os

import pytest

FAST_COMPILER = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m")
"""The cache has its usual size, which Java otherwise cuts to 48 MB for the fast compiler alone."""


def use_fast_compiler():
    """Have the JVMs of Spark that this process and its children start compile fast."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(FAST_COMPILER))


def session(settings, **keywords):
    """Return zadapter's session. Without a Java or the jars, each test says so in one line."""
    import zadapter.spark
    from zadapter.errors import SessionError

    try:
        return zadapter.spark.session(settings, **keywords)
    except SessionError as error:
        others = "pytest --ignore tests/spark runs the tests without Spark"
        pytest.fail(f"{error}; {others}", pytrace=False)
