"""The files that hold the rows appended to a table since one of its versions.

A commit that states that it changes no row, such as a compaction, may join appended rows with
others in one file. So the rows are read from the files of the version before it.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.quantities import show_count
from zadapter.errors import UnsupportedError
from zadapter.migration.copy import Lot
from zadapter.table.file_stats import live_rows

MIGRATE_AGAIN = "migrate to another target, and drop this one"

Entries = set[tuple[str, str | None, int | None]]
"""Path, row-level deletes and live rows of files."""


def find_appended(since: Lot, head: Lot, at: Callable[[int], Lot]) -> list[Lot]:
    """Return the files with the rows appended since a version, each in a version that has it.

    The last lot belongs to the newest version, and has all files that are still live.

    Args:
        since: The version, and its files.
        head: The newest version, and its files.
        at: Returns a version in between by its number, and its files.

    Raises:
        UnsupportedError: There are changes other than appends.
    """
    known, lots = entries(since.files), list[Lot]()
    now = entries(head.files)
    # without a removed file, every row of a file that is new was appended
    for before, after in _rewrites(since, head) if known - now else ():
        old, new = at(before), at(after)
        lots.append(Lot(old.snapshot, _new(old, known, since)))
        _check_rows(old, new)
        known = entries(new.files)
    still = [lot.files.filter(_are(lot.files, now)) for lot in lots]
    gone = [Lot(lot.snapshot, lot.files.filter(pc.invert(_are(lot.files, now)))) for lot in lots]
    last = pa.concat_tables([*still, _new(head, known, since)])
    return [*(lot for lot in gone if lot.files.num_rows), Lot(head.snapshot, last)]


def entries(files: pa.Table) -> Entries:
    """Return what identifies files with the same rows."""
    columns = (files[name].to_pylist() for name in ("path", "deletes", "rows"))
    return set(zip(*columns, strict=True))


def _rewrites(since: Lot, head: Lot) -> Iterator[tuple[int, int]]:
    """Yield the versions around each run of commits that change no row."""
    start = end = None
    for before, after in head.snapshot.rewritten(since.snapshot.version or 0):
        if start is not None and end is not None and before != end:
            yield start, end
        start, end = before if start is None or before != end else start, after
    if start is not None and end is not None:
        yield start, end


def _new(lot: Lot, known: Entries, since: Lot) -> pa.Table:
    """Return the files that are not known yet, after checking that all others are still there.

    Raises:
        UnsupportedError: Some were removed, or lost rows.
    """
    if removed := known - entries(lot.files):
        raise UnsupportedError(
            f"{lot.snapshot.table} has changes other than appends since version "
            f"{since.snapshot.version}: {show_count(len(removed), 'files')} removed, or without "
            f"some rows, first: {min(path for path, _, _ in removed)}; {MIGRATE_AGAIN}"
        )
    return lot.files.filter(pc.invert(pc.is_in(lot.files["path"], _paths(known))))


def _check_rows(old: Lot, new: Lot) -> None:
    """Check that a commit that states that it changes no row keeps their number, where known.

    Raises:
        UnsupportedError: It does not.
    """
    before, after = live_rows(old.files), live_rows(new.files)
    if before is not None and after is not None and before != after:
        raise UnsupportedError(
            f"version {new.snapshot.version} of {new.snapshot.table} states that it changes no "
            f"row, but has {after} rows, and version {old.snapshot.version} has {before}; "
            f"{MIGRATE_AGAIN}"
        )


def _are(files: pa.Table, among: Entries) -> pa.Array:
    columns: Sequence[list[object]] = [files[n].to_pylist() for n in ("path", "deletes", "rows")]
    return pa.array([entry in among for entry in zip(*columns, strict=True)], pa.bool_())


def _paths(of: Entries) -> pa.Array:
    return pa.array([path for path, _, _ in of], pa.string())
