"""Seconds of DuckDB and Spark on tables that ``optimize`` has written, by layout.

Each table is a Delta table: a plain copy, by columns that somebody picked, by the three most
filtered columns of a log, and by ``by="auto"`` for that log. Queries of the same templates with
other parameters are asked of all tables in turn, query by query, so that other work on the machine
slows all of them. Of the rounds of each query, the median counts.

DuckDB gets the files that the table's log does not exclude, as an extension for Delta does.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import zadapter
from integration.bench.logs import case
from integration.bench.readers.files import connect, read
from integration.bench.session import session
from integration.bench.tables.logs import LOGS, NEWER, OLDER, SELECTIVE
from integration.bench.tables.workloads import WORKLOADS
from zadapter.inspection.advise.choice import keys_in_turn, weigh_columns

ROUNDS, SCANS = 3, 5
"""Times that each query is asked, and that a table is scanned."""
QUERIES = 2
"""Queries of each template."""
COPY, HAND_PICKED, IN_TURN, AUTO = "a copy", "hand-picked", "most filtered, in turn", "by=auto"
QUERY = "SELECT count(hash(COLUMNS(*))) FROM {}"


@dataclass(frozen=True)
class Table:
    """A Delta table, and the location, size and rows of each of its files."""

    path: str
    files: tuple[str, ...]
    bytes: int
    rows: int

    @classmethod
    def of(cls, path: str, spark: SparkSession) -> "Table":
        """Return a table as it is."""
        found = zadapter.files(path, spark=spark)
        size, rows = (sum(found[name].to_pylist()) for name in ("size", "rows"))
        return cls(path, tuple(found["path"].to_pylist()), size, rows)


@dataclass(frozen=True)
class Asked:
    """What a query costs on a table.

    Attributes:
        rows: Rows in the files that the log does not exclude.
        row_groups: Row groups of these files that DuckDB reads.
        bytes: Bytes that DuckDB reads.
        seconds: Core seconds and seconds of DuckDB, and of Spark.
    """

    rows: int
    row_groups: int
    bytes: int
    seconds: tuple[float, float, float, float]


class Engines:
    """DuckDB and Spark on two cores."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._duckdb = spark, connect()
        jvm = spark.sparkContext._jvm  # noqa: SLF001 - no public door
        self._java = int(jvm.java.lang.ProcessHandle.current().pid())

    def ask(self, table: Table, condition: str | None) -> Asked:
        """Ask for the rows that match, by both engines, with the same answer."""
        files, rows = table.files, table.rows
        if condition is not None:
            kept = zadapter.files(table.path, where=condition, spark=self._spark)
            files, rows = tuple(kept["path"].to_pylist()), sum(kept["rows"].to_pylist())
        begun = time.perf_counter()
        scanned = read(self._duckdb, _sql(condition), files) if files else None
        wall = time.perf_counter() - begun if files else 0.0
        spark = _timed(lambda: self._by_spark(table, condition), self._java)
        if scanned is None:
            return Asked(0, 0, 0, (0.0, 0.0, *spark))
        return Asked(rows, scanned.row_groups, scanned.bytes, (scanned.seconds, wall, *spark))

    def _by_spark(self, table: Table, condition: str | None) -> None:
        rows = self._spark.read.format("delta").load(table.path)
        found = rows if condition is None else rows.where(condition)
        found.agg(F.count_if(F.hash(*rows.columns).isNotNull())).first()


def _sql(condition: str | None) -> str:
    if condition is None:
        return QUERY
    return f"{QUERY} WHERE {condition.replace('TIMESTAMP_NTZ', 'TIMESTAMP')}"


def _timed(work: Callable[[], None], process: int) -> tuple[float, float]:
    """Return the core seconds of a process and the seconds that some work takes."""
    before, begun = _core_seconds(process), time.perf_counter()
    work()
    return _core_seconds(process) - before, time.perf_counter() - begun


def _core_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def written(name: str, spark: SparkSession, folder: Path, scale: float, files: int) -> dict:
    """Return the tables of a workload by layout."""
    found = case(spark, name, folder, scale)
    older = [each for _, each in found.older]
    by = {
        HAND_PICKED: {"by": found.hand_picked},
        IN_TURN: {"by": keys_in_turn(weigh_columns(older, found.columns))},
        AUTO: {"by": "auto", "queries": _log(name).filters(OLDER)},
    }
    rows = spark.read.parquet(str(WORKLOADS[name].data(folder, scale)))
    tables = {}
    for layout in (COPY, *by):
        path = str(folder / f"{name}-{layout}".replace(" ", "-"))
        rows.repartition(files).write.format("delta").save(path)
        if layout != COPY:
            target = tables[COPY].bytes // files
            done = zadapter.optimize(path, target_file_size=target, spark=spark, **by[layout])
            print(f"{name}, {layout}: {done.plan.columns}", flush=True)
        tables[layout] = Table.of(path, spark)
    return tables


def compared(
    engines: Engines, tables: Mapping[str, Table], conditions: Sequence[str | None], rounds: int
) -> dict[str, list[Asked]]:
    """Return what each query costs on each table: of its rounds, the median seconds."""
    costs: dict[str, list[Asked]] = {layout: [] for layout in tables}
    for text in conditions:
        for table in tables.values():  # the first query of a text compiles it
            engines.ask(table, text)
        found = [{layout: engines.ask(table, text) for layout, table in tables.items()}
                 for _ in range(rounds)]  # fmt: skip
        for layout in tables:
            each = [one[layout] for one in found]
            medians = np.median([one.seconds for one in each], axis=0)
            costs[layout].append(Asked(each[0].rows, each[0].row_groups, each[0].bytes,
                                       tuple(medians.tolist())))  # fmt: skip
    return costs


def _log(name: str):
    return (LOGS | SELECTIVE)[name]


def print_tables(spark: SparkSession, names: Sequence[str], folder: Path, scale: float, files: int):
    """Print what queries and full scans cost on each table."""
    engines = Engines(spark)
    for name in names:
        tables = written(name, spark, folder, scale, files)
        log = _log(name)
        queries = log.filters(NEWER)[: QUERIES * len(log.templates)]
        asked = compared(engines, tables, queries, ROUNDS)
        scans = compared(engines, tables, [None], SCANS)
        for layout, table in tables.items():
            mine, base = asked[layout], asked[HAND_PICKED]
            [scan], [copied] = scans[layout], scans[COPY]
            cells = [
                f"{np.mean([each.rows for each in mine]) / table.rows:.3f}",
                f"{np.mean([each.row_groups for each in mine]) / scan.row_groups:.3f}",
                f"{np.sum([e.bytes for e in mine]) / np.sum([e.bytes for e in base]):.2f}",
                *_ratios([each.seconds for each in mine], [each.seconds for each in base]),
                *_ratios([scan.seconds], [copied.seconds]),
                f"{table.bytes / tables[COPY].bytes:.2f}",
            ]
            print("|", " | ".join([name, layout, *cells]), "|", flush=True)


def _ratios(mine, base):
    """Return the cells of DuckDB and of Spark: core seconds / seconds, beside those of a base."""
    ratios = np.sum(mine, axis=0) / np.sum(base, axis=0)
    return f"{ratios[0]:.2f} / {ratios[1]:.2f}", f"{ratios[2]:.2f} / {ratios[3]:.2f}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.readers.seconds",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--tables", nargs="+", choices=[*LOGS, *SELECTIVE],
                        default=["tpch", "ssb", "selective"])  # fmt: skip
    options = parser.parse_args()
    heads = ("table", "layout", "rows by file", "row groups", "bytes", "DuckDB", "Spark",
             "DuckDB's scan", "Spark's scan", "size")  # fmt: skip
    print(
        "Core seconds / seconds; scans and size beside a copy, others beside hand-picked columns\n"
    )
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        spark = session(Path(folder))
        print_tables(spark, options.tables, Path(folder), options.scale, options.files)


if __name__ == "__main__":
    main()
