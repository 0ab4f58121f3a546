"""``audit``: compare the file statistics of a log with the files, and repair them."""

from dataclasses import dataclass
from os import PathLike

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from zadapter.backend.contract import Factory, is_inspected
from zadapter.base.names import join
from zadapter.base.outcome import sending
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UnsupportedError
from zadapter.inspection.comparison import (
    BYTES,
    MISSING,
    UNSOUND,
    UNSURE,
    correct_stats,
    count_unknown_bounds,
    findings,
    unreadable,
)
from zadapter.inspection.measure import file_values
from zadapter.inspection.measure.table_access import Opened, opening
from zadapter.inspection.stats_audit import FOOTERS, VALUES, Audit
from zadapter.planning.options import check_flags, check_table
from zadapter.spark import footer_reader
from zadapter.table.column_bounds import Mask, mask

_DELETES = "the file has row-level deletes, which its stats may include"
_SIZE = "the size of the file differs from the log, so it is another file"
_DOUBT = "only a comparison with the values, by deep=True, can decide a difference"


@translates_errors
def audit(
    table: str | PathLike[str],
    *,
    deep: bool = False,
    repair: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> Audit:
    """Compare the recorded bounds and counts of *table* with its files; optionally repair them.

    Example:
        ```python
        assert zadapter.audit("lake/events", deep=True).sound
        ```

    Args:
        table: A path or an identifier.
        deep: Compare with all values, which are read once. By default only footers are read.
        repair: Replace wrong and missing statistics, in one commit that changes no data. Statistics
            that are not certain are not changed.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The table does not exist.
        ConflictError: Another writer was faster than the repair; nothing was committed.
    """
    check_flags(deep=deep, repair=repair)
    with opening("audit", check_table(table), backend, spark, work="verify") as opened:
        columns = opened.columns
        every = opened.backend.files(opened.snapshot, tuple(columns))
        recorded, found, lost = _footers(opened, every)
        if deep:
            found = _read_value_stats(opened, recorded)
        lacking = opened.snapshot.without_stats | opened.snapshot.without_bounds
        differ = findings(recorded, found, tuple(columns), lacking=lacking)
        done = (
            _repair_stats(opened, recorded, found, differ) if repair else _Repair((), None, {}, "")
        )
        kinds = differ["kind"].to_pylist()
        return Audit(
            table=opened.snapshot.table,
            format=opened.snapshot.format,
            version=opened.snapshot.version,
            by=VALUES if deep else FOOTERS,
            files_audited=recorded.num_rows,
            unreadable=lost.num_rows,
            columns=tuple(map(join, columns)),
            unsound=kinds.count(UNSOUND),
            missing=kinds.count(MISSING),
            untold=count_unknown_bounds(recorded, found, tuple(columns), lacking=lacking),
            unsure=kinds.count(UNSURE),
            repaired=done.paths,
            repaired_version=done.version,
            left=done.left,
            note=done.note,
            findings=pa.concat_tables([lost, differ]),
        )


def _footers(opened: Opened, recorded: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the files that can be read, the same from their footers, and why others cannot."""
    found = footer_reader.read_file_table(opened.session, opened.snapshot, opened.uris(recorded))
    readable = pa.array(
        [number not in found.lost for number in range(recorded.num_rows)], pa.bool_()
    )
    lost = unreadable(recorded.filter(pc.invert(readable)), list(found.lost.values()))
    return recorded.filter(readable), found.table, lost


def _read_value_stats(opened: Opened, recorded: pa.Table) -> pa.Table:
    rows = opened.backend.read(opened.snapshot, recorded)
    return file_values.read_stats(rows, opened.columns, opened.row_files(recorded), recorded)


@dataclass(frozen=True)
class _Repair:
    """What was repaired, and what was left."""

    paths: tuple[str, ...]
    version: int | None
    left: dict[str, str]
    note: str


def _repair_stats(opened: Opened, recorded: pa.Table, found: pa.Table, differ: pa.Table) -> _Repair:
    """Replace the stats of files with findings, if all of their differences are certain."""
    paths = recorded["path"].combine_chunks()
    wrong = _among(paths, differ.filter(pc.not_equal(differ["kind"], UNSURE)))
    sizes = differ.filter(pc.equal(differ["what"], BYTES))
    reasons = (
        (_among(paths, differ.filter(pc.equal(differ["kind"], UNSURE))), _DOUBT),
        (_among(paths, sizes), _SIZE),
        (np.asarray(recorded["deletes"].combine_chunks().is_valid(), np.bool_), _DELETES),
    )
    left = dict[str, str]()
    sure = wrong.copy()
    for at, why in reasons:
        left |= dict.fromkeys(paths.filter(pa.array(wrong & at)).to_pylist(), why)
        sure &= ~at
    chosen = pa.array(sure)
    if not sure.any():
        return _Repair((), None, left, "")
    kept = correct_stats(recorded.filter(chosen), found.filter(chosen))
    if not is_inspected(opened.backend):
        return _Repair((), None, left, f"{opened.snapshot.format} cannot replace stats alone")
    try:
        with sending():
            version = opened.backend.restate(opened.snapshot, kept)
    except UnsupportedError as error:
        return _Repair((), None, left, str(error))
    return _Repair(tuple(kept["path"].to_pylist()), version, left, "")


def _among(paths: pa.Array, differ: pa.Table) -> Mask:
    return mask(pc.is_in(paths, differ["path"].combine_chunks()), default=False)
