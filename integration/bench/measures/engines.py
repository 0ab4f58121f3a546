"""Queries by engines: their time, and equal answers on all tables."""

import time
from collections.abc import Sequence

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def by_spark(rows: DataFrame, conditions: Sequence[str]) -> tuple[float, list[int]]:
    """Count rows by Spark, one query per condition; return the total seconds and the counts.

    The queries read all columns, as queries that return rows do.
    """
    counts = []
    start = time.perf_counter()
    for text in conditions:
        looked_at = F.count_if(F.hash(*rows.columns).isNotNull())
        counts.append(rows.where(text).agg(looked_at).first()[0])
    return time.perf_counter() - start, counts


def by_duckdb(paths: Sequence[str], conditions: Sequence[str]) -> tuple[float, list[int]]:
    """Count rows by DuckDB, like :func:`by_spark`."""
    counts = []
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        table = f"read_parquet({list(paths)!r})"
        start = time.perf_counter()
        for text in conditions:
            here = text.replace("TIMESTAMP_NTZ", "TIMESTAMP")  # DuckDB's TIMESTAMP has no time zone
            found = connection.execute(
                f"SELECT count(hash(COLUMNS(*))) FROM {table} WHERE {here}"
            ).fetchall()
            counts.append(found[0][0])
    return time.perf_counter() - start, counts
