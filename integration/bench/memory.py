"""``python -m integration.bench.memory``: the memory that a rewrite needs, and what it spills."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated

import duckdb
import typer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import zadapter
import zadapter.spark
from integration.bench.measures.effort import measured

HEAPS = ("512m", "1g", "2g", "4g", "8g")
TRIES = 2
"""Attempts with memory that suffices: one spills what two heaps further is sorted in memory."""
_POLL = 0.05
_MEMORY = re.compile(r"OutOfMemoryError[^\n]{0,60}")
_MIB, _GIB = 1 << 20, 1 << 30
_HEAD = (
    "| table | files | heap | outcome | seconds | spilled, MiB | open files | process, GiB |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Shape:
    """A table to rewrite on two cores."""

    rows: int
    columns: Callable[[DataFrame], DataFrame]
    target: str
    """``target_file_size`` of the rewrite."""


def _numbers(rows: DataFrame) -> DataFrame:
    """Return rows of 32 bytes that do not compress."""
    return rows.select("k", *(F.xxhash64("id", F.lit(seed)).alias(f"v{seed}") for seed in range(3)))


def _wide(rows: DataFrame) -> DataFrame:
    return rows.select("k", *(F.rand(seed).alias(f"v{seed}") for seed in range(2_000)))


def _cells(rows: DataFrame) -> DataFrame:
    """Return cells of 10 MB."""
    noise = F.udf(lambda _: os.urandom(10 * _MIB), "binary")
    return rows.select("k", noise("id").alias("v"))


SHAPES: Mapping[str, Shape] = {
    "files of 128 MB": Shape(16_000_000, _numbers, "128MB"),
    "files of 1 GB": Shape(64_000_000, _numbers, "1GB"),
    "2 000 columns": Shape(32_000, _wide, "128MB"),
    "cells of 10 MB": Shape(48, _cells, "128MB"),
    "4 000 files": Shape(8_000_000, _numbers, "64KB"),
}


def main(
    *,
    shapes: Annotated[str, typer.Option(help="By comma.")] = ",".join(SHAPES),
    heaps: Annotated[str, typer.Option(help="Of the driver's JVM, by comma.")] = ",".join(HEAPS),
    attempt: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Rewrite tables with more and more memory, each time in a new process with two cores.

    After the first heap that suffices, one more is tried. Rows are counted by DuckDB.
    """
    if attempt is not None:
        typer.echo(json.dumps(_rewritten(**json.loads(attempt))))
        return
    typer.echo(_HEAD)
    for shape in shapes.split(","):
        for row in _rows(shape, heaps.split(",")):
            typer.echo(row)


def _rows(shape: str, heaps: Sequence[str]) -> Iterator[str]:
    """Yield a line for each heap, until so many suffice."""
    with TemporaryDirectory(prefix="zadapter-memory-") as folder:
        table, enough = f"{folder}/table", 0
        _process({"shape": shape, "table": table, "heap": "8g", "make": True})
        for heap in heaps:
            found = _process({"shape": shape, "table": table, "heap": heap, "make": False})
            yield _row(shape, heap, found)
            enough += "files" in found
            if enough == TRIES:
                return


def _process(arguments: Mapping[str, object]) -> dict[str, float | str]:
    """Run an attempt in a new process; return what it found, or its error."""
    command = [sys.executable, "-m", "integration.bench.memory", "--attempt", json.dumps(arguments)]
    start = time.perf_counter()
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode == 0:
        found: dict[str, float | str] = json.loads(ran.stdout.splitlines()[-1])
        return found
    error = _MEMORY.search(ran.stderr)
    *_, last = ran.stderr.splitlines() or [f"exit {ran.returncode}"]
    return {
        "outcome": error[0] if error else last[:140],
        "seconds": time.perf_counter() - start,
    }


def _row(shape: str, heap: str, found: Mapping[str, float | str]) -> str:
    if "files" not in found:
        return f"| {shape} | | {heap} | {found['outcome']} | {found['seconds']:.0f} | | | |"
    return (
        f"| {shape} | {found['files']} | {heap} | right | {found['seconds']:.0f} | "
        f"{found['spilled'] / _MIB:,.0f} | {found['open']} | {found['peak'] / _GIB:.2f} |"
    )


def _rewritten(shape: str, table: str, heap: str, *, make: bool) -> Mapping[str, float]:
    """Make a table, or rewrite it once more; return what the rewrite took."""
    made = SHAPES[shape]
    spark = zadapter.spark.session(
        {
            "spark.master": "local[2]",
            "spark.driver.memory": heap,
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        },
        formats=["parquet"],
    )
    if make:
        rows = spark.range(0, made.rows, 1, 8).withColumn("k", F.xxhash64("id"))
        made.columns(rows).write.parquet(table)
        return {}
    java = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # noqa: SLF001 - no door
    keys = {"by": "k", "target_file_size": made.target, "force": True}
    with _open_files(java) as most:
        effort = measured(
            spark, lambda: zadapter.optimize(table, **keys, backend="parquet", spark=spark)
        )
    paths = zadapter.files(table, spark=spark)["path"].to_pylist()
    (count,) = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [paths]).fetchone()
    if count != made.rows:
        raise AssertionError(f"{count} rows instead of {made.rows}")
    status = Path(f"/proc/{java}/status").read_text()
    return {
        "files": len(paths),
        "seconds": effort.seconds,
        "spilled": effort.bytes_spilled,
        "open": max(most),
        "peak": int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10,
    }


@contextmanager
def _open_files(process: int) -> Iterator[list[int]]:
    """Yield how many Parquet files a process has open for writing, from time to time."""
    found, done = [0], Event()

    def watch() -> None:
        while not done.wait(_POLL):
            found.append(sum(map(_written, Path(f"/proc/{process}/fd").iterdir())))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def _written(handle: Path) -> bool:
    """Return whether a handle is of a Parquet file that is written."""
    try:
        return handle.readlink().name.endswith(".parquet") and bool(handle.lstat().st_mode & 0o200)
    except OSError:
        return False


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    app()
