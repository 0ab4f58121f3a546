"""Seconds and memory of one call on a table of many files, in a process of its own."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import zadapter
import zadapter.spark
from integration.bench.measures.calls import Clock
from integration.bench.millions.facts import KEYS, ROWS, TARGET
from zadapter.backend.plugins import load
from zadapter.rewrite.verify import stage_and_check
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Operation

EXCHANGED = 1_000
"""Files that the job removes."""
AT_ONCE = 100
"""Files that one call of ``optimize`` may rewrite."""


def session(memory: str) -> SparkSession:
    """Start a session of two cores."""
    return zadapter.spark.session(
        {
            "spark.master": "local[2]",
            "spark.driver.memory": memory,
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
            "spark.sql.session.timeZone": "UTC",
        }
    )


def _passed(clock: Clock) -> dict[str, float]:
    passed = clock.since()
    return {"seconds": passed.seconds, "cpu": passed.core_seconds}


def _open(spark: SparkSession, format_: str, table: str) -> Mapping[str, float]:
    with closing(load(format_)(spark)) as backend:
        files = backend.files(backend.snapshot(table), [(key,) for key in KEYS])
        return {"files": files.num_rows}


def _plan(spark: SparkSession, format_: str, table: str) -> Mapping[str, float]:
    plan = zadapter.plan(
        table, by=list(KEYS), backend=format_, target_file_size=TARGET, max_files=AT_ONCE,
        spark=spark,
    )  # fmt: skip
    return {"files": plan.files_before, "rewritten": plan.files_rewritten}


def _analyze(spark: SparkSession, format_: str, table: str) -> Mapping[str, float]:
    found = zadapter.analyze(table, by=list(KEYS), backend=format_, spark=spark)
    return {"files": found.totals.files}


def _commit(spark: SparkSession, format_: str, table: str) -> Mapping[str, float]:
    """Exchange some files for one; the seconds are those of the commit alone."""
    with closing(load(format_)(spark)) as backend:
        snapshot = backend.snapshot(table)
        files = backend.files(snapshot, [(key,) for key in KEYS])
        partitions = pc.struct_field(files["partition"], "p")
        counts = partitions.filter(pc.greater(partitions, 0)).value_counts()
        largest = counts[pc.index(counts.field(1), pc.max(counts.field(1))).as_py()]["values"]
        removed = files.filter(pc.equal(partitions, largest)).slice(0, EXCHANGED)
        rows = spark.range(ROWS).selectExpr(
            f"{largest} AS p", "id AS k", "current_timestamp() AS t", "'a' AS s", "0D AS x"
        )
        written = backend.write(snapshot, rows.coalesce(1), None, Encoding())
        new = stage_and_check(backend, snapshot, written, spark)
        change = Change(
            base=snapshot,
            operation=Operation.OPTIMIZE,
            exchanges=(Exchange(removed=removed, added=new.files),),
            staged=(new,),
        )
        clock = Clock.of(spark)
        backend.commit(change)
        return {"files": removed.num_rows, **_passed(clock)}


CALLS: Mapping[str, Callable[[SparkSession, str, str], Mapping[str, float]]] = {
    "open": _open,
    "plan": _plan,
    "analyze": _analyze,
    "commit": _commit,
}


def _peak(process: int | str) -> int:
    """Return the largest resident memory that a process had, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


def measure(call: str, format_: str, table: str, memory: str) -> dict[str, float]:
    """Return the seconds of a call, and the peak memory of this process and of its JVM."""
    spark = session(memory)
    spark.range(1).toArrow()
    clock = Clock.of(spark)
    found = CALLS[call](spark, format_, table)
    return {
        **_passed(clock),
        **found,
        "python": _peak("self"),
        "java": _peak(clock.java),
        "arrow": pa.default_memory_pool().max_memory(),
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(measure(*sys.argv[1:])) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the JVM may take minutes to drop what it has cached
