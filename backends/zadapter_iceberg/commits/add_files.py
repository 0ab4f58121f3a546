"""Adoption of existing files as data files of an Iceberg table.

The path of an adopted file does not name its layout, unlike paths that zadapter writes. A side file
in the table's folder stores the layouts. It is written once, because adopted files never change.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan, is_bytes
from zadapter.base.locations import unescape_uri
from zadapter.table import file_stats
from zadapter.table.file_stats import Bounds
from zadapter.table.snapshot import Change, Snapshot, Written
from zadapter_iceberg import bulk_calls
from zadapter_iceberg.commits.rewrites import ExchangedFiles
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.binary_values import encode_bounds, json_values
from zadapter_iceberg.stats.content_file_json import field_ids
from zadapter_iceberg.table.side_files import Store
from zadapter_iceberg.table.snapshots import Version

LEDGER = "zadapter.adopted"
"""Property with the path of the side file that stores the layouts of adopted files."""


def adopt_files(jvm: Jvm, snapshot: Snapshot, files: pa.Table, uris: Sequence[str]) -> Written:
    """Return existing files as written files, each with a ``DataFile``.

    Args:
        jvm: The session's JVM.
        snapshot: A pending table.
        files: File table with size, rows, layout, partition, and stats of the table's columns.
        uris: Location of each file.
    """
    version: Version = snapshot.handle
    paths = list(map(unescape_uri, uris))
    texts = [json.dumps(file) for file in _content_files(snapshot, files, paths)]
    return Written(
        paths=dict(zip(paths, uris, strict=True)),
        handle=ExchangedFiles(
            planned=0,
            sequence=0,
            removed=None,
            added=bulk_calls.DataFiles(jvm, jvm.list(())),
            adopted=bulk_calls.data_files(jvm, texts, version.pinned.spec()),
            layouts=_layouts(paths, files),
            texts=tuple(texts),
        ),
    )


def _layouts(paths: Sequence[str], files: pa.Table) -> dict[str, str]:
    pairs = zip(paths, files["layout"].to_pylist(), strict=True)
    return {path: layout for path, layout in pairs if layout is not None}


def _content_files(
    snapshot: Snapshot, files: pa.Table, paths: Sequence[str]
) -> list[dict[str, Any]]:
    """Return each file in the JSON of Iceberg's ``ContentFileParser``, as all releases read it.

    Iceberg 1.11 writes partition values as a list and names in lower case, but still reads the
    form of Iceberg 1.10.
    """
    version: Version = snapshot.handle
    ids = field_ids(version.pinned.spec())
    values = [
        json_values(file_stats.partition(files, name), type_)
        for name, type_ in snapshot.partition.items()
    ]
    spec = int(version.pinned.spec().specId())
    content_files: list[dict[str, Any]] = [
        {
            "spec-id": spec,
            "content": "DATA",
            "file-path": path,
            "file-format": "PARQUET",
            "partition": {
                str(field): column[number]
                for field, column in zip(ids, values, strict=True)
                if column[number] is not None
            },
            "file-size-in-bytes": size,
            "record-count": rows,
        }
        for number, (path, size, rows) in enumerate(
            zip(paths, files["size"].to_pylist(), files["rows"].to_pylist(), strict=True)
        )
    ]
    for parts, column in version.columns.items():
        stats = file_stats.column(files, parts)
        if stats is not None:
            _add_stats(content_files, column.id, stats)
    return content_files


def _add_stats(files: Sequence[dict[str, Any]], field_id: int, stats: Any) -> None:
    """Add one column's stats to each file; a missing entry means unknown.

    Iceberg answers MIN and MAX from bounds of types other than string and binary, so these bounds
    must be exact.
    """
    low, high, nulls, nans, bounds = stats.flatten()
    usable = pc.not_equal(bounds, int(Bounds.UNKNOWN))
    if not is_bytes(low.type):
        usable = pc.equal(bounds, int(Bounds.EXACT))
    if has_nan(low.type):
        # Iceberg excludes NaN from bounds and predicates; other formats may include it
        nans = pc.if_else(pc.equal(nans, 0), nans, None)
        usable = pc.and_(usable, nans.is_valid())
        low, high = file_stats.both_zeros(low, high)
    lows, highs = (encode_bounds(pc.if_else(usable, bound, None)) for bound in (low, high))
    metrics = {
        "value-counts": [file["record-count"] for file in files],
        "null-value-counts": nulls.to_pylist(),
        "nan-value-counts": nans.to_pylist(),
        "lower-bounds": lows,
        "upper-bounds": highs,
    }
    for name, values in metrics.items():
        for file, value in zip(files, values, strict=True):
            if value is not None:
                entry = file.setdefault(name, {"keys": [], "values": []})
                entry["keys"].append(field_id)
                entry["values"].append(value)


def store_layouts(store: Store, change: Change) -> str | None:
    """Store the layouts of adopted files, and return the side file's path; None if none."""
    adopted = [staged.handle for staged in change.staged if staged.handle.adopted is not None]
    if not adopted:
        return None
    path = f"_zadapter/adopted/{change.id}.json"
    store.write(
        path, json.dumps({k: v for handle in adopted for k, v in handle.layouts.items()}).encode()
    )
    return path


def fill_layouts(pinned: JavaObject, files: pa.Table) -> pa.Table:
    """Fill the layouts of adopted files into a file table."""
    path = pinned.properties().get(LEDGER)
    data = None if path is None else Store(pinned).read(path)
    if data is None:
        return files
    return with_layouts(files, json.loads(data))


def with_layouts(files: pa.Table, by_path: Mapping[str, str]) -> pa.Table:
    """Return the file table with missing layout ids taken from *by_path*: ids by path."""
    paths, ids = (pa.array(each, pa.string()) for each in (by_path.keys(), by_path.values()))
    stored = ids.take(pc.index_in(files["path"].combine_chunks(), paths))
    field = files.schema.field("layout")
    return file_stats.replace_column(
        files, field, pc.coalesce(files["layout"].combine_chunks(), stored)
    )
