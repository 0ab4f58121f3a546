"""spark-submit: with Delta's package on its command line, and without."""

import pytest

from integration.journeys.settings import DELTA, documented
from integration.kit.witnesses import delta_table, of_delta

PACKAGES = "spark.jars.packages"
OPTIMIZE = """
import zadapter

report = zadapter.optimize("lake/events", by="a", target_file_size="64KB")
assert report.share_after < report.share_before / 2, report
print(report)
"""
SESSION = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("nightly").getOrCreate()
"""


@pytest.fixture
def events(user):
    """A Delta table that its user has made without Spark."""
    path = str(user.folder / "lake" / "events")
    delta_table(path, 60_000)
    return path


def submitted(user, script, *flags):
    """Submit a script. Return the exit code and what it prints, its errors among it."""
    (user.folder / "nightly.py").write_text(script)
    answer = user.call("spark-submit", *flags, "nightly.py")
    return answer.returncode, answer.stdout


@pytest.mark.slow
@pytest.mark.parametrize("session", [SESSION, ""], ids=["own", "none"])
def test_with_the_settings_of_the_guide(user, events, session):
    """The script names no format, and may leave the session to zadapter."""
    settings = documented(DELTA)
    packages = settings.pop(PACKAGES)
    before = of_delta(events)
    flags = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]

    code, output = submitted(user, session + OPTIMIZE, "--packages", packages, *flags)

    assert code == 0, output[-3_000:]
    assert "committed" in output
    assert of_delta(events) == before


def test_without_packages(user, events):
    """The error names each documented setting with its value, and nothing is written."""
    before = of_delta(events)

    code, output = submitted(user, SESSION + OPTIMIZE)

    error = output.partition("SessionError: ")[2]
    assert code == 1
    assert "this Spark session does not support delta" in error
    for key, value in documented(DELTA).items():
        assert f'"{key}", "{value}"' in error
    assert of_delta(events) == before
