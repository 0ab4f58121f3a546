"""Many small tables: one call with a file of tables, beside a loop of the format's own rewrite."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from integration.bench.formats import FORMATS, Format, catalog
from integration.bench.measures.calls import Cost, median_cost, run_process
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

    Each run is a result of its own; the goal follows with the medians.

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
        ours, own = list[Cost](), list[Cost]()
        for number in range(rounds):
            ours.append(_optimize(task, folder, name, _made(task, f"ours {number}", tables)))
            yield _run(name, "optimize --config", ours[-1], tables)
            if name in OWN:
                own.append(_loop(folder, name, _made(task, f"own {number}", tables)))
                yield _run(name, f"a loop of {OWN[name]}", own[-1], tables)
        loop = median_cost(own) if name == "delta" else loop
        if loop is not None:
            yield from _goals(name, median_cost(ours), loop)


def _run(name: str, what: str, cost: Cost, tables: int) -> Goal:
    found = f"{cost}, for {tables} tables; {cost.seconds / tables:.2f} s a table"
    return Goal(what=f"lake, {name}: {what}", asked="", found=found, reached=True)


def _goals(name: str, ours: Cost, loop: Cost) -> Iterator[Goal]:
    for figure in ("seconds", "core_seconds"):
        share = getattr(ours, figure) / getattr(loop, figure)
        yield Goal(
            what=f"lake, {name}: {figure.replace('_', ' ')}, x a loop of {OWN['delta']}",
            asked=f"<= {SHARE} x",
            found=f"{share:.2f} x",
            reached=share <= SHARE,
        )


def _made(task: Format, name: str, tables: int) -> list[str]:
    return [task.fresh(f"{name} {number}") for number in range(tables)]


def _optimize(task: Format, folder: Path, name: str, tables: Sequence[str]) -> Cost:
    lines = ["[defaults]", f"by = {list(SMALL.keys)}", f'backend = "{name}"']
    lines += [f"target_file_size = {task.target}"]
    lines += [f'[[tables]]\ntable = "{table}"' for table in tables]
    file = folder / f"lake-{name}.toml"
    file.write_text("\n".join(lines) + "\n")
    conf = [word for pair in catalog(folder).items() for word in ("--conf", "=".join(pair))]
    return run_process([*COMMAND, "optimize", "--config", str(file), *conf])


def _loop(folder: Path, name: str, tables: Sequence[str]) -> Cost:
    module = [sys.executable, "-m", "integration.bench.measures.lake"]
    return run_process([*module, name, str(folder), *tables])


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
