"""Iceberg tables without data files: Iceberg's own metadata, and many manifests like its own."""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from integration.bench.millions.avro import Header, blocks, encoded, varint, varints
from integration.bench.millions.facts import FILE_SCHEMA, ROWS, Chunk, Raw, chunks, raw
from zadapter_iceberg import bulk_calls
from zadapter_iceberg.jvm import Jvm
from zadapter_iceberg.stats.binary_values import encode_bounds as hexadecimal

A_MANIFEST = 50_000
_IDS = {name: number for number, name in enumerate(("k", "t", "s", "x"), 2)}
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "p", "required": False, "type": "int"},
        {"id": 2, "name": "k", "required": False, "type": "long"},
        {"id": 3, "name": "t", "required": False, "type": "timestamptz"},
        {"id": 4, "name": "s", "required": False, "type": "string"},
        {"id": 5, "name": "x", "required": False, "type": "double"},
    ],
}
_NUMBERS = {"rows": 1_234_567, "size": 234_567_891}
"""Numbers that are as long as those of all files, and that are replaced by them."""


def make(spark: SparkSession, folder: Path, files: int) -> str:
    """Make a table of so many files, besides the raw ones, and return its path."""
    jvm, place = Jvm(spark), folder / "iceberg"
    schema = jvm.iceberg.SchemaParser.fromJson(json.dumps(_SCHEMA))
    spec = jvm.iceberg.PartitionSpec.builderFor(schema).identity("p").build()
    conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - no public door
    table = jvm.iceberg.hadoop.HadoopTables(conf).create(
        schema, spec, {"format-version": "2"}, str(place)
    )
    with_ids = [f.with_metadata({"PARQUET:field_id": str(_IDS[f.name])}) for f in FILE_SCHEMA]
    added = raw(place / "data" / "p=0", pa.schema(with_ids))
    append = table.newFastAppend()
    texts = [json.dumps(_raw_file(place, name, added)) for name in added.names]
    bulk_calls.add_all(
        jvm, append, "AppendFiles", "appendFile", bulk_calls.data_files(jvm, texts, table.spec())
    )
    append.commit()
    snapshot = table.currentSnapshot()
    (first,) = snapshot.allManifests(table.io())
    list_path = Path(str(snapshot.manifestListLocation()).removeprefix("file:"))
    header = Header.of(Path(str(first.path()).removeprefix("file:")))
    lists = Header.of(list_path)
    number = int(snapshot.snapshotId())
    entries = [_listed(str(first.path()), int(first.length()), number, len(texts), (0, 0))]
    for at, chunk in enumerate(chunks(files, A_MANIFEST)):
        path = place / "metadata" / f"many-{at:06d}-m0.avro"
        size = header.write(path, _blocks(header.schema, place, chunk))
        bounds = int(chunk.partition[0]), int(chunk.partition[-1])
        entries.append(_listed(str(path), size, number, len(chunk), bounds))
    lists.write(list_path, [(1, encoded(lists.schema, entry)) for entry in entries])
    _correct(place / "metadata", files + len(texts))
    return str(place)


def _correct(metadata: Path, files: int) -> None:
    """Correct what the summary of the snapshot says, and remove what Hadoop knows of the files."""
    for path in metadata.glob(".*.crc"):
        path.unlink()
    newest = metadata / "v2.metadata.json"
    content = json.loads(newest.read_text())
    content["snapshots"][0]["summary"] |= {"total-data-files": str(files)}
    newest.write_text(json.dumps(content))


def _listed(
    path: str, size: int, snapshot: int, files: int, bounds: tuple[int, int]
) -> dict[str, Any]:
    low, high = (np.int32(bound).tobytes() for bound in bounds)
    nothing = ("existing_files_count", "existing_rows_count", "deleted_files_count")
    return {
        "manifest_path": path,
        "manifest_length": size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": snapshot,
        "added_files_count": files,
        "added_rows_count": files * ROWS,
        "deleted_rows_count": 0,
        **dict.fromkeys(nothing, 0),
        "partitions": [
            {
                "contains_null": False,
                "contains_nan": False,
                "lower_bound": low,
                "upper_bound": high,
            }
        ],
    }


def _raw_file(place: Path, name: str, added: Raw) -> dict[str, Any]:
    def bounds(values: dict[str, object]) -> dict[str, Any]:
        arrays = (pa.array([values[f.name]], f.type) for f in FILE_SCHEMA)
        return {"keys": list(_IDS.values()), "values": [hexadecimal(each)[0] for each in arrays]}

    counts = {"keys": list(_IDS.values()), "values": [0] * len(_IDS)}
    return {
        "spec-id": 0,
        "content": "DATA",
        "file-path": f"{place}/data/p=0/{name}",
        "file-format": "PARQUET",
        "partition": {"1000": 0},
        "file-size-in-bytes": added.size,
        "record-count": ROWS,
        "null-value-counts": counts,
        "nan-value-counts": {"keys": [_IDS["x"]], "values": [0]},
        "lower-bounds": bounds(added.low),
        "upper-bounds": bounds(added.high),
    }


def _blocks(schema: Any, place: Path, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """Yield the manifest entries of some files: copies of one, with other bytes in places."""
    columns = _columns(place, chunk)
    edges = np.flatnonzero(np.diff(chunk.partition)) + 1
    for start, stop in pairwise([0, *edges.tolist(), len(chunk)]):
        marks = {
            name: varint(_NUMBERS[name]) if name in _NUMBERS else bytes([160 + at]) * each.shape[1]
            for at, (name, each) in enumerate(columns.items())
        }
        template = _entry(schema, int(chunk.partition[start]), marks)
        records = np.tile(np.frombuffer(template, np.uint8), (stop - start, 1))
        for name, values in columns.items():
            at = template.index(marks[name])
            records[:, at : at + values.shape[1]] = values[start:stop]
        yield from blocks(records)


def _columns(place: Path, chunk: Chunk) -> dict[str, np.ndarray]:
    """Return what differs from file to file, as rows of bytes."""
    runs = chunk.layouts.to_pylist()
    paths = [
        f"{place}/data/zadapter-{run}/p={partition:06d}/{name}"
        for run, partition, name in zip(
            runs, chunk.partition.tolist(), chunk.names.to_pylist(), strict=True
        )
    ]
    columns = {
        "path": _fixed("".join(paths).encode(), len(paths)),
        "rows": varints(chunk.rows, 4),
        "size": varints(chunk.size, 5),
    }
    for side, bounds in (("low", chunk.low), ("high", chunk.high)):
        for name, values in bounds.items():
            if name == "s":
                raw_bytes = "".join(values.to_pylist()).encode()
            elif name == "t":
                raw_bytes = values.cast(pa.int64()).to_numpy().tobytes()
            else:
                raw_bytes = values.to_numpy().tobytes()
            columns[f"{side} {name}"] = _fixed(raw_bytes, len(paths))
    return columns


def _fixed(data: bytes, rows: int) -> np.ndarray:
    return np.frombuffer(data, np.uint8).reshape(rows, -1)


def _entry(schema: Any, partition: int, marks: Mapping[str, bytes]) -> bytes:
    """Return a manifest entry with marks where files differ."""
    low, high = (
        [{"key": _IDS[name], "value": marks[f"{side} {name}"]} for name in _IDS]
        for side in ("low", "high")
    )
    data_file = {
        "content": 0,
        "file_path": marks["path"],
        "file_format": "PARQUET",
        "partition": {"p": partition},
        "record_count": _NUMBERS["rows"],
        "file_size_in_bytes": _NUMBERS["size"],
        "null_value_counts": [{"key": key, "value": 0} for key in _IDS.values()],
        "nan_value_counts": [{"key": _IDS["x"], "value": 0}],
        "lower_bounds": low,
        "upper_bounds": high,
    }
    return encoded(schema, {"status": 1, "data_file": data_file})
