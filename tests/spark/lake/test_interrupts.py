"""Signals, threads and the caller's session during a run over a lake."""

import os
import signal
import threading

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import zadapter
from tests.kit.variants import slow
from zadapter.cli.app import app
from zadapter.lake import journal, maintain, runs
from zadapter.spark.compat.spark_api import error_loggers

ROWS = pa.table({"id": [i * 7919 % 3_000 for i in range(3_000)]})


class TimeLimit(Exception):  # noqa: N818 - such as those of Celery
    """A time limit of the caller."""


@pytest.fixture(autouse=True)
def python_s_handlers():
    """Shells start what runs in their background with SIGINT ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def raw(tmp_path):
    for name in "abc":
        for part in range(2):
            rows = ROWS.slice(part * 1_500, 1_500)
            deltalake.write_deltalake(str(tmp_path / "raw" / name), rows, mode="append")
    return tmp_path / "raw"


@pytest.fixture
def lake(raw, tmp_path):
    file = tmp_path / "lake.toml"
    file.write_text(
        f"""
        [journal]
        table = "{tmp_path}/journal"
        [[tables]]
        match = "{raw}/*"
        by = ["id"]
        target_file_size = "8KB"
        keep = {{ versions = "30d" }}
        """
    )
    return file


@pytest.fixture
def during_rewrites(monkeypatch):
    """Calls a function at the beginning of each rewrite."""

    def during(work):
        rewrite = runs.run_optimize

        def rewriting(*arguments):
            work()
            return rewrite(*arguments)

        monkeypatch.setattr(runs, "run_optimize", rewriting)

    return during


def rewritten(raw):
    """Return the tables that have a version more, whose rows must be the same."""
    tables = {name: deltalake.DeltaTable(str(raw / name)) for name in "abc"}
    for table in tables.values():
        assert table.to_pyarrow_table().sort_by("id").equals(ROWS.sort_by("id"))
    return {name for name, table in tables.items() if table.version() > 1}


def in_journal(spark, raw):
    """Return the verdicts in the journal."""
    lines = journal.to_lines(journal.read(spark, str(raw.parent / "journal"), "parquet"))
    return {line.table.rpartition("/")[2]: line.verdict for line in lines}


@pytest.mark.parametrize("number", [signal.SIGINT, *slow(signal.SIGTERM)])
def test_a_signal_ends_the_run_after_the_rewrite_under_way(
    spark, raw, lake, during_rewrites, number
):
    """A second one changes nothing: the outcome is told, and the journal has it."""

    def interrupt():
        assert threading.current_thread() is not threading.main_thread()
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)

    during_rewrites(interrupt)
    command = ["maintain", str(lake), "--max-concurrent-tables", "1"]
    answer = CliRunner().invoke(app, command)

    (done,) = rewritten(raw)
    assert answer.exit_code == 128 + number, answer.output
    assert answer.stderr.splitlines()[-1] == f"interrupted; tables rewritten: {raw / done}"
    assert in_journal(spark, raw) == dict.fromkeys("abc", journal.WAITS) | {done: journal.REWRITTEN}


def test_a_signal_while_tables_are_judged_ends_the_run(spark, raw, lake, monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)
        raise ZeroDivisionError

    monkeypatch.setattr(maintain, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt, match="nothing was committed"):
        zadapter.maintain(lake, spark=spark)

    assert rewritten(raw) == set()


@pytest.mark.slow
def test_a_time_limit_of_the_caller_ends_the_run(spark, raw, lake, during_rewrites):
    """Its exception is raised when the outcome is in the journal."""

    def over(*_):
        raise TimeLimit

    signal.signal(signal.SIGALRM, over)
    during_rewrites(lambda: os.kill(os.getpid(), signal.SIGALRM))
    with pytest.raises(TimeLimit) as limit:
        zadapter.maintain(lake, max_concurrent_tables=1, spark=spark)

    (done,) = rewritten(raw)
    assert limit.value.__notes__ == [f"tables rewritten: {raw / done}"]
    assert in_journal(spark, raw)[done] == journal.REWRITTEN
    assert signal.getsignal(signal.SIGALRM) is over


@pytest.mark.slow
def test_the_callers_session_stays_as_it_is(spark, raw, lake, during_rewrites):
    """Jobs of all threads are in the caller's group; nothing of a thread stays behind."""
    context = spark.sparkContext
    context.setLocalProperty("spark.scheduler.pool", "nightly")
    context.setJobGroup("the night", "of the caller")
    pools = []
    during_rewrites(lambda: pools.append(context.getLocalProperty("spark.scheduler.pool")))

    def state():
        java = spark._jvm.org.apache.spark.sql.SparkSession  # noqa: SLF001
        properties = context._jsc.sc().getLocalProperties()  # noqa: SLF001
        return (
            spark._jsparkSession.sessionState().conf().getAllConfs().toString(),  # noqa: SLF001
            properties.toString(),
            java.getActiveSession().isDefined()
            and java.getActiveSession().get().equals(spark._jsparkSession),  # noqa: SLF001
            SparkSession.getActiveSession() is spark,
            [logger.disabled for logger in error_loggers()],
            signal.getsignal(signal.SIGINT),
            threading.active_count(),
        )

    try:
        before = state()
        report = zadapter.maintain(lake, max_concurrent_tables=3, spark=spark)
        assert state() == before
    finally:
        for key in ("spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(key, None)

    assert [line.verdict for line in report.lines] == [journal.REWRITTEN] * 3
    assert pools == ["nightly"] * 3
    assert rewritten(raw) == set("abc")
    assert len(context.statusTracker().getJobIdsForGroup("the night")) > 3


@pytest.mark.slow
def test_nothing_starts_when_the_time_is_over(spark, raw, during_rewrites, monkeypatch):
    """Prices and a sum are limits as well, and what was paid is told."""
    given = {
        "budget": {"time": "1h", "money": 0.01, "prices": {"core_hour": 1.0}},
        "tables": [{"match": f"{raw}/*", "by": ["id"], "target_file_size": "8KB"}],
    }
    elapsed = [0.0]
    monkeypatch.setattr(runs.Run, "elapsed", property(lambda _: elapsed[0]))
    during_rewrites(lambda: elapsed.append(elapsed.pop() + 3_600))

    report = zadapter.maintain(given, max_concurrent_tables=1, spark=spark)

    lines = {line.verdict: line for line in report.lines}
    assert len(rewritten(raw)) == 1
    assert sorted(line.verdict for line in report.lines) == [
        journal.REWRITTEN, journal.WAITS, journal.WAITS
    ]  # fmt: skip
    assert lines[journal.WAITS].remark == "the run had no time left"
    assert report.money == pytest.approx(lines[journal.REWRITTEN].core_seconds / 3_600)
