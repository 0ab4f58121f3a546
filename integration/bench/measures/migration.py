"""Cost of migrations: adopted files, and copied rows."""

import shutil
import time
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import zadapter
from integration.bench.formats import CATALOG
from integration.bench.results import Goal
from integration.bench.tables.workloads import Workload
from zadapter import Migration

FILES = 5_000
A_SECOND = 2_000
"""Goal: files adopted per second."""
TO_PLAIN = 1.15
"""Goal: seconds of a copy, relative to Spark's plain read and write between the two formats."""
COLUMNS = 8
LOGS = ("delta", "iceberg")


def migrations(
    spark: SparkSession, folder: Path, workload: Workload, scale: float, rounds: int
) -> Iterator[Goal]:
    """Migrate between all formats, and time everything except verification.

    Args:
        spark: The session.
        folder: Where tables are made.
        workload: The rows that are copied.
        scale: Scale of the rows.
        rounds: Number of copies of each kind; migration and plain copy take turns to begin.
    """
    place = folder / "migration"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.migrated")
    for old in spark.sql(f"SHOW TABLES IN {CATALOG}.migrated").collect():
        spark.sql(f"DROP TABLE {CATALOG}.migrated.{old.tableName} PURGE")
    if place.exists():
        shutil.rmtree(place)
    place.mkdir(parents=True)
    yield from _in_place(spark, place)
    yield from _copies(spark, place, workload.data(folder, scale), rounds)


def _in_place(spark: SparkSession, place: Path) -> Iterator[Goal]:
    many = place / "many"
    many.mkdir()
    for number in range(FILES):
        start = number * 10
        columns = {f"c{i}": pa.array(range(start + i, start + i + 10)) for i in range(COLUMNS)}
        pq.write_table(pa.table(columns), many / f"{number:05}.parquet")
    tables = {"parquet": str(many)}
    tables |= {each: _name(place, each, f"many_{each}") for each in LOGS}
    # files outside a table's folder are not adopted, so these tables get their own files
    rows = spark.range(0, FILES * 10, 1, FILES)
    rows = rows.selectExpr(*(f"id + {i} AS c{i}" for i in range(COLUMNS)))
    rows.write.format("delta").save(tables["delta"])
    rows.writeTo(tables["iceberg"]).using("iceberg").create()
    for old, to in [("delta", "iceberg"), ("iceberg", "delta"), *product(("parquet",), LOGS)]:
        found = [
            zadapter.migrate(
                tables[old],
                backend=old,
                to=to,
                mode="in_place",
                spark=spark,
                target=_name(place, to, f"{old}_in_{to}_{number}"),
            )
            for number in range(2)
        ][-1]  # the first one loads classes
        rate = found.file_count / _without_proof(found)
        what = f"in place, {FILES} files, {old} to {to}: files a second"
        said = f"{rate:,.0f}; {_said(found)}"
        said += "; footers are read" if old == "parquet" else ""
        yield Goal(what, f">= {A_SECOND}", said, rate >= A_SECOND)


def _copies(spark: SparkSession, place: Path, data: Path, rounds: int) -> Iterator[Goal]:
    tables = {each: _name(place, each, f"source_{each}") for each in LOGS}
    tables["parquet"] = str(data)
    for format_ in LOGS:
        _write(spark, "parquet", str(data), format_, tables[format_])
    for old, to in permutations(tables, 2):
        plain, ours = [], []
        for number in range(rounds):
            target = _name(place, to, f"{old}_{to}_{number}")
            if number % 2:
                plain.append(_written(spark, old, tables[old], to, f"{target}_plain"))
            start = time.perf_counter()
            found = zadapter.migrate(tables[old], backend=old, to=to, target=target, spark=spark)
            ours.append(time.perf_counter() - start - found.seconds["verify"])
            if not number % 2:
                plain.append(_written(spark, old, tables[old], to, f"{target}_plain"))
        ratio = median(ours) / median(plain)
        said = f"{ratio:.2f} ({median(ours):.1f} s / {median(plain):.1f} s); {_said(found)}"
        yield Goal(
            f"copy, {old} to {to}: seconds, x plain", f"<= {TO_PLAIN}", said, ratio <= TO_PLAIN
        )


def _name(place: Path, format_: str, name: str) -> str:
    return f"{CATALOG}.migrated.{name}" if format_ == "iceberg" else str(place / name)


def _write(spark: SparkSession, old: str, table: str, to: str, target: str) -> None:
    """Read and write with plain Spark."""
    rows = spark.table(table) if old == "iceberg" else spark.read.format(old).load(table)
    if to == "iceberg":
        rows.writeTo(target).using("iceberg").create()
    else:
        rows.write.format(to).save(target)


def _written(spark: SparkSession, old: str, table: str, to: str, target: str) -> float:
    """Return the seconds of a plain write."""
    start = time.perf_counter()
    _write(spark, old, table, to, target)
    return time.perf_counter() - start


def _without_proof(found: Migration) -> float:
    return sum(found.seconds.get(phase, 0.0) for phase in ("plan", "write", "commit"))


def _said(found: Migration) -> str:
    return f"proof {found.seconds.get('verify', 0.0):.1f} s"
