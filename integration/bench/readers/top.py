"""Queries for the first rows in a column's order, by the order in which files are read."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from integration.bench.readers.files import bytes_read, connect, nested, read, write

FILES, GROUPS, TENANTS = 64, 8, 1_000
DELTA_FILES = 16
QUERIES = {
    "DESC": "SELECT * FROM {} ORDER BY ts DESC LIMIT 10",
    "ASC": "SELECT * FROM {} ORDER BY ts LIMIT 10",
    "tenant, DESC": "SELECT * FROM {} WHERE tenant = 5 ORDER BY ts DESC LIMIT 10",
}
LAYOUTS = {
    "none": None,
    "`ts`": [("ts", FILES)],
    "`ts` and `tenant`": [("tenant", 8), ("ts", 8)],
}


def made(rows):
    """Return the rows by layout."""
    draw = np.random.default_rng(3)
    columns = {
        "ts": draw.integers(0, 31_536_000_000, rows),
        "tenant": draw.integers(0, TENANTS, rows),
        "amount": draw.integers(0, 100_000, rows),
        "payload": draw.integers(0, 1 << 60, rows).astype(str),
    }
    table = pa.table(columns)
    return {
        name: table if levels is None else table.take(pa.array(nested(columns, levels)))
        for name, levels in LAYOUTS.items()
    }


def orders():
    """Return the place of each file in the order of names."""
    ascending = np.arange(FILES)
    bits = FILES.bit_length() - 1
    return {
        "ascending": ascending,
        "descending": ascending[::-1],
        "shuffled": np.random.default_rng(5).permutation(FILES),
        "bits reversed": np.array([int(f"{at:0{bits}b}"[::-1], 2) for at in range(FILES)]),
    }


def by_datafusion(table, folder):
    """Return the row groups that DataFusion reads of a Delta table of one row group a file.

    Files are appended in their order; DataFusion reads the last one first.
    """
    each = len(table) // DELTA_FILES
    for at in range(DELTA_FILES):
        write_deltalake(folder, table.slice(at * each, each), mode="append")
    query = QueryBuilder().register("t", DeltaTable(folder))
    found = []
    for text in QUERIES.values():
        plan = pa.table(query.execute(f"EXPLAIN ANALYZE {text.format('t')}"))["plan"][0].as_py()
        skipped = r"row_groups_pruned_statistics=\d+ total . (\d+) matched"
        found.append(re.search(skipped, plan)[1])
    return found


def by_polars(files):
    """Return the megabytes that Polars reads, footers included."""
    rows, found = pl.scan_parquet(f"{files}/*.parquet"), []
    asked = (
        rows.sort("ts", descending=True),
        rows.sort("ts"),
        rows.filter(pl.col("tenant") == 5).sort("ts", descending=True),
    )
    for each in asked:
        before = bytes_read()
        each.head(10).collect()
        found.append(f"{(bytes_read() - before) / 1e6:.1f}")
    return found


def main(folder, rows):
    """Print the tables."""
    connection, tables = connect(), made(rows)
    print(f"\nDuckDB: row groups of {FILES * GROUPS}; MB; MB of Polars\n")
    print("| layout | names | " + " | ".join(QUERIES) + " |\n|---|---|" + "---|" * len(QUERIES))
    for layout, table in tables.items():
        for order, names in orders().items():
            files = write(
                table, folder / f"{layout}-{order}".replace("`", ""), FILES, GROUPS, names
            )
            found = [read(connection, text, files) for text in QUERIES.values()]
            cells = [
                f"{each.row_groups}; {each.bytes / 1e6:.1f}; {polars}"
                for each, polars in zip(found, by_polars(files), strict=True)
            ]
            print("|", " | ".join([layout, order, *cells]), "|", flush=True)
            if LAYOUTS[layout] is None:
                break
    print(f"\nDataFusion on Delta, appended in ascending order: row groups of {DELTA_FILES}\n")
    for layout, table in tables.items():
        found = by_datafusion(table, str(folder / f"delta-{layout}".replace("`", "")))
        print("|", " | ".join([layout, *found]), "|", flush=True)
