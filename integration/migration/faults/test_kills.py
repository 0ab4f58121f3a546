"""A migration that is stopped at any step is done or not begun, and the next call ends it."""

import json
import signal
import subprocess
import sys
from itertools import product

import pytest

from integration.migration.hooks import Stopped, once, stop
from integration.migration.tables import FORMATS
from tests.kit.variants import slow_but
from zadapter.errors import UsageError

pytestmark = pytest.mark.every_format
CODE = """
import json
import os
import signal
import sys

import zadapter
import zadapter.spark
from integration.migration.hooks import BACKENDS

settings, format_, table, to, target, step = json.loads(sys.argv[1])
backend = BACKENDS[to]
name, first = {"write": "write"}.get(step, "commit"), step == "before"
real = getattr(backend, name)


def dying(self, *arguments):
    if not first:
        real(self, *arguments)
    os.kill(os.getpid(), signal.SIGKILL)


setattr(backend, name, dying)
spark = zadapter.spark.session(settings)
zadapter.migrate(table, backend=format_, to=to, target=target, spark=spark)
"""
STEPS = {
    "write": ("write", {"after": stop}),
    "before": ("commit", {"before": stop}),
    "after": ("commit", {"after": stop}),
}
OFTEN = [("parquet", "write"), ("iceberg", "before"), ("delta", "after")]
"""Each format and each step once."""
OTHERS = {"delta": "iceberg", "iceberg": "parquet", "parquet": "delta"}


@pytest.fixture(scope="module")
def sources(lakes, spark):
    """A table of each format."""
    rows = spark.range(100).selectExpr("id", "id % 3 AS p")
    return {format_: lakes.make(format_, rows, "p") for format_ in FORMATS}


def check_run_again(lakes, sources, format_, target, *, landed):
    """There is all of the table or nothing, and after the next call all of it, once."""
    to, table = OTHERS[format_], sources[format_]
    assert lakes.exists(to, target) == landed

    report = lakes.migrate(format_, table, to, target)

    assert (report.why == "created by an earlier call") == landed
    assert report.proof.rows == 100
    assert lakes.read(to, target) == lakes.read(format_, table)


@pytest.mark.parametrize(("format_", "step"), slow_but(*OFTEN, of=product(FORMATS, STEPS)))
def test_what_was_stopped_is_ended_by_the_next_call(lakes, sources, monkeypatch, format_, step):
    """Before the commit, files that nobody knows of are left; after it, only the proof lacks."""
    to = OTHERS[format_]
    target, (method, action) = lakes.name(to), STEPS[step]
    once(monkeypatch, to, method, **action)

    with pytest.raises(Stopped):
        lakes.migrate(format_, sources[format_], to, target)

    check_run_again(lakes, sources, format_, target, landed=step == "after")


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "step"), OFTEN)
def test_a_process_that_is_killed(lakes, sources, format_, step):
    """The same, for processes of their own."""
    to = OTHERS[format_]
    target = lakes.name(to)
    said = [settings(lakes.spark), format_, sources[format_], to, target, step]

    child = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(said)], capture_output=True, text=True, check=False
    )

    assert child.returncode == -signal.SIGKILL, child.stderr[-2_000:]
    check_run_again(lakes, sources, format_, target, landed=step == "after")


def settings(spark):
    """What a second session needs to see the same catalog."""
    known = dict(spark.sparkContext.getConf().getAll())
    kept = ("spark.sql.catalog.ice", "spark.master", "spark.sql.shuffle.partitions")
    return {key: value for key, value in known.items() if key.startswith(kept)}


@pytest.mark.parametrize("format_", FORMATS)
def test_a_second_call_writes_nothing(lakes, spark, format_):
    """It proves again what is there; once the old table has changed, it says what to do."""
    to = OTHERS[format_]
    table = lakes.make(format_, spark.range(10))
    lakes.append(format_, table, spark.range(10, 20))
    first = lakes.migrate(format_, table, to)

    again = lakes.migrate(format_, table, to, first.target)

    assert again.why == "created by an earlier call"
    assert again.proof.checksum == first.proof.checksum
    assert again.target_version == first.target_version
    lakes.append(format_, table, spark.range(20, 30))
    with pytest.raises(UsageError, match="follow=True"):
        lakes.migrate(format_, table, to, first.target)
    assert len(lakes.read(to, first.target)) == 20
