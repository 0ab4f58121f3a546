"""Tables made and read by libraries other than Spark and zadapter."""

import deltalake
import duckdb
import pyarrow as pa

FILES = 4


def rows(count):
    """Return rows in no order of ``a``; ``b`` counts them."""
    return pa.table({"a": [i * 7919 % 200_003 for i in range(count)], "b": range(count)})


def delta_table(path, count):
    """Make a Delta table of several files by delta-rs."""
    every = rows(count)
    for start in range(0, count, count // FILES):
        deltalake.write_deltalake(path, every.slice(start, count // FILES), mode="append")


def sorted_rows(table):
    """Return rows of Arrow as a list, in the order of ``b``."""
    found = table.select(["a", "b"]).sort_by("b")
    return list(zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True))


def of_delta(path):
    """Return the rows of a Delta table, read by delta-rs."""
    return sorted_rows(deltalake.DeltaTable(path).to_pyarrow_table())


def of_files(paths):
    """Return the rows of Parquet files, read by DuckDB."""
    with duckdb.connect() as connection:
        return connection.sql(f"SELECT a, b FROM read_parquet({list(paths)}) ORDER BY b").fetchall()
