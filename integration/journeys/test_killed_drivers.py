"""A driver on a cluster that is killed in the middle of a run."""

import json
import re
import signal
import sys

import pytest

from integration.journeys.cluster_tables import OnDisk

ROWS = 120_000
CODE = """
import json, os, signal, sys, threading
import zadapter, zadapter.spark
from zadapter.backend.plugins import load

settings, tables, sent = map(json.loads, sys.argv[1:])
spark = zadapter.spark.session(settings, formats=["delta", "iceberg", "parquet"])

def optimize(table, backend):
    keys = {"by": "a", "target_file_size": "1MB", "max_job_bytes": "8MB"}
    return zadapter.optimize(table, **keys, backend=backend, spark=spark)

def make():
    rows = spark.range(0, 120_000, 1, 4).selectExpr("id * 7919 % 200003 AS a", "id AS b")
    rows = rows.selectExpr("*", "sha2(cast(b AS string), 512) AS c")
    spark.sql("CREATE NAMESPACE ice.db")
    for table, backend in tables.items():
        if backend == "iceberg":
            rows.writeTo(table).create()
        else:
            rows.write.format(backend).save(table)

def dying(commit, is_sent, jobs):
    # of the second job, before its commit is sent or before its answer is read
    def committed(self, change):
        jobs.append(change)
        if len(jobs) == 2 and not is_sent:
            together.wait()
        version = commit(self, change)
        if len(jobs) == 2:
            together.wait()
        return version
    return committed

if sent:
    make()
    together = threading.Barrier(3, lambda: os.kill(os.getpid(), signal.SIGKILL))
    for format, is_sent in sent.items():
        backend = load(format)
        backend.commit = dying(backend.commit, is_sent, [])
    threads = [threading.Thread(target=optimize, args=each) for each in tables.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
for table, backend in tables.items():
    report = optimize(table, backend)
    files = zadapter.files(table, backend=backend, spark=spark)["path"].to_pylist()
    print(json.dumps([report.earlier_runs, report.versions, files]), flush=True)
spark.stop()
"""
SENT = {"delta": False, "iceberg": True, "parquet": False}
"""Whether the second job's commit is sent when the driver dies."""


def driver(user, *arguments):
    """Run a driver to its end."""
    script = user.folder / "driver.py"
    script.write_text(CODE, encoding="utf-8")
    words = [str(script), *map(json.dumps, arguments)]
    return user.call(sys.executable, *words, PYSPARK_PYTHON="/no/python")


@pytest.mark.slow
def test_a_driver_is_killed_next_to_commits(user, workers):
    """The same call ends the run: each row is there once, and no job is done twice."""
    master, _ = workers
    lake = OnDisk(user.folder)

    killed = driver(user, lake.settings(master), lake.tables, SENT)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-5_000:]
    answer = driver(user, lake.settings(master), lake.tables, None)
    assert answer.returncode == 0, answer.stderr[-5_000:]

    told = map(json.loads, answer.stdout.splitlines())
    for (table, format_), (earlier, versions, files) in zip(lake.tables.items(), told, strict=True):
        (line,) = earlier
        assert f"ended after {1 + SENT[format_]} of " in line
        assert len(versions) == 1 - SENT[format_]
        assert lake.rows(table, files) == [(b * 7919 % 200_003, b) for b in range(ROWS)]
        left = lake.found(table) - lake.named(table, files)
        # a commit that was to be sent may still arrive, and then needs its files
        assert (len({written(path) for path in left}), "of unknown outcome; " in line) == (
            (0, False) if SENT[format_] else (1, True)
        ), (left, line)


def written(path):
    """Return the part of a path that names the write."""
    return re.search(r"zadapter-[0-9a-f]{16}|/[0-9a-f]{32}/", path)[0]
