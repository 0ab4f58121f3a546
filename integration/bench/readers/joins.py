"""Filters on dimensions of the Star Schema Benchmark, by the layout of the fact table.

A reader with dynamic filters joins the filtered dimension first, and passes the range of its keys
on to the scan of the fact table. So the keys of a dimension matter: here they are in no order, or
in the order of what the queries filter.
"""

import re

import numpy as np
import pyarrow as pa

from integration.bench.readers.files import connect, nested, read, write
from integration.bench.tables import ssb

FILES, GROUPS = 64, 16
ROWS = 500_000
CUSTOMERS, SUPPLIERS, PARTS = 30_000, 2_000, 100_000
"""Rows of the dimensions for so many rows of the fact table."""
DIMENSIONS = {
    "dates": ("d", "lo_orderdate", ["d_year", "d_yearmonthnum"]),
    "customer": ("c", "lo_custkey", ["c_region", "c_nation", "c_city"]),
    "supplier": ("s", "lo_suppkey", ["s_region", "s_nation", "s_city"]),
    "part": ("p", "lo_partkey", ["p_mfgr", "p_category", "p_brand"]),
}
"""Prefix, key in the fact table, and hierarchy of each dimension."""
LAYOUTS = {
    "none": None,
    "sorted by date": [("lo_orderdate", FILES * GROUPS)],
    "by all four keys": [
        *[(key, 4) for key in ("lo_suppkey", "lo_custkey", "lo_partkey")],
        *[("lo_orderdate", 4), ("lo_suppkey", 2), ("lo_custkey", 2)],
    ],
}


def dimensions(rows, *, ordered):
    """Return the dimensions, whose keys are 0, 1, 2 ...

    Args:
        rows: Rows of the fact table.
        ordered: Whether keys are in the order of the hierarchy. Dates are in any case.
    """
    scale = rows / ROWS
    customer, supplier, part = (
        np.arange(int(count * scale)) for count in (CUSTOMERS, SUPPLIERS, PARTS)
    )
    found = {
        "dates": ssb._dates(np.arange(ssb.DAYS)),  # noqa: SLF001 - of the same benchmark
        "customer": ssb._places("c", customer, seed=1),  # noqa: SLF001
        "supplier": ssb._places("s", supplier, seed=2),  # noqa: SLF001
        "part": ssb._brands(part),  # noqa: SLF001
    }
    tables = {}
    for name, columns in found.items():
        letter, _, hierarchy = DIMENSIONS[name]
        table = pa.table({at: values for at, values in columns.items() if at[0] == letter})
        if ordered and name != "dates":
            table = table.sort_by([(column, "ascending") for column in hierarchy])
        tables[name] = table.append_column(f"{letter}_key", pa.array(np.arange(len(table))))
    return tables


def lineorder(rows):
    """Return the columns of the fact table."""
    draw, scale = np.random.default_rng(7), rows / ROWS
    return {
        "lo_custkey": draw.integers(0, int(CUSTOMERS * scale), rows),
        "lo_suppkey": draw.integers(0, int(SUPPLIERS * scale), rows),
        "lo_partkey": draw.integers(0, int(PARTS * scale), rows),
        "lo_orderdate": draw.integers(0, ssb.DAYS, rows),
        "lo_quantity": draw.integers(1, 51, rows),
        "lo_discount": draw.integers(0, 11, rows),
        "lo_revenue": draw.integers(1, 10_000_000, rows),
    }


def queries():
    """Return the thirteen queries as joins."""
    found = []
    for text in ssb.lineorder_filters(each=1):
        used = {
            name: f"{key} = {letter}_key"
            for name, (letter, key, _) in DIMENSIONS.items()
            if re.search(rf"\b{letter}_", text)
        }
        conditions = " AND ".join([*used.values(), text])
        found.append(f"SELECT sum(lo_revenue) FROM {{}}, {', '.join(used)} WHERE {conditions}")
    return found


def main(folder, rows):
    """Print the table."""
    columns = lineorder(rows)
    table = pa.table(columns)
    print(
        "\n| fact table | keys of dimensions | row groups | MB | core seconds |\n"
        + "|---" * 5
        + "|"
    )
    for layout, levels in LAYOUTS.items():
        order = np.arange(rows) if levels is None else nested(columns, levels)
        files = write(table.take(pa.array(order)), folder / layout.replace(" ", "-"), FILES, GROUPS)
        for ordered in (False, True):
            connection = connect()
            for name, dimension in dimensions(rows, ordered=ordered).items():
                connection.register("rows_of", dimension)
                connection.execute(f"CREATE TABLE {name} AS FROM rows_of")
            found = [read(connection, text, files) for text in queries()]
            share = np.mean([each.row_groups / each.of for each in found])
            megabytes = sum(each.bytes for each in found) / 1e6
            seconds = sum(each.seconds for each in found)
            keys = "in the order of the hierarchy" if ordered else "in no order"
            print(
                f"| {layout} | {keys} | {share:.3f} | {megabytes:.0f} | {seconds:.2f} |", flush=True
            )
