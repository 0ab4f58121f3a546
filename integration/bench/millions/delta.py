"""Delta logs without data files: a checkpoint in parts, and a commit of a few files after it."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from integration.bench.millions.facts import ROWS, Chunk, Raw, chunks, raw

A_PART = 500_000
"""Files of one part of the checkpoint."""
_CHECKPOINT = 1
_TEXTS = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("tags", _TEXTS),
        ("stats", pa.string()),
    ]
)
_REMOVE = pa.struct(
    [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
)
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_PROTOCOL = pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])
_META_DATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)
_SCHEMA = pa.schema(
    [
        ("txn", _TXN),
        ("add", _ADD),
        ("remove", _REMOVE),
        ("metaData", _META_DATA),
        ("protocol", _PROTOCOL),
    ]
)


def make(spark: SparkSession, folder: Path, files: int) -> str:
    """Make a table of so many files, besides the raw ones, and return its path."""
    table = folder / "delta"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (p INT, k BIGINT, t TIMESTAMP, s STRING, x DOUBLE) "
        "USING delta PARTITIONED BY (p) TBLPROPERTIES (delta.minReaderVersion=1, "
        "delta.minWriterVersion=2, delta.enableDeletionVectors=false)"
    )
    log = table / "_delta_log"
    first = [json.loads(line) for line in _entry(log, 0).read_text().splitlines()]
    actions = {key: value for line in first for key, value in line.items()}
    parts, size = -(-files // A_PART), 0
    for number, chunk in enumerate(chunks(files, A_PART), 1):
        size += int(chunk.size.sum())
        _write_part(log, number, parts, chunk, actions if number == 1 else {})
    _entry(log, _CHECKPOINT).write_text(json.dumps({"commitInfo": _info()}) + "\n")
    added = raw(table / "p=0")
    _entry(log, 2).write_text("\n".join([json.dumps({"commitInfo": _info()}), *_lines(added)]))
    hint = {"version": _CHECKPOINT, "size": files + 2, **({"parts": parts} if parts > 1 else {})}
    (log / "_last_checkpoint").write_text(json.dumps(hint))
    checksum = {
        "tableSizeBytes": size + added.size * len(added.names),
        "numFiles": files + len(added.names),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": actions["metaData"],
        "protocol": actions["protocol"],
    }
    for path in log.glob(".*.crc"):
        path.unlink()
    (log / f"{2:020d}.crc").write_text(json.dumps(checksum))
    return str(table)


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020d}.json"


def _info() -> dict[str, object]:
    return {"timestamp": 1_700_000_000_000, "operation": "WRITE", "operationParameters": {}}


def _write_part(log: Path, number: int, parts: int, chunk: Chunk, first: dict[str, dict]) -> None:
    others = [{key: first[key]} for key in ("metaData", "protocol") if first]
    for each in others:
        each.get("metaData", {}).setdefault("configuration", {})
    size = len(chunk) + len(others)
    adds = pa.StructArray.from_arrays(_columns(chunk), fields=list(_ADD))
    missing = pa.nulls(len(others), _ADD)
    arrays = []
    for field in _SCHEMA:
        if field.name == "add":
            arrays.append(pa.concat_arrays([missing, adds]))
        else:
            values = [_typed(each.get(field.name)) for each in others]
            head = pa.array(values, field.type)
            arrays.append(pa.concat_arrays([head, pa.nulls(size - len(others), field.type)]))
    part = f"{number:010d}.{parts:010d}." if parts > 1 else ""  # a single file has a classic name
    name = f"{_CHECKPOINT:020d}.checkpoint.{part}parquet"
    pq.write_table(pa.table(arrays, schema=_SCHEMA), log / name, row_group_size=100_000)


def _typed(action: dict | None) -> dict | None:
    """Return an action's JSON with maps as Arrow takes them."""
    if action is None:
        return None
    typed = {**action}
    if "configuration" in typed:
        typed["configuration"] = list(typed["configuration"].items())
        typed["format"] = {**typed["format"], "options": []}
    return typed


def _columns(chunk: Chunk) -> list[pa.Array]:
    count = len(chunk)
    p = pa.array(chunk.partition).cast(pa.string())
    number = pa.array(chunk.number % 1_000).cast(pa.string())
    tags = {"zadapter.layout": chunk.layouts, "zadapter.file": number}
    return [
        pc.binary_join_element_wise("p=", p, "/", chunk.names, ""),
        _maps({"p": p}),
        pa.array(chunk.size),
        pa.array(np.full(count, 1_700_000_000_000)),
        pa.array(np.zeros(count, bool)),
        _maps(tags),
        _stats(chunk),
    ]


def _maps(columns: dict[str, pa.Array]) -> pa.Array:
    count, width = len(next(iter(columns.values()))), len(columns)
    keys = pa.array(list(columns)).take(pa.array(np.tile(np.arange(width), count)))
    at = np.arange(count * width)
    together = pa.concat_arrays(list(columns.values()))
    items = together.take(pa.array(at % width * count + at // width))
    offsets = pa.array(np.arange(0, count * width + 1, width, dtype=np.int32))
    return pa.MapArray.from_arrays(offsets, keys, items)


def _stats(chunk: Chunk) -> pa.Array:
    rows = pa.array(chunk.rows).cast(pa.string())
    pieces = ['{"numRecords":', rows, ',"minValues":{']
    pieces += [*_values(chunk.low), '},"maxValues":{', *_values(chunk.high)]
    pieces += ['},"nullCount":{"k":0,"t":0,"s":0,"x":0},"tightBounds":true}', ""]
    return pc.binary_join_element_wise(*pieces)


def _values(bounds: dict[str, pa.Array]) -> list[object]:
    milliseconds = bounds["t"].cast(pa.timestamp("ms", "UTC"), safe=False)
    times = pc.strftime(milliseconds, "%Y-%m-%dT%H:%M:%SZ")
    k, x = (bounds[name].cast(pa.string()) for name in ("k", "x"))
    return ['"k":', k, ',"t":"', times, '","s":"', bounds["s"], '","x":', x]


def _lines(added: Raw) -> list[str]:
    def bounds(values: dict[str, object]) -> dict[str, object]:
        return {**values, "t": f"{values['t']:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"}

    stats = {
        "numRecords": ROWS,
        "minValues": bounds(added.low),
        "maxValues": bounds(added.high),
        "nullCount": dict.fromkeys(added.low, 0),
    }
    add = {
        "partitionValues": {"p": "0"},
        "size": added.size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
    return [json.dumps({"add": {"path": f"p=0/{name}", **add}}) for name in added.names]
