"""Real queries: how long engines take, and that all tables have the same answers."""

import time
from collections.abc import Sequence

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def by_spark(rows: DataFrame, conditions: Sequence[str]) -> tuple[float, list[int]]:
    """Count rows by Spark, each condition in a query; return all seconds, and the counts.

    All columns are looked at, as by a query that returns its rows.
    """
    counts = []
    start = time.perf_counter()
    for text in conditions:
        looked_at = F.count_if(F.hash(*rows.columns).isNotNull())
        counts.append(rows.where(text).agg(looked_at).first()[0])
    return time.perf_counter() - start, counts


def by_duckdb(paths: Sequence[str], conditions: Sequence[str]) -> tuple[float, list[int]]:
    """Count rows by DuckDB, as above."""
    counts = []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        table = f"read_parquet({list(paths)!r})"
        start = time.perf_counter()
        for text in conditions:
            here = text.replace("TIMESTAMP_NTZ", "TIMESTAMP")  # DuckDB's have no zone
            found = connection.execute(
                f"SELECT count(hash(COLUMNS(*))) FROM {table} WHERE {here}"
            ).fetchall()
            counts.append(found[0][0])
    return time.perf_counter() - start, counts
