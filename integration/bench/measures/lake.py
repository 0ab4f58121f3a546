"""Many small tables: one call with a file of tables, beside a loop of the format's own rewrite."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

from integration.bench.formats import FORMATS, Format, catalog
from integration.bench.measures.start import COMMAND, FILES, OWN, SMALL
from integration.bench.results import Goal
from integration.bench.session import session

TABLES = 200
SCALE = 0.1
"""Of the tables: 10 000 rows each."""
SHARE = 0.5
"""Goal: seconds a table, relative to a loop of Delta's z-order."""


def lakes(
    spark: SparkSession, folder: Path, formats: Sequence[str], rounds: int, tables: int = TABLES
) -> Iterator[Goal]:
    """Time the first rewrite of many small tables, in new processes that take turns.

    Args:
        spark: The session that makes the tables.
        folder: Where tables are made.
        formats: Formats of the tables.
        rounds: Number of runs of each kind; medians are reported.
        tables: Number of tables.
    """
    place = folder / "lake"
    if place.exists():
        shutil.rmtree(place)
    rows = spark.read.parquet(str(SMALL.data(folder, SCALE)))
    loop = None
    for name in formats:
        task = FORMATS[name](spark, rows, SMALL, place / name, FILES)
        ours, own = list[float](), list[float]()
        for number in range(rounds):
            ours.append(_optimize(task, folder, name, _made(task, f"ours {number}", tables)))
            if name in OWN:
                own.append(_loop(folder, name, _made(task, f"own {number}", tables)))
        if name == "delta":
            loop = median(own) / tables
        yield _goal(name, median(ours) / tables, median(own) / tables if own else None, loop)


def _goal(name: str, ours: float, own: float | None, loop: float | None) -> Goal:
    beside = "" if own is None else f"; {OWN[name]} {own:.2f} s"
    share = "" if loop is None else f", {ours / loop:.2f} x the loop of Delta's"
    return Goal(
        what=f"lake, {name}: seconds a table, from the shell",
        asked=f"<= {SHARE} x",
        found=f"{ours:.2f} s{share}{beside}",
        reached=loop is not None and ours <= SHARE * loop,
    )


def _made(task: Format, name: str, tables: int) -> list[str]:
    return [task.fresh(f"{name} {number}") for number in range(tables)]


def _optimize(task: Format, folder: Path, name: str, tables: Sequence[str]) -> float:
    lines = ["[defaults]", f"by = {list(SMALL.keys)}", f'backend = "{name}"']
    lines += [f"target_file_size = {task.target}"]
    lines += [f'[[tables]]\ntable = "{table}"' for table in tables]
    file = folder / f"lake-{name}.toml"
    file.write_text("\n".join(lines) + "\n")
    conf = [word for pair in catalog(folder).items() for word in ("--conf", "=".join(pair))]
    return _seconds([*COMMAND, "optimize", "--config", str(file), *conf])


def _loop(folder: Path, name: str, tables: Sequence[str]) -> float:
    module = [sys.executable, "-m", "integration.bench.measures.lake"]
    return _seconds([*module, name, str(folder), *tables])


def _seconds(command: Sequence[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin


def run_own(name: str, folder: Path, tables: Sequence[str]) -> None:
    """Rewrite tables by the format's own z-order, one after the other."""
    spark = session(folder)
    rows = spark.read.parquet(str(SMALL.data(folder, SCALE)))
    task = FORMATS[name](spark, rows, SMALL, folder / "lake" / f"{name}-own", FILES)
    rewrite = task.contenders()[OWN[name]]
    for table in tables:
        rewrite(table)


if __name__ == "__main__":
    run_own(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
