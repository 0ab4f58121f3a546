"""What a user sees of a call besides its result: log lines, Spark's UI, a display, and silence."""

import io
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

import zadapter
from tests.kit.checkout import python_path
from tests.kit.variants import slow
from zadapter.base.phases import observing
from zadapter.errors import EngineError

PHASES = ["plan", "fit", "write", "verify", "commit"]


@pytest.fixture
def events(spark, tmp_path):
    """A folder of Parquet files, rows in no order."""
    folder = str(tmp_path / "events")
    rows = spark.range(30_000).selectExpr("id * 31337 % 9973 AS user_id", "sha(string(id)) AS page")
    rows.repartition(3).write.parquet(folder)
    return folder


def optimize(spark, folder):
    return zadapter.optimize(
        folder, by="user_id", backend="parquet", target_file_size="200KB", spark=spark
    )


def described_jobs(spark):
    """Return how often each description occurs among the jobs that Spark's UI lists."""
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # noqa: SLF001
    texts = [jobs.apply(number).description() for number in range(jobs.size())]
    return Counter(text.get() for text in texts if text.isDefined())


def test_optimize_logs_each_phase_once(spark, events, caplog):
    """Lines of a job in production: table, version, bytes and seconds of each phase."""
    caplog.set_level(logging.INFO, logger="zadapter")

    report = optimize(spark, events)

    lines = {record.phase: record for record in caplog.records}
    jobs = ["run", *PHASES[2:]]
    assert [record.phase for record in caplog.records] == [*PHASES[:2], *jobs, "optimize"]
    assert lines["run"].run == report.run
    assert {record.table for record in caplog.records} == {events}
    assert {name: lines[name].seconds for name in PHASES} == {
        name: report.seconds[name] for name in PHASES
    }
    assert lines["optimize"].seconds == report.seconds["total"]
    assert lines["plan"].bytes == lines["write"].bytes == report.bytes_removed
    assert lines["write"].files == lines["commit"].files == report.files_added
    assert lines["verify"].bytes == lines["commit"].bytes == report.bytes_added
    assert (lines["commit"].version,) == report.versions
    assert lines["optimize"].rows == report.rows_added == 30_000


def test_every_verb_logs_its_phases(spark, events, caplog):
    """A writer's log says which version it made; a call that only looks commits nothing."""
    optimize(spark, events)
    rows = spark.createDataFrame([(1, "a")], "user_id bigint, page string")
    caplog.set_level(logging.INFO, logger="zadapter")

    appended = zadapter.append(events, rows).version
    zadapter.delete(events, "page = 'a'", spark=spark)
    zadapter.overwrite(events, rows)
    restored = zadapter.restore(events, appended, spark=spark).version
    zadapter.publish(events, spark=spark)
    zadapter.vacuum(events, spark=spark)
    zadapter.plan(events, by="user_id", spark=spark)
    zadapter.read(events, spark=spark)
    zadapter.files(events, spark=spark)
    zadapter.audit(events, deep=True, spark=spark)

    writing = ["plan", "write", "verify", "commit"]
    assert [record.phase for record in caplog.records] == [
        *(*writing, "append", *writing, "delete", *writing, "overwrite"),
        *("commit", "restore", "commit", "publish", "plan", "vacuum"),
        *("plan", "fit", "plan", "plan", "read", "plan", "files"),
        *("verify", "audit"),
    ]
    versions = [record.version for record in caplog.records if record.phase == "commit"]
    assert versions[:4] == [appended, appended + 1, appended + 2, restored]


def test_jobs_are_described_in_sparks_ui(spark, events):
    """Jobs are told apart by phase; the user's own description and tags are back afterwards."""
    context = spark.sparkContext
    context.setJobDescription("nightly")
    context.setJobGroup("group", "nightly")
    before = described_jobs(spark)
    try:
        optimize(spark, events)
        described_by = context.getLocalProperty("spark.job.description")
        group = context.getLocalProperty("spark.jobGroup.id")
    finally:
        context.setLocalProperty("spark.job.description", None)
        context.setLocalProperty("spark.jobGroup.id", None)

    found = described_jobs(spark) - before
    assert {f"zadapter: {name} {events}" for name in ("fit", "write")} <= set(found)
    assert (described_by, group) == ("nightly", "group")
    assert not context.getJobTags()


@pytest.fixture
def large(spark, tmp_path):
    """A folder of three partitions, a job each, and the arguments of the call."""
    folder = str(tmp_path / "large")
    rows = spark.range(30_000).selectExpr("id * 31337 % 9973 AS a", "id % 3 AS p").repartition(4)
    rows.write.partitionBy("p").parquet(folder)
    size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    arguments = {"by": "a", "backend": "parquet", "target_file_size": "8KB", "spark": spark}
    return folder, arguments | {"max_job_bytes": size // 3 + 1024}


@pytest.mark.slow
def test_a_run_of_several_jobs_says_what_is_left(spark, large, caplog):
    """A line for each job, whose bytes add up; in Spark's UI, each job has its number."""
    folder, arguments = large
    caplog.set_level(logging.INFO, logger="zadapter")
    before = described_jobs(spark)

    report = zadapter.optimize(folder, **arguments, max_concurrent_jobs=2)

    first, *jobs = [record for record in caplog.records if record.phase in {"run", "job"}]
    assert first.run == report.run
    assert (first.jobs_left, first.bytes_left) == (report.plan.jobs, report.bytes_removed)
    assert [job.jobs_left for job in jobs] == list(reversed(range(len(report.versions))))
    assert all(job.bytes_done + job.bytes_left == report.bytes_removed for job in jobs)
    assert jobs[-1].seconds_left == 0
    numbers = range(1, report.plan.jobs + 1)
    named = {f"zadapter: write {folder}, job {at} of {report.plan.jobs}" for at in numbers}
    assert named <= set(described_jobs(spark) - before)


@pytest.mark.parametrize("side_by_side", [2, *slow(1)])
def test_a_run_is_cancelled_by_its_job_group(spark, large, caplog, side_by_side):
    """What is committed stays, nothing else is left, and the same call goes on."""
    folder, arguments = large
    caplog.set_level(logging.INFO, logger="zadapter")
    ended, cancelling = threading.Event(), []

    def cancel():
        run = next(record.run for record in caplog.records if record.phase == "run")
        while not ended.wait(0.01):
            spark.sparkContext.cancelJobGroup(run)

    @contextmanager
    def cancelled(step):
        if step.name == "commit":
            cancelling.append(threading.Thread(target=cancel, daemon=True))
        yield
        if step.name == "commit" and len(cancelling) == 1:
            cancelling[0].start()

    with (
        observing(cancelled),
        pytest.raises(EngineError, match=r"jobs were cancelled.*Versions committed by this call: "),
    ):
        zadapter.optimize(folder, **arguments, max_concurrent_jobs=side_by_side)
    ended.set()
    cancelling[0].join()

    live = set(zadapter.files(folder, spark=spark)["path"].to_pylist())
    committed = len(zadapter.history(folder, spark=spark)) - 1
    assert committed >= 1
    staged = {str(path) for path in Path(folder, "_zadapter", "data").rglob("*") if path.is_file()}
    assert staged <= live
    assert not list(Path(folder, "_zadapter", "runs").iterdir())
    again = zadapter.optimize(folder, **arguments)
    assert len(again.versions) == again.plan.jobs == 3 - committed
    assert zadapter.read(folder, spark=spark).count() == 30_000


def test_written_bytes_are_measured(spark, events):
    """Spark's own metrics of the write's jobs; the sum of all files in the end."""
    amounts = {}

    @contextmanager
    def measuring(step):
        yield
        amounts[step.name] = step.measure()

    with observing(measuring):
        report = optimize(spark, events)

    assert amounts["write"].share_read == 1
    assert amounts["write"].written == pytest.approx(report.bytes_added, rel=0.05)
    del amounts["optimize"]  # the call itself, which has all of their jobs
    assert report.cost.bytes_written == report.bytes_added == sum_of(events, report)
    assert report.cost.bytes_read == report.bytes_removed
    assert report.cost.bytes_shuffled == sum(each.shuffled for each in amounts.values()) > 0
    assert report.cost.core_seconds == pytest.approx(
        sum(each.core_seconds for each in amounts.values())
    )
    assert amounts["fit"].core_seconds > 0


def sum_of(folder, report):
    """Return the bytes of the files of a report as they lie on disk."""
    return sum(Path(folder, path).stat().st_size for path in report.files["path"].to_pylist())


@pytest.mark.parametrize("side_by_side", slow(2, 1))
def test_the_cost_of_all_jobs_is_measured(spark, large, side_by_side):
    """A checksum reads what was written once more; threads lose nothing."""
    folder, arguments = large

    report = zadapter.optimize(
        folder,
        **arguments,
        max_concurrent_jobs=side_by_side,
        verify="checksum",
        price="core_hour=3600",
    )

    assert len(report.versions) > 1
    assert report.cost.bytes_written == report.bytes_added
    assert report.cost.bytes_read == report.bytes_removed + report.bytes_added
    assert report.price == pytest.approx(report.cost.core_seconds)


def test_a_cost_that_spark_does_not_tell_is_unknown(spark, events, monkeypatch):
    """The rewrite goes on."""
    monkeypatch.setattr("zadapter.spark.jobs.stages_by_job", lambda *_: 1 / 0)

    report = optimize(spark, events)

    assert report.versions
    assert report.cost.bytes_read == report.bytes_removed
    assert "unknown bytes written, unknown bytes shuffled, unknown core seconds" in str(report)


def test_a_terminal_shows_the_call(spark, events):
    """The display asks nothing of the user but a block."""
    written = io.StringIO()

    with zadapter.progress(Console(file=written, force_terminal=True, width=300)):
        optimize(spark, events)

    shown = written.getvalue()
    labels = ["planning", "sampling", "writing 0 of", "verifying", "committing"]
    at = [shown.index(label) for label in labels]
    assert at == sorted(at)


SILENT = """
import sys
from pyspark.sql import SparkSession
import zadapter

quiet = {"spark.log.level": "OFF", "spark.ui.showConsoleProgress": "false"}
spark = SparkSession.builder.master("local[2]").config(map=quiet).getOrCreate()
spark.range(1000).repartition(3).write.parquet("t")
for stream in (sys.stdout, sys.stderr):
    print("ready", file=stream, flush=True)
zadapter.optimize("t", by="id", backend="parquet", spark=spark)
spark.stop()
"""


@pytest.mark.slow
def test_nothing_is_printed(tmp_path):
    """A library is silent in the session of its user, on both streams, JVM included."""
    ended = subprocess.run(
        [sys.executable, "-c", SILENT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.partition("ready\n")[1:] == ("ready\n", "")
    assert ended.stderr.partition("ready\n")[1:] == ("ready\n", "")
