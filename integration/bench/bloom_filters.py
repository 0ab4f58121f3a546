"""Point queries with and without Bloom filters: ``python -m integration.bench.bloom_filters``.

Lineitem is clustered twice by its key columns, in turn, without filters and with them. DuckDB says
how many row groups it reads for values that rows have; the rows say in how many of these the value
is. DuckDB skips by min and max, and by Bloom filters.
"""

import argparse
import re
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import zadapter
import zadapter.spark
from integration.bench.tables.workloads import WORKLOADS

COLUMNS = ("l_partkey", "l_suppkey", "l_orderkey")
SCANNED = re.compile(r"Row Groups Scanned: ([\d,]+)")


@dataclass(frozen=True)
class Read:
    """What point queries on a column read, as shares of all row groups."""

    opened: float
    in_vain: float
    """Share of the opened ones without a matching row."""


def files_of(table):
    """Return the live files."""
    return zadapter.files(table, backend="parquet")["path"].to_pylist()


def held(files, column, values):
    """Return the number of row groups that hold each value, and the number of all row groups."""
    counts, groups = np.zeros(len(values), np.int64), 0
    for path in files:
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            here = file.read_row_group(number, columns=[column])[column]
            counts += np.isin(values, pc.unique(here).to_numpy())
        groups += file.num_row_groups
    return counts, groups


def read(files, column, values):
    """Return what point queries read."""
    with duckdb.connect() as connection:
        scanned = []
        for value in values.tolist():
            text = f"SELECT count(*) FROM read_parquet({files}) WHERE {column} = {value}"
            ((_, plan),) = connection.sql(f"EXPLAIN ANALYZE {text}").fetchall()
            scanned.append(int(SCANNED.search(plan)[1].replace(",", "")))
    counts, groups = held(files, column, values)
    opened = np.array(scanned)
    assert (opened >= counts).all()  # a matching row group is never skipped
    in_vain = float((opened - counts).sum() / opened.sum())
    return Read(float(opened.mean() / groups), in_vain)


def rewritten(spark, options):
    """Return the tables that the last round has clustered, and the seconds of all rounds."""
    workload = WORKLOADS["lineitem"]
    data = workload.data(options.folder, options.scale)
    size = sum(path.stat().st_size for path in data.glob("*.parquet"))
    tables, seconds = {}, {}
    for number in range(options.rounds):
        for name, filtered in (("without", []), ("with", list(options.columns))):
            table = str(options.folder / f"{name}-{time.time_ns()}")
            spark.read.parquet(str(data)).write.parquet(table)
            start = time.monotonic()
            zadapter.optimize(
                table, by=workload.by(), bloom_filters=filtered, backend="parquet", spark=spark,
                target_file_size=size // options.files,
            )  # fmt: skip
            seconds.setdefault(name, []).append(time.monotonic() - start)
            tables[name] = table
            print(f"round {number + 1}, {name}: {seconds[name][-1]:.1f} s", flush=True)
    return tables, seconds, pq.read_table(data, columns=list(options.columns))


def main():
    """Print what is read of each column, the bytes and the seconds."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.bloom_filters")
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--columns", nargs="+", default=COLUMNS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "filters")
    options = parser.parse_args()
    spark = zadapter.spark.session()
    tables, seconds, rows = rewritten(spark, options)
    files = {name: files_of(table) for name, table in tables.items()}
    sizes = {name: sum(Path(p).stat().st_size for p in paths) for name, paths in files.items()}
    print(f"bytes: x {sizes['with'] / sizes['without']:.3f}")
    print(f"seconds: {', '.join(f'{n} {statistics.median(s):.1f}' for n, s in seconds.items())}")
    print("column | row groups opened | of these without a matching row")
    for column in options.columns:
        drawn = np.random.default_rng(7).choice(rows[column].to_numpy(), options.points)
        reads = [read(files[name], column, drawn) for name in ("without", "with")]
        opened = " -> ".join(f"{each.opened:.1%}" for each in reads)
        print(f"{column} | {opened} | {' -> '.join(f'{each.in_vain:.1%}' for each in reads)}")
    spark.stop()


if __name__ == "__main__":
    main()
