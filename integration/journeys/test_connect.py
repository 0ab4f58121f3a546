"""Spark Connect is refused in one sentence, before anything else happens."""

import pytest

CODE = """
from pyspark.sql import SparkSession
import zadapter
from zadapter.errors import SessionError

spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert spark.range(9).count() == 9
for verb, given in ((zadapter.optimize, {"spark": spark}), (zadapter.plan, {})):
    try:
        verb("lake/events", by="a", **given)
    except SessionError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_session_of_a_connect_server(user):
    """Given, or active: the same sentence, which names the way out."""
    (user.folder / "lake" / "events" / "_delta_log").mkdir(parents=True)

    given, active = user.python(CODE).splitlines()

    assert given == active
    assert given.startswith("Spark Connect sessions are not supported")
    assert "start a classic session" in given


def test_a_server_in_the_environment(user):
    """On the command line; nothing is started, and no server is asked."""
    (user.folder / "lake" / "events" / "_delta_log").mkdir(parents=True)

    answer = user.call(
        "zadapter", "plan", "lake/events", "--by", "a", SPARK_REMOTE="sc://127.0.0.1:9"
    )

    assert answer.returncode == 1
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert line.startswith("error: Spark Connect sessions are not supported")
