"""Queries for the first rows in a column's order, by the order in which files are read."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder, Schema
from deltalake.transaction import AddAction

from integration.bench.readers.files import bytes_read, connect, nested, read, write
from zadapter.layout import assign
from zadapter.layout.layout import Layout, Request

FILES, GROUPS, TENANTS = 64, 8, 1_000
DELTA_FILES = 16
YEAR = 31_536_000_000
MIDDLE = (YEAR * 4 // 10, YEAR * 6 // 10)
QUERIES = {
    "DESC": "SELECT * FROM {} ORDER BY ts DESC LIMIT 10",
    "ASC": "SELECT * FROM {} ORDER BY ts LIMIT 10",
    "tenant, DESC": "SELECT * FROM {} WHERE tenant = 5 ORDER BY ts DESC LIMIT 10",
    "tenant, ASC": "SELECT * FROM {} WHERE tenant = 5 ORDER BY ts LIMIT 10",
    "range, DESC": f"SELECT * FROM {{}} WHERE ts BETWEEN {MIDDLE[0]} AND {MIDDLE[1]}"
    " ORDER BY ts DESC LIMIT 10",
}
LAYOUTS = {
    "none": None,
    "`ts`": [("ts", FILES)],
    "`ts` and `tenant`": [("tenant", 8), ("ts", 8)],
}


def rows_by_layout(rows):
    """Return the rows by layout."""
    draw = np.random.default_rng(3)
    columns = {
        "ts": draw.integers(0, YEAR, rows),
        "tenant": draw.integers(0, TENANTS, rows),
        "amount": draw.integers(0, 100_000, rows),
        "payload": draw.integers(0, 1 << 60, rows).astype(str),
    }
    table = pa.table(columns)
    return {
        name: table if levels is None else table.take(pa.array(nested(columns, levels)))
        for name, levels in LAYOUTS.items()
    }


def orders(files):
    """Return the place of each file in the order of names."""
    ascending = np.arange(files)
    one = replace(Layout.uncut(Request(columns=(("ts",),), weights=(1.0,), target_file_size=1)),
                  width=np.array([files], np.int32))  # fmt: skip
    return {
        "ascending": ascending,
        "descending": ascending[::-1],
        "shuffled": np.random.default_rng(5).permutation(files),
        "as zadapter names them": assign.name_numbers(one),
    }


def by_datafusion(table, folder, names):
    """Return the row groups that DataFusion reads of a Delta table of one row group a file.

    One commit adds all files, in the order of their names.
    """
    files = write(table, folder, DELTA_FILES, 1, names)
    schema = Schema.from_arrow(table.schema)
    made = DeltaTable.create(str(folder), schema=schema)
    adds = [_add(path) for path in sorted(files.glob("*.parquet"))]
    made.create_write_transaction(adds, mode="append", schema=schema, partition_by=[])
    query = QueryBuilder().register("t", DeltaTable(str(folder)))
    found = []
    for text in QUERIES.values():
        plan = pa.table(query.execute(f"EXPLAIN ANALYZE {text.format('t')}"))["plan"][0].as_py()
        skipped = r"row_groups_pruned_statistics=\d+ total . (\d+) matched"
        found.append(re.search(skipped, plan)[1])
    return found


def _add(path):
    rows = pq.read_table(path, columns=["ts", "tenant"]).to_pydict()
    stats = {
        "numRecords": len(rows["ts"]),
        "minValues": {name: min(values) for name, values in rows.items()},
        "maxValues": {name: max(values) for name, values in rows.items()},
        "nullCount": dict.fromkeys(rows, 0),
    }
    return AddAction(path=path.name, size=path.stat().st_size, partition_values={},
                     modification_time=0, data_change=True, stats=json.dumps(stats))  # fmt: skip


def by_polars(files):
    """Return the megabytes that Polars reads, footers included."""
    rows, found = pl.scan_parquet(f"{files}/*.parquet"), []
    asked = (
        rows.sort("ts", descending=True),
        rows.sort("ts"),
        rows.filter(pl.col("tenant") == 5).sort("ts", descending=True),
        rows.filter(pl.col("tenant") == 5).sort("ts"),
        rows.filter(pl.col("ts").is_between(*MIDDLE)).sort("ts", descending=True),
    )
    for each in asked:
        before = bytes_read()
        each.head(10).collect()
        found.append(f"{(bytes_read() - before) / 1e6:.1f}")
    return found


def main(folder, rows):
    """Print the tables."""
    connection, tables = connect(), rows_by_layout(rows)
    print(f"\nDuckDB: row groups of {FILES * GROUPS}; MB; MB of Polars\n")
    print("| layout | names | " + " | ".join(QUERIES) + " |\n|---|---|" + "---|" * len(QUERIES))
    for layout, table in tables.items():
        for order, names in orders(FILES).items():
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
    print(f"\nDataFusion on Delta, added in one commit: row groups of {DELTA_FILES}\n")
    for layout, table in tables.items():
        for order, names in orders(DELTA_FILES).items():
            made_in = folder / f"delta-{layout}-{order}".replace("`", "")
            print("|", " | ".join([layout, order, *by_datafusion(table, made_in, names)]), "|")
            if LAYOUTS[layout] is None:
                break
