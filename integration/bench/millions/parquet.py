"""Logs of plain Parquet tables without data files: one entry, and parts of the stats table."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from integration.bench.millions.facts import ROWS, Chunk, Raw, chunks, raw
from zadapter.table import file_stats
from zadapter.table.file_stats import stats_of_values, structs
from zadapter_parquet.format.entries import Entry, LogOperation, StatsPart
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.store.local import LocalFiles

_FOLDER = "_zadapter/data/" + "0" * 32
_SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"k","type":"long","nullable":true,"metadata":{}},'
    '{"name":"t","type":"timestamp","nullable":true,"metadata":{}},'
    '{"name":"s","type":"string","nullable":true,"metadata":{}},'
    '{"name":"x","type":"double","nullable":true,"metadata":{}}]}'
)
_TYPES = {
    ("k",): pa.int64(),
    ("t",): pa.timestamp("us", "UTC"),
    ("s",): pa.string(),
    ("x",): pa.float64(),
}
_PARTITION = {"p": pa.int32()}


def make(_: SparkSession | None, folder: Path, files: int) -> str:
    """Make a table of so many files, besides the raw ones, and return its path."""
    table = folder / "parquet"
    store = LocalFiles(table, make=True)
    added = raw(table / "p=0")
    log, raw_files = Log(store, str(table)), _raw_table(added)
    parts = [stats_table.write(store, stats_table.flat(raw_files))]
    size, rows = (file_stats.total(raw_files, name) for name in ("size", "rows"))
    first = _first(tuple(parts), len(added.names), size, rows)
    log.claim(first)
    for part in (_file_table(chunk) for chunk in chunks(files, stats_table.FILES_A_PART)):
        parts.append(stats_table.write(store, stats_table.flat(part)))
        size, rows = size + file_stats.total(part, "size"), rows + file_stats.total(part, "rows")
    fields = {"parts": tuple(parts), "files": first.files + files, "size": size, "rows": rows}
    log.claim(
        commit_entries.build_next(log, first, LogOperation.APPEND, transaction="1" * 32, **fields)
    )
    return str(table)


def _first(parts: tuple[StatsPart, ...], files: int, size: int, rows: int) -> Entry:
    """Return the entry of the version in which the table has its raw files alone."""
    return Entry(
        version=0,
        previous="",
        transaction="0" * 32,
        operation=LogOperation.REGISTER,
        read_version=-1,
        timestamp=commit_entries.current_time(),
        table="1" * 32,
        schema=_SCHEMA,
        partition=("p",),
        parts=parts,
        files=files,
        size=size,
        rows=rows,
        oldest=0,
    )


def _file_table(chunk: Chunk) -> pa.Table:
    p = pa.array(chunk.partition).cast(pa.string())
    paths = pc.binary_join_element_wise(_FOLDER, "/p=", p, "/rows/", chunk.names, ".rows", "")
    stats = [_stats(chunk.low[name], chunk.high[name]) for (name,) in _TYPES]
    return _table(paths, chunk.size, chunk.rows, chunk.layouts, chunk.partition, stats)


def _raw_table(added: Raw) -> pa.Table:
    count = len(added.names)
    paths = pa.array([f"p=0/{name}" for name in added.names])
    full = np.ones(count, np.int64)
    stats = [
        _stats(*(pa.array([side[name]] * count, type_) for side in (added.low, added.high)))
        for (name,), type_ in _TYPES.items()
    ]
    layouts = pa.nulls(count, pa.string())
    return _table(paths, full * added.size, full * ROWS, layouts, full * 0, stats)


def _stats(low: pa.Array, high: pa.Array) -> pa.StructArray:
    zeros = pa.array(np.zeros(len(low), np.int64))
    return stats_of_values(low, high, zeros, zeros)


def _table(
    paths: pa.Array,
    size: np.ndarray,
    rows: np.ndarray,
    layouts: pa.Array,
    partition: np.ndarray,
    stats: list[pa.Array],
) -> pa.Table:
    made = file_stats.schema(_TYPES, _PARTITION)
    columns = [
        paths,
        pa.nulls(len(paths), pa.string()),
        pa.array(size),
        pa.array(rows),
        layouts,
        structs([pa.array(partition, pa.int32())], made.field("partition").type, len(paths)),
        structs(stats, made.field("stats").type, len(paths)),
    ]
    return pa.table(columns, schema=made)
