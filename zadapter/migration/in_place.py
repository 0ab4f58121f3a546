"""Migration in place: check that two tables can share files, and adopt them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter.base.key_types import TIMESTAMP, has_nan, is_text, kind_of
from zadapter.base.locations import map_files, within
from zadapter.base.quantities import show_count
from zadapter.errors import UnsupportedError
from zadapter.migration.copy import Carried, Transfer
from zadapter.spark.compat.spark_api import find_rebasing
from zadapter.spark.footer_reader import metadata
from zadapter.table import file_stats
from zadapter.table.compatibility import find_mismatch, has_ids
from zadapter.table.file_stats import Bounds, replace_column, structs
from zadapter.table.footers import Footer, file_table, parse
from zadapter.table.snapshot import Snapshot
from zadapter.table.spec import Definition

_MIN_OPENED = 64
"""Minimum number of files to open, evenly spread over the table."""
_BOUNDS = file_stats.column_type(pa.null()).get_field_index("bounds")
_TIMES = {"date", "timestamp"}


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Files that both tables can share.

    Attributes:
        uris: URIs of the files.
        files: File table, with row counts of the footers and exact bounds of timestamps.
    """

    uris: list[str]
    files: pa.Table


def find_shareable(transfer: Transfer, before: Definition) -> Shared:
    """Return the old table's files if the new table can share them.

    Args:
        transfer: The source and the target.
        before: The definition of the old table.

    Raises:
        UnsupportedError: The files cannot be shared; the message states the reason.
    """
    uris = transfer.source.uris(transfer.snapshot, transfer.files["path"].to_pylist())
    reason = next(chain(_reasons(transfer, before), _elsewhere(transfer, uris)), None)
    if reason is not None:
        raise UnsupportedError(f"{transfer.snapshot.table} cannot be migrated in place: {reason}")
    truncated = _cut(transfer.files)
    opened = list(range(transfer.files.num_rows)) if truncated else _files_to_open(transfer.files)
    rows, footers = transfer.files["rows"].to_pylist(), dict[str, Footer]()
    names = [uris[number] for number in opened]
    with closing(map_files(lambda uri: _metadata(transfer, uri), names)) as file_metadata:
        checked = _check_footers(transfer, before, opened, file_metadata)
        for number, (size, footer) in zip(opened, checked, strict=True):
            rows[number] = footer.num_rows
            if truncated:
                footers[uris[number]] = parse(size, footer)
    field = transfer.files.schema.field("rows")
    files = replace_column(transfer.files, field, pa.array(rows, pa.int64()))
    return Shared(
        uris=uris, files=_with_bounds(files, file_table(transfer.snapshot, footers), truncated)
    )


def _metadata(transfer: Transfer, uri: str) -> tuple[int, pq.FileMetaData]:
    try:
        return metadata(transfer.spark, uri)
    except pa.ArrowInvalid as error:
        raise UnsupportedError(f"{uri} is not a Parquet file") from error


def _elsewhere(transfer: Transfer, uris: Sequence[str]) -> Iterator[str]:
    for uri in uris:
        if not within(uri, transfer.snapshot.location):
            yield f"{uri} is outside the table's folder, where other programs may delete it"


def _cut(files: pa.Table) -> list[str]:
    """Return the timestamp columns whose bounds are truncated in the log, but not in footers."""
    return [
        child.name
        for number, child in enumerate(files.schema.field("stats").type)
        if kind_of(child.type["min"].type) is TIMESTAMP
        and _any(pc.struct_field(files["stats"], [number, _BOUNDS]), Bounds.WIDENED)
    ]


def _any(values: pa.ChunkedArray, value: int) -> bool:
    return bool(pc.any(pc.equal(values, int(value))).as_py())


def _with_bounds(files: pa.Table, footer_stats: pa.Table, columns: Sequence[str]) -> pa.Table:
    if not columns:
        return files
    field = files.schema.field("stats")
    children = [
        file_stats.child((footer_stats if column.name in columns else files)["stats"], column.name)
        for column in field.type
    ]
    return replace_column(files, field, structs(children, field.type, files.num_rows))


def _files_to_open(files: pa.Table) -> list[int]:
    """Return the files to open: files without a row count in the log, and a selection of others.

    The proof reads all files, and detects any file that differs from the log.
    """
    unknown = np.flatnonzero(files["rows"].is_null().to_numpy())
    spread = np.linspace(0, files.num_rows - 1, min(files.num_rows, _MIN_OPENED))
    return [int(number) for number in np.union1d(unknown, spread.astype(np.int64))]


def _reasons(transfer: Transfer, before: Definition) -> Iterator[str]:
    if not transfer.target.format.external_files:
        yield "a table of the new format cannot reference files outside its own folder"
    if transfer.files["deletes"].null_count < transfer.files.num_rows:
        yield "row-level deletes would be lost, and deleted rows would reappear"
    if transfer.definition.renamed:
        yield transfer.definition.renamed
    if transfer.files["partition"].null_count:
        yield "files contain rows of several partitions"
    cut_by = (f.name for f in transfer.definition.partition)
    unrepresentable = [
        name for name in cut_by if _is_unrepresentable(file_stats.partition(transfer.files, name))
    ]
    if unrepresentable:
        yield (
            f"partition field {unrepresentable[0]} has an empty string, NaN or infinity in a value"
        )
    if setting := find_rebasing(transfer.spark.conf.get, _TIMES):
        yield f"{setting} in the session changes dates or timestamps"
    kept = {f.name for f in transfer.definition.partition}
    lost = [f.name for f in before.partition if f.name not in kept]
    if lost and not before.whole:
        yield f"{lost[0]} is not in the files, and not a partition field of the new table"


def _is_unrepresentable(values: pa.Array) -> bool:
    unrepresentable = pa.scalar(False)  # noqa: FBT003
    # an empty text is null in Delta, and JSON has no infinity
    if has_nan(values.type):
        unrepresentable = pc.any(pc.invert(pc.is_finite(values)))
    elif is_text(values.type):
        unrepresentable = pc.any(pc.equal(values, ""))
    return bool(unrepresentable.as_py())


def _check_footers(
    transfer: Transfer,
    before: Definition,
    opened: Sequence[int],
    footers: Iterable[tuple[int, pq.FileMetaData]],
) -> Iterator[tuple[int, pq.FileMetaData]]:
    """Check the columns of files, once per distinct schema, and yield size and footer.

    Raises:
        UnsupportedError: The new table would read a file differently, or the file has deleted rows.
    """
    sample = transfer.files.take(pa.array(opened, pa.int64()))
    entries = zip(sample["path"].to_pylist(), sample["rows"].to_pylist(), footers, strict=True)
    partition = {f.source[0] for f in before.partition}
    seen: set[str] = set()
    for path, rows, (size, footer) in entries:
        if rows is not None and rows != footer.num_rows:
            raise UnsupportedError(
                f"{path} has {show_count(footer.num_rows, 'rows')}, {rows} of them live: row-level "
                "deletes would be lost"
            )
        # the first line contains the memory address of the object
        schema = str(footer.schema).partition("\n")[2] + str(sorted(footer.metadata or {}))
        if schema not in seen:
            seen.add(schema)
            reason = find_mismatch(footer, before.columns, partition)
            if reason is None and transfer.target.format.field_ids and has_ids(footer):
                reason = "its columns have field ids, by which the new table would resolve them"
            if reason is not None:
                raise UnsupportedError(f"{path} cannot be shared: {reason}")
        yield size, footer


def adopt_files(transfer: Transfer, pending: Snapshot, adoptable: Shared) -> tuple[Carried, ...]:
    """Return the shared files, staged for the new table.

    Raises:
        UnsupportedError: The format cannot reference the files.
    """
    if not adoptable.uris:
        return ()
    files = replace(transfer, files=adoptable.files).files_as(pending)
    written = transfer.target.adopt(pending, files, adoptable.uris)
    field = files.schema.field("path")
    named = replace_column(files, field, pa.array(list(written.paths), pa.string()))
    staged_files = transfer.target.stage(pending, written, named)
    ids = sorted(set(files["layout"].drop_null().to_pylist()))
    kept = (transfer.snapshot.layouts.get(layout_id) for layout_id in ids)
    return (Carried(staged_files, tuple(layout for layout in kept if layout is not None)),)
