"""Tests of runs that a signal interrupts, shared by all formats."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.kit import kills
from integration.kit.kills import data_files, is_of_rows
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import UnknownOutcomeError
from zadapter.table.encoding import Encoding

ROWS = 60_000


class TimeLimit(Exception):  # noqa: N818 - such as those of Celery
    """A time limit of the caller, which can be raised at any line."""


PYTHON = """
import json, sys, threading
from pathlib import Path
import zadapter, zadapter.spark

table, to, done, conf = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
backend, target = json.loads(sys.argv[5])
spark = zadapter.spark.session(conf)
counted = []


def wait(rows):
    import os, time
    while not os.path.exists(done):
        time.sleep(0.01)
    yield from rows


def users_own():
    counted.append(spark.sparkContext.parallelize(range(5), 1).mapPartitions(wait).count())


thread = threading.Thread(target=users_own)
thread.start()
try:
    if to:
        zadapter.migrate(table, to=to, target=target, backend=backend, spark=spark)
    else:
        zadapter.optimize(table, by=["a"], target_file_size="4KB", backend=backend, spark=spark)
except KeyboardInterrupt as error:
    Path(done).touch()
    thread.join()
    print(json.dumps([str(error), counted, spark.range(3).count()]))
Path(done).touch()
"""
LINE = "from zadapter.cli.app import app; app()"


def interrupted(process, folder, before, *, number=signal.SIGINT, again=True):
    """Send a signal after the first file appears, and another one during the clean-up."""
    written = set()
    while process.poll() is None and not written:
        time.sleep(0.005)
        written = {path for path in data_files(folder) - before if is_of_rows(path)}
    process.send_signal(number)
    if again:
        process.send_signal(number)
    output, errors = process.communicate(timeout=120)
    return written, output, errors


class Stories:
    """Tests for every format."""

    format = ""

    def make(self, spark, folder):
        """Make a table, and return its name and the folder of its files."""
        raise NotImplementedError

    def backend(self):
        raise NotImplementedError

    def conf(self):
        """Return the settings of another process that can read the table."""
        return {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
        }

    @pytest.fixture
    def table(self, spark, tmp_path):
        return self.make(spark, tmp_path)

    def rows(self, spark, name):
        """Return count, sum and distinct ids by DuckDB over the files of the newest version."""
        files = zadapter.files(name, backend=self.format, spark=spark)["path"].to_pylist()
        query = f"SELECT count(*), sum(a), count(DISTINCT c) FROM read_parquet({files})"
        with duckdb.connect() as connection:
            return connection.sql(query).fetchall()

    def live(self, spark, name):
        """Return the paths of the live files."""
        paths = zadapter.files(name, backend=self.format, spark=spark)["path"].to_pylist()
        return {path.removeprefix("file:") for path in paths}

    def start(self, *command):
        return subprocess.Popen(
            [sys.executable, "-c", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @pytest.mark.slow
    def test_ctrl_c_on_the_command_line_while_files_are_written(self, spark, table):
        """The last line states the outcome, and the exit code is the shell's for Ctrl-C."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)
        settings = [f"--conf={key}={value}" for key, value in self.conf().items()]
        process = self.start(
            *(LINE, "optimize", name, "--by", "a", "--target-file-size", "4KB"),
            *("--backend", self.format, *settings),
        )

        written, output, errors = interrupted(process, folder, before)

        assert written
        assert process.returncode == 130, errors
        assert errors.splitlines()[-1] == "interrupted; nothing was committed"
        assert "Traceback" not in errors
        assert "Exception" not in errors
        assert output == ""
        assert data_files(folder) == before
        assert self.rows(spark, name) == rows

    def test_ctrl_c_in_python_while_files_are_written(self, spark, table, tmp_path):
        """KeyboardInterrupt follows the clean-up; the user's own jobs continue."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)
        arguments = (name, "", str(tmp_path / "done"), json.dumps(self.conf()))
        process = self.start(PYTHON, *arguments, json.dumps([self.format, ""]))

        written, output, errors = interrupted(process, folder, before)

        assert written
        assert process.returncode == 0, errors
        assert json.loads(output) == ["interrupted; nothing was committed", [5], 3]
        assert data_files(folder) == before
        assert self.rows(spark, name) == rows

    def test_a_killed_driver_is_taken_up_by_the_same_call(self, spark, table):
        """Each job is done once, the report says what was left, and no file of it is left."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)
        size = sum(zadapter.files(name, backend=self.format, spark=spark)["size"].to_pylist())
        keys = {"by": ["a"], "target_file_size": "32KB", "max_job_bytes": size * 5 // 9}
        command = (kills.OPTIMIZE, name, self.format, json.dumps(keys), json.dumps(self.conf()))
        note = kills.killed(self.start(*command), folder)
        first = self.live(spark, name) - before

        report = zadapter.optimize(name, **keys, backend=self.format, spark=spark)

        (line,) = report.earlier_runs
        assert line.startswith(f"run {note.id} of ")
        assert f"ended after 1 of {note.jobs} job" in line
        assert "; removed " in line
        assert len(report.versions) == report.plan.jobs == note.jobs - 1
        assert set(report.plan.reasons) == {"new files"}
        live = self.live(spark, name)
        assert first < live
        assert set(filter(is_of_rows, data_files(folder))) <= before | live
        assert not [path for path in data_files(folder) if kills.unfinished(note) in path]
        assert not list(Path(folder, "_zadapter", "runs").glob("*"))
        assert self.rows(spark, name) == rows

    def test_ctrl_c_while_it_plans(self, spark, table):
        """Nothing is written, with or without a dry run."""
        name, folder = table
        before = data_files(folder)

        class Stopped(self.backend()):
            def files(self, *arguments):
                os.kill(os.getpid(), signal.SIGINT)
                return super().files(*arguments)

        for verb in (zadapter.plan, zadapter.optimize):
            with pytest.raises(KeyboardInterrupt, match="nothing was committed"):
                verb(name, by=["a"], target_file_size="64KB", backend=Stopped, spark=spark)

        assert data_files(folder) == before

    def test_ctrl_c_between_writing_and_the_commit(self, spark, table):
        """Nothing is committed, and staged files are deleted."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)
        staged = []

        class Stopped(self.backend()):
            def stage(self, *arguments):
                staged.append(data_files(folder) - before)
                os.kill(os.getpid(), signal.SIGINT)
                return super().stage(*arguments)

        with pytest.raises(KeyboardInterrupt, match="nothing was committed"):
            zadapter.optimize(name, by=["a"], target_file_size="64KB", backend=Stopped, spark=spark)

        assert staged[0]
        assert data_files(folder) == before, data_files(folder) ^ before
        assert self.rows(spark, name) == rows

    def test_ctrl_c_while_it_commits(self, spark, table):
        """The commit completes, and the message says so."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)

        class Stopped(self.backend()):
            def commit(self, rewrite):
                os.kill(os.getpid(), signal.SIGINT)
                return super().commit(rewrite)

        with pytest.raises(KeyboardInterrupt, match="versions committed by this call"):
            zadapter.optimize(name, by=["a"], target_file_size="64KB", backend=Stopped, spark=spark)

        assert data_files(folder) > before
        assert self.rows(spark, name) == rows
        again = zadapter.optimize(
            name, by=["a"], target_file_size="64KB", backend=self.format, spark=spark
        )
        assert again.nothing_to_do

    def test_a_time_limit_right_after_a_commit(self, spark, table):
        """The caller gets its own exception, and the files that the commit names stay."""
        name, folder = table
        before, rows = data_files(folder), self.rows(spark, name)

        class Limited(self.backend()):
            def commit(self, rewrite):
                super().commit(rewrite)
                raise TimeLimit

        with pytest.raises(TimeLimit):
            zadapter.optimize(name, by=["a"], target_file_size="64KB", backend=Limited, spark=spark)

        assert data_files(folder) > before
        assert self.rows(spark, name) == rows
        again = zadapter.optimize(
            name, by=["a"], target_file_size="64KB", backend=self.format, spark=spark
        )
        assert again.nothing_to_do
        assert not list(Path(folder, "_zadapter", "runs").glob("*"))

    def test_ctrl_c_during_a_commit_of_unknown_outcome(self, spark, table):
        """Nothing is deleted: the commit may have succeeded, or may still succeed."""
        name, folder = table
        before = data_files(folder)

        class Lost(self.backend()):
            def commit(self, rewrite):
                os.kill(os.getpid(), signal.SIGINT)
                raise UnknownOutcomeError(rewrite.base.table, rewrite.id)

        with pytest.raises(KeyboardInterrupt, match="the outcome of commit"):
            zadapter.optimize(
                name,
                by=["a"],
                target_file_size="64KB",
                backend=Lost,
                backoff=Backoff(attempts=1),
                spark=spark,
            )

        assert data_files(folder) > before

    def test_a_job_that_fails_leaves_no_files(self, spark, table):
        """A failed write, as on a full disk, would leave files that no log names."""
        name, folder = table
        before, failing = data_files(folder), self.backend()(spark)
        snapshot = failing.snapshot(name)
        rows = failing.read(snapshot, failing.files(snapshot)).repartitionByRange(8, "c")
        last = F.when(F.col("c") == ROWS - 1, F.raise_error(F.lit("broken"))).cast("long")
        rows = rows.withColumn("a", F.coalesce(last, F.col("a")))

        with pytest.raises(Exception, match="broken"):
            failing.write(snapshot, rows, None, Encoding())

        assert data_files(folder) == before


def small(spark):
    return spark.range(ROWS).selectExpr("id * 7919 % 60013 AS a", "id AS c").repartition(4)
