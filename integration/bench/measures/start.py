"""Fixed cost of a call: from the shell, and on a warm session beside the format's own rewrite."""

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import zadapter
from integration.bench.contenders import OURS, SORT
from integration.bench.formats import FORMATS, Format, catalog
from integration.bench.measures.calls import Cost, cost, median_cost
from integration.bench.results import Goal
from integration.bench.tables.workloads import Workload

ROWS = 100_000
FILES = 12
FEWEST = 3
"""Minimum number of rounds."""
BEYOND = 0.8
"""Goal: seconds of a warm ``optimize`` beyond those of Spark's own sorted write of the rows."""
CORES = 0.9
"""Goal: core seconds of a warm ``optimize``, relative to the format's own rewrite."""
COMMANDS = 700
"""Goal: commands of a warm ``optimize`` to the JVM."""
OWN = {"delta": "Delta ZORDER", "iceberg": "Iceberg zorder"}
"""The formats' own rewrites."""
PLAN = "plan"
COMMAND = [sys.executable, "-c", "from zadapter.cli.app import app; app()"]
"""The command line, in a new process."""


def make(folder: Path, scale: float) -> None:
    """Write rows whose keys are in no order."""
    id_ = np.arange(round(ROWS * scale))
    rows = pa.table(
        {
            "event_time": pa.array(
                (1_750_000_000 + id_ * 7_919 % 100_003) * 1_000_000, pa.timestamp("us", "UTC")
            ),
            "user_id": id_ * 31_337 % 9_973,
            "page": [hashlib.sha1(b"%d" % each).hexdigest() for each in id_],
        }
    )
    step = -(-len(id_) // FILES)
    for number in range(FILES):
        pq.write_table(rows.slice(number * step, step), folder / f"{number}.parquet")


SMALL = Workload(name="start", keys=("event_time", "user_id"), make=make, filters=list)
"""The table of these calls, of 100 000 rows."""


def starts(
    spark: SparkSession, folder: Path, formats: Sequence[str], rounds: int
) -> Iterator[Goal]:
    """Time plan and optimize of a small table, each first in processes of its own.

    Args:
        spark: The warm session.
        folder: Where tables are made.
        formats: Formats of the tables.
        rounds: Number of calls of each kind, at least :data:`FEWEST`; medians are reported.
    """
    place = folder / "start"
    if place.exists():
        shutil.rmtree(place)
    rows = spark.read.parquet(str(SMALL.data(folder, 1)))
    for name in formats:
        task = FORMATS[name](spark, rows, SMALL, place / name, FILES)
        yield _from_the_shell(task, folder, name, rounds)
        yield from _goals(name, _costs(spark, task, name, max(FEWEST, rounds)))


def _costs(spark: SparkSession, task: Format, name: str, rounds: int) -> dict[str, Cost]:
    """Return the median cost of each contender, and of a plan of a table that is clustered."""
    rewrites = task.contenders()
    chosen = [who for who in (OURS, SORT, OWN.get(name)) if who is not None]
    costs: dict[str, list[Cost]] = {who: [] for who in (*chosen, PLAN)}
    for number in range(rounds + 1):  # the first loads classes
        for who in chosen:
            table = task.fresh(who)
            found = {who: cost(spark, partial(rewrites[who], table))}
            if who == OURS:
                size = task.reports[-1].plan.target_file_size
                options = {"by": SMALL.by(), "backend": name, "target_file_size": size}
                found[PLAN] = cost(spark, partial(zadapter.plan, table, **options, spark=spark))
            for each, spent in found.items():
                costs[each] += [spent] if number else []
    return {who: median_cost(found) for who, found in costs.items()}


def _goals(name: str, costs: dict[str, Cost]) -> Iterator[Goal]:
    ours, sort, own = costs[OURS], costs[SORT], costs.get(OWN.get(name, ""))
    beyond = ours.seconds - sort.seconds
    yield Goal(
        what=f"start, {name}: seconds of a warm optimize beyond Spark's sorted write",
        asked=f"<= {BEYOND}",
        found=f"{beyond:.2f} (optimize {ours}; write {sort}; plan of the result {costs[PLAN]})",
        reached=beyond <= BEYOND,
    )
    if own is not None:
        yield Goal(
            what=f"start, {name}: core seconds of it, x the format's own z-order",
            asked=f"<= {CORES}",
            found=f"{ours.core_seconds / own.core_seconds:.2f} (own {own})",
            reached=ours.core_seconds <= CORES * own.core_seconds,
        )
    yield Goal(
        what=f"start, {name}: commands of it to the JVM",
        asked=f"<= {COMMANDS}",
        found=str(ours.commands),
        reached=ours.commands <= COMMANDS,
    )


def _from_the_shell(task: Format, folder: Path, name: str, rounds: int) -> Goal:
    table = task.fresh("shell")
    conf = [word for pair in catalog(folder).items() for word in ("--conf", "=".join(pair))]
    options = ["--by", ",".join(SMALL.keys), "--backend", name, "--force", *conf]
    found = {
        call: median(_seconds([*COMMAND, call, table, *options]) for _ in range(rounds))
        for call in ("plan", "optimize")
    }
    said = ", ".join(f"{call} {seconds:.1f} s" for call, seconds in found.items())
    return Goal(what=f"start, {name}: from the shell", asked="", found=said, reached=True)


def _seconds(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin
