"""A rewrite of a folder of Parquet files that is killed next to its commit."""

import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

import zadapter
from integration.parquet.lake import entries
from tests.kit.variants import slow_but

CODE = """
import os
import signal
import sys

import zadapter
import zadapter.spark

table, last = sys.argv[1:]
link = os.link


def dying(aside, path):
    # entry 0 makes the folder a table, entry 1 puts the new files in place of the old ones
    commits = str(path).endswith("/00000000000000000001.json")
    if commits and last == "the files":
        os.kill(os.getpid(), signal.SIGKILL)
    link(aside, path)
    if commits:
        os.kill(os.getpid(), signal.SIGKILL)


os.link = dying
spark = zadapter.spark.session({"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
zadapter.optimize(table, by=["a"], target_file_size="2KB", backend="parquet", spark=spark)
"""


WHERE = slow_but(("the files", False), of=[("the files", False), ("the entry", True)])


@pytest.mark.parametrize(("last", "landed"), WHERE)
def test_a_killed_rewrite_is_done_or_not_begun(lake, spark, last, landed):
    """Every reader sees every row once, and a second run finishes what the first has left."""
    table = lake.make(spark.range(4_000).selectExpr("id * 7919 % 4001 AS a", "id AS c"))
    before, seen = lake.read(table), lake.rows_of_folder(table)

    killed(table, last)

    assert [entry["version"] for entry in entries(table)] == [0, 1][: 1 + landed]
    assert list(Path(table, "_zadapter", "data").rglob("*.rows"))
    check_rows(lake, table, before)
    report = lake.optimize(table)
    assert report.nothing_to_do == landed
    (line,) = report.earlier_runs
    assert f"ended after {int(landed)} of 1 job" in line
    assert ("of a commit of unknown outcome" in line) != landed
    check_rows(lake, table, before)
    assert lake.optimize(table).nothing_to_do
    assert lake.rows_of_folder(table) == seen
    check_clean(lake, table, before)


def killed(table, last):
    """Rewrite a table in a process that kills itself at its commit."""
    child = subprocess.run(
        [sys.executable, "-c", CODE, table, last],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, child.stderr[-2_000:]


def check_rows(lake, table, before):
    """By pyarrow over the log, by Spark through zadapter, and by DuckDB over the files it names."""
    rows = zadapter.read(table, spark=lake.spark)
    files = zadapter.files(table, spark=lake.spark)["path"].to_pylist()
    query = f"SELECT a, c FROM read_parquet({files})"

    assert lake.read(table) == before
    assert sorted(str(row.asDict()) for row in rows.collect()) == before
    assert sorted(str({"a": a, "c": c}) for a, c in duckdb.sql(query).fetchall()) == before


def check_clean(lake, table, before):
    """What the killed process has written and not committed is gone after a clean-up."""
    zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, spark=lake.spark)

    check_rows(lake, table, before)
    written = {str(path) for path in Path(table, "_zadapter", "data").rglob("*.rows")}
    assert written == set(lake.files(table))
