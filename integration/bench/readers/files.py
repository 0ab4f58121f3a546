"""Tables of files in a given order, and what DuckDB reads of them."""

import json
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq

PAGE = 64 << 10
"""Bytes of a page, about. A page has 20 000 rows at most."""


@dataclass(frozen=True)
class Read:
    """What a query read.

    Attributes:
        row_groups: Row groups of the largest scan.
        of: Row groups of the table.
        bytes: Bytes of files.
        requests: Reads of files.
        seconds: Core seconds.
    """

    row_groups: int
    of: int
    bytes: int
    requests: int
    seconds: float


def connect():
    """Return DuckDB with two threads."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return connection


def read(connection, query, files):
    """Run a query, in which ``{}`` is the table, and return what it read.

    Args:
        connection: DuckDB.
        query: The query.
        files: The folder of the files, or their paths.
    """
    paths = [f"{files}/*.parquet"] if isinstance(files, Path) else list(files)
    profile = Path(tempfile.gettempdir()) / f"profile-{os.getpid()}.json"
    connection.execute("PRAGMA enable_profiling = 'json'")
    connection.execute(f"PRAGMA profiling_output = '{profile}'")
    start = time.process_time()
    connection.execute(query.format(f"read_parquet({paths!r})")).fetchall()
    seconds = time.process_time() - start
    connection.execute("PRAGMA disable_profiling")
    found = json.loads(profile.read_text())
    scans = [
        (int(node.get("total_row_groups_to_scan", 0)), int(node.get("row_groups_scanned", 0)))
        for node in _nodes(found["operator"])
        if node["name"] == "READ_PARQUET"
    ]
    of, row_groups = max(scans)
    io = found["io"]
    return Read(row_groups, of, io["total_bytes_read"], io["total_read_operations"], seconds)


def bytes_read():
    """Return the bytes that this process has read by calls of the system."""
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])


def _nodes(nodes):
    for node in nodes:
        yield node
        yield from _nodes(node.get("children", ()))


def nested(columns, levels):
    """Return the order of rows in boxes: each level cuts the boxes evenly by a column.

    Args:
        columns: Values by column.
        levels: Columns, each with the number of parts that it cuts a box into.
    """
    rows = len(next(iter(columns.values())))
    node = np.zeros(rows, np.int64)
    for column, parts in levels:
        order, count = np.lexsort((columns[column], node)), np.bincount(node)
        place = np.empty(rows, np.int64)
        place[order] = np.arange(rows) - (np.cumsum(count) - count)[node[order]]
        node = node * parts + place * parts // count[node]
    return np.argsort(node, kind="stable")


def write(table, folder, files, row_groups, names=None, *, page_index=True):
    """Write a table's rows in their order to files of about as many row groups each.

    Args:
        table: The rows.
        folder: A new folder.
        files: Number of files.
        row_groups: Number of row groups of a file.
        names: Place of each file in the order of names; None: as the rows.
        page_index: Whether files have the bounds of pages.
    """
    folder.mkdir()
    each = -(-len(table) // files)
    for at in range(files):
        name = at if names is None else names[at]
        pq.write_table(
            table.slice(at * each, each),
            folder / f"{name:04}.parquet",
            row_group_size=-(-each // row_groups),
            data_page_size=PAGE,
            write_page_index=page_index,
        )
    return folder
