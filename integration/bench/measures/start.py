"""Time to the first result: calls from the shell, and on a warm session beside Spark's write."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

import zadapter
from integration.bench.formats import CATALOG, catalog
from integration.bench.results import Goal

ROWS = 100_000
FILES = 12
BEYOND = 1.0
"""Goal: seconds of a warm ``optimize`` beyond those of Spark's own write of the rows."""
KEYS = ["event_time", "user_id"]
SIZE = "256KB"
_COMMAND = [sys.executable, "-c", "from zadapter.cli.app import app; app()"]


def starts(
    spark: SparkSession, folder: Path, formats: Sequence[str], rounds: int
) -> Iterator[Goal]:
    """Time plan and optimize of a small table, each first in processes of its own.

    Args:
        spark: The warm session.
        folder: Where tables are made.
        formats: Formats of the tables.
        rounds: Number of calls of each kind; medians are reported.
    """
    place = folder / "start"
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.start")
    made = spark.range(ROWS).selectExpr(
        "timestamp_seconds(1750000000 + id * 7919 % 100003) AS event_time",
        "id * 31337 % 9973 AS user_id",
        "sha(string(id)) AS page",
    )
    made.repartition(FILES).write.parquet(str(place / "rows"))
    rows = spark.read.parquet(str(place / "rows"))
    for format_ in formats:
        table, copy = _write(rows, format_, place, "table"), f"copy_{format_}"
        conf = [word for pair in catalog(folder).items() for word in ("--conf", "=".join(pair))]
        shell = {
            call: median(_shell(call, table, format_, conf) for _ in range(rounds))
            for call in ("plan", "optimize")
        }
        seconds: dict[str, list[float]] = {"optimize": [], "write": []}
        for number in range(rounds + 1):  # the first loads classes
            optimized = _timed(lambda t=table, f=format_: _optimize(spark, t, f))
            written = _timed(lambda f=format_, c=copy: _write(rows, f, place, c))
            if number:
                seconds["optimize"].append(optimized)
                seconds["write"].append(written)
        warm, write = median(seconds["optimize"]), median(seconds["write"])
        yield Goal(
            what=f"start, {format_}: seconds of a warm optimize beyond Spark's write",
            asked=f"<= {BEYOND:.1f}",
            found=f"{warm - write:.1f} ({warm:.1f} s / {write:.1f} s); from the shell "
            f"plan {shell['plan']:.1f} s, optimize {shell['optimize']:.1f} s",
            reached=warm - write <= BEYOND,
        )


def _shell(call: str, table: str, format_: str, conf: Sequence[str]) -> float:
    options = ["--by", ",".join(KEYS), "--backend", format_, "--target-file-size", SIZE]
    command = [*_COMMAND, call, table, *options, "--force", *conf]
    return _timed(lambda: subprocess.run(command, capture_output=True, check=True))


def _optimize(spark: SparkSession, table: str, format_: str) -> object:
    return zadapter.optimize(
        table, by=KEYS, backend=format_, target_file_size=SIZE, force=True, spark=spark
    )


def _write(rows: DataFrame, format_: str, place: Path, name: str) -> str:
    """Write the rows as a table of a format, and return its path or identifier."""
    if format_ == "iceberg":
        table = f"{CATALOG}.start.{name}"
        rows.writeTo(table).using("iceberg").createOrReplace()
        return table
    path = str(place / format_ / name)
    rows.write.format(format_).mode("overwrite").save(path)
    return path


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin
