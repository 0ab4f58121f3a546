"""Seconds of DuckDB for other queries of a log's templates, and for full scans, by layout.

Layouts are fitted to a sample as ``integration.bench.logs`` does, and all rows are written.
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import zadapter.spark
from integration.bench import logs
from integration.bench.readers.files import connect, read
from integration.bench.tables.logs import LOGS, NEWER, SELECTIVE
from integration.bench.tables.workloads import WORKLOADS
from zadapter.inspection.advise.choice import keys_in_turn, learn_keys, weigh_columns
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Request
from zadapter.planning.options import ROW_GROUPS

FILES, SCALE, ROUNDS = 64, 0.1, 3
TABLES = ("tpch", "tpcds", "ssb", "selective")
QUERY = "SELECT count(hash(COLUMNS(*))) FROM {}"
COPY, HAND_PICKED = "a copy", "hand-picked"


def ordered(case, table, keys):
    """Return the rows in the order of a layout, and the number of rows of each file."""
    if keys is None:
        return table, np.bincount(np.arange(len(table)) * FILES // len(table))
    at = [case.columns.index((name,)) for name in keys.weights]
    request = Request(
        columns=tuple(case.columns[n] for n in at),
        weights=tuple(keys.weights.values()),
        target_file_size=1 << 20,
        row_groups=ROW_GROUPS,
        filters=keys.filters,
    )
    some = pa.array(np.arange(0, len(case.ranks), max(1, len(case.ranks) // 40_000)))
    sample = [case.values[n].take(some) for n in at]
    layout = fit(request, sample, [()], np.zeros(len(some), np.int64), [FILES])
    values = [table[name].combine_chunks() for name in keys.weights]
    leaf = assign.leaves(layout, values, np.zeros(len(table), np.int64))
    file = assign.files(layout, leaf, np.arange(len(table)))
    order = np.lexsort((assign.leaf_positions(layout, leaf), file))
    return table.take(pa.array(order)), np.bincount(file)


def write(table, counts, folder):
    """Write the rows of each file."""
    folder.mkdir()
    start = 0
    for at, count in enumerate(counts.tolist()):
        rows = table.slice(start, count)
        groups = max(1, -(-count // ROW_GROUPS))
        pq.write_table(rows, folder / f"{at:04}.parquet", groups, write_page_index=True)
        start += count
    return folder


def compared(case, name, folder):
    """Return what each layout reads for the queries and for a full scan: seconds and bytes."""
    table = ds.dataset(WORKLOADS[name].data(folder, SCALE), format="parquet").to_table()
    # PyArrow sorts no views
    plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    table = table.cast(pa.schema(plain))
    older = [each for _, each in case.older]
    weights = weigh_columns(older, case.columns)
    layouts = {
        COPY: None,
        HAND_PICKED: case.hand_picked,
        "most filtered, in turn": keys_in_turn(weights),
        "learned": learn_keys(older, weights),
    }
    made = {
        layout: write(*ordered(case, table, keys), folder / f"{name}-{layout}".replace(" ", "-"))
        for layout, keys in layouts.items()
    }
    log = (LOGS | SELECTIVE)[name]
    texts = log.filters(NEWER)[: ROUNDS * len(log.templates)]
    texts = [text.replace("TIMESTAMP_NTZ", "TIMESTAMP") for text in texts]
    connection = connect()
    asked = [f"{QUERY} WHERE {text}" for text in texts]
    # in turn, so that other work on the machine slows all of them
    reads = {layout: [] for layout in made}
    for text in asked:
        for layout, files in made.items():
            reads[layout].append(read(connection, text, files))
    scans = {layout: [] for layout in made}
    for _ in range(5):
        for layout, files in made.items():
            scans[layout].append(read(connection, QUERY, files).seconds)
    return {
        layout: (
            sum(each.seconds for each in reads[layout]),
            sum(each.bytes for each in reads[layout]),
            float(np.median(scans[layout])),
            sum(path.stat().st_size for path in made[layout].iterdir()),
        )
        for layout in made
    }


def main(_, __):
    """Print the table."""
    spark = zadapter.spark.session()
    print(
        "\nseconds and bytes of queries x hand-picked; seconds of a full scan and size x a copy\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            found = compared(logs.case(spark, name, Path(folder), SCALE), name, Path(folder))
            for layout, (seconds, bytes_, scan, size) in found.items():
                base, copy = found[HAND_PICKED], found[COPY]
                print(
                    f"| {name} | {layout} | {seconds / base[0]:.2f} | {bytes_ / base[1]:.2f}"
                    f" | {scan / copy[2]:.2f} | {size / copy[3]:.2f} |",
                    flush=True,
                )
