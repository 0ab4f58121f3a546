"""Verification of staged files and their log entries before every commit."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.contract import Backend
from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import first_line
from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts, join, quote, split
from zadapter.base.quantities import show_count
from zadapter.base.ranks import rank
from zadapter.errors import VerificationError
from zadapter.planning.file_groups import FileGroup
from zadapter.spark.checksum import RowTotals, compute_totals
from zadapter.spark.footer_reader import read
from zadapter.table.file_stats import column
from zadapter.table.footers import Footer, file_table, to_array
from zadapter.table.snapshot import Snapshot, Staged, Written


def stage_and_check(
    backend: Backend, snapshot: Snapshot, written: Written, spark: SparkSession
) -> Staged:
    """Stage *written* with stats from the footers, and check the result against them.

    Args:
        backend: The table's backend.
        snapshot: The version that was read.
        written: The files that the backend has written.
        spark: A session.

    Raises:
        VerificationError: A file is missing or damaged, a size or a row count differs, or a bound
            is too narrow.
    """
    try:
        footers = dict(zip(written.paths, read(spark, list(written.paths.values())), strict=True))
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise VerificationError(
            f"a written file is missing or damaged: {error}; nothing was committed"
        ) from error
    staged_files = backend.stage(snapshot, written, file_table(snapshot, footers))
    check_files(snapshot, staged_files, footers)
    return staged_files


def check_files(snapshot: Snapshot, staged_files: Staged, footers: Mapping[str, Footer]) -> None:
    """Compare the log entry of each staged file with its footer.

    Args:
        snapshot: The version that was read.
        staged_files: The staged files, with the stats to be committed.
        footers: Footers of the staged files, by path.

    Raises:
        VerificationError: A size or a row count differs, or a bound is too narrow.
    """
    files = staged_files.files
    entries = zip(*(files[name].to_pylist() for name in ("path", "size", "rows")), strict=True)
    for path, size, rows in entries:
        footer = footers[path]
        if footer.size != size:
            raise VerificationError(f"{path} has {footer.size} bytes, but {size} in its log entry")
        if footer.rows != rows:
            raise VerificationError(
                f"{path} has {show_count(footer.rows, 'rows')}, but {rows} in its log entry"
            )
    ordered = [footers[path] for path in files["path"].to_pylist()]
    for child in files.schema.field("stats").type:
        _verify_bounds(snapshot, files, ordered, split(child.name))


def check_rows(group: FileGroup, written: int, live: int) -> None:
    """Refuse a rewrite that would lose or duplicate rows.

    Args:
        group: The files to be replaced.
        written: Row count of the new files, from their footers.
        live: Live rows of the files to be replaced.

    Raises:
        VerificationError: The two row counts differ.
    """
    if written != live:
        raise VerificationError(
            f"{show_count(group.files.num_rows, 'files')} of partition {group.root}, first: "
            f"{group.files['path'][0]}: live rows in the log: {live}, rows written: {written}; "
            "nothing was committed. Count the rows of these files: if the log's number is "
            "wrong, recompute its stats; if it is right, please report this"
        )


def check_contents(
    backend: Backend,
    snapshot: Snapshot,
    files: pa.Table,
    staged_files: Staged,
    observed: RowTotals | None,
) -> bool:
    """Refuse a rewrite that would change a value, by checksums of the rows read and written.

    The staged files are read once. If their checksum differs from the observed one, or none was
    observed, the files to be replaced are read again: equal checksums of 192 bits prove equal rows,
    but Spark may have observed some rows twice.

    Args:
        backend: The table's backend.
        snapshot: The version that was read.
        files: The files to be replaced.
        staged_files: The staged files.
        observed: Totals of the rows when they were read; None if it is unknown.

    Returns:
        Whether the files to be replaced were read again.

    Raises:
        VerificationError: The checksums differ, or a staged file cannot be read.
    """
    try:
        after = compute_totals(_columns(snapshot, backend.read_staged(snapshot, staged_files)))
    except Exception as error:
        reraise(error)
        raise VerificationError(
            f"{snapshot.table}: a written file cannot be read: {first_line(error)}; nothing was "
            "committed. Retry, and check the disk or the store if it fails again"
        ) from error
    if after == observed:
        return False
    before = compute_totals(_columns(snapshot, backend.read(snapshot, files)))
    if after != before:
        raise VerificationError(
            f"{snapshot.table}: the rows written differ from the rows read: {before.rows} rows of "
            f"{files.num_rows} replaced files have the checksum {before.checksum}, the "
            f"{after.rows} rows written have {after.checksum}; nothing was committed. Retry "
            "without Spark plug-ins; if it fails again, please report it"
        )
    return True


def _columns(snapshot: Snapshot, rows: DataFrame) -> DataFrame:
    """Select the table's columns, without row ids and computed partition fields."""
    return rows.select(*(F.col(quote((name,))) for name in snapshot.schema.names))


def _verify_bounds(
    snapshot: Snapshot, files: pa.Table, footers: Sequence[Footer], parts: NameParts
) -> None:
    stats = column(files, parts)
    if stats is None:
        return
    at = _path_in_file(snapshot, parts)
    footer_stats = [footer.columns.get(at) for footer in footers]
    lows = to_array([f.min if f else None for f in footer_stats], stats.type["min"].type)
    highs = to_array([f.max if f else None for f in footer_stats], stats.type["max"].type)
    if lows is None or highs is None:
        return
    low, high = pc.struct_field(stats, "min"), pc.struct_field(stats, "max")
    if has_nan(highs.type):  # NaN is not an upper bound
        highs = pc.if_else(pc.is_nan(highs), pa.scalar(None, highs.type), highs)
    for path in _narrower(files, low, lows):
        raise VerificationError(
            f"{path}: the log's min of {join(parts)} exceeds the footer's; nothing was committed. "
            "Please report this"
        )
    for path in _narrower(files, highs, high):
        raise VerificationError(
            f"{path}: the log's max of {join(parts)} is below the footer's; nothing was committed. "
            "Please report this"
        )


def _path_in_file(snapshot: Snapshot, parts: NameParts) -> str:
    return ".".join(snapshot.physical.get(parts, parts))


def _narrower(files: pa.Table, small: pa.Array, large: pa.Array) -> list[str]:
    """Return the paths of files for which both values are known and *small* > *large*."""
    ranks = rank(pa.concat_arrays([small, large])).ranks
    left, right = ranks[: len(small)], ranks[len(small) :]
    wrong = (left > right) & (left > 0) & (right > 0)
    return [str(path) for path in files["path"].filter(pa.array(wrong)).to_pylist()]
