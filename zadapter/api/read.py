"""``read`` and ``files``: the rows of one version, and the files that may hold matching rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend.contract import Backend, Factory, is_versioned
from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts, leaves, quote
from zadapter.base.phases import phase
from zadapter.base.translate_errors import translates_errors
from zadapter.errors import UnsupportedError
from zadapter.planning.options import check_flags, check_table, check_version, check_where
from zadapter.predicates.predicate import Predicate
from zadapter.predicates.predicate import columns as columns_of
from zadapter.predicates.pruning import matching
from zadapter.spark import footer_reader
from zadapter.spark.clone import BY_BOUNDS, UNPUSHED, scratch, set_all, to_rows
from zadapter.spark.jobs import call
from zadapter.spark.jvm.gateway import analyzed_plan
from zadapter.spark.opening import OpenTable, open_table
from zadapter.spark.where import condition, without_rows
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot


@translates_errors
def read(
    table: str | PathLike[str],
    *,
    where: str | None = None,
    version: int | datetime | None = None,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the rows of one version of *table* that match *where*.

    The DataFrame reads only files that may contain matching rows.

    Example:
        ```python
        zadapter.read("lake/visits", where="user_id < 100", version=1).show(5)
        ```

    Args:
        table: A path or an identifier.
        where: A condition in Spark SQL. It prunes files before Spark plans the scan.
        version: A version number or a ``datetime``, for formats whose versions zadapter manages.
            Defaults to the current version. A time without a zone is in this machine's zone.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Raises:
        UsageError: The table, a column or the version does not exist.
        UnsupportedError: *version* is given, but the table's format keeps its own versions.
        VersionExpiredError: Files of the version may be deleted.
        ForeignChangeError: Files of the version were changed outside the log.
    """
    check_where(where)
    check_version(version)
    with (
        open_table(check_table(table), backend, spark, kept=True) as found,
        call("read", check_table(table), found.user_session),
        phase("plan", check_table(table)) as step,
    ):
        session, opened = found.user_session, found.backend
        snapshot = _snapshot(found, version)
        candidates = prune_files(opened, snapshot, where, session, later=True)
        step.note(version=snapshot.version, **file_stats.totals([candidates.files]))
        set_all(found.spark, BY_BOUNDS if candidates.on_floats else {})
        rows = opened.read(snapshot, candidates.certain)
        if candidates.doubtful.num_rows:
            with scratch(session) as unpushed:
                set_all(unpushed, UNPUSHED)
                others = found.factory(unpushed).read(snapshot, candidates.doubtful)
            rows = rows.union(others) if candidates.certain.num_rows else others
        rows = rows.select(*(F.col(quote((name,))) for name in snapshot.schema.names))
    # the settings of the clones apply to the scans, those of the user's session to all else
    rows = to_rows(session, analyzed_plan(rows))
    return rows if where is None else rows.where(where)


@translates_errors
def files(
    table: str | PathLike[str],
    *,
    where: str | None = None,
    version: int | datetime | None = None,
    row_groups: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> pa.Table:
    """Return the files of one version of *table* that may contain rows matching *where*.

    Example:
        ``zadapter.files("lake/visits", where="user_id < 100")``

    Args:
        table: A path or an identifier.
        where: A condition in Spark SQL, such as ``"user_id = 7"``.
        version: See :func:`read`.
        row_groups: Also read footers, and return the row groups that may contain matching rows.
        backend: The format, or a backend's class. Detected by default.
        spark: A Spark session. Defaults to the running session, or a new one.

    Returns:
        A table with the location of each file (``path``, as DuckDB, Polars and pyarrow accept it),
        its bytes (``size``), its ``rows`` and, on request, the numbers of its ``row_groups``.

    Raises:
        UsageError: The table, a column or the version does not exist.
        UnsupportedError: Files have row-level deletes, or row groups cannot be found by names.
    """
    check_where(where)
    check_version(version)
    check_flags(row_groups=row_groups)
    with (
        open_table(check_table(table), backend, spark) as found,
        call("files", check_table(table), found.user_session),
        phase("plan", check_table(table)) as step,
    ):
        session, opened = found.user_session, found.backend
        snapshot = _snapshot(found, version)
        candidates = prune_files(opened, snapshot, where, session, later=False)
        matching_files = candidates.files
        step.note(version=snapshot.version, **file_stats.totals([matching_files]))
        if matching_files["deletes"].null_count < matching_files.num_rows:
            raise UnsupportedError(
                f"{table}: some files have row-level deletes, which only readers of "
                f"{snapshot.format} apply; use zadapter.read()"
            )
        uris = opened.uris(snapshot, matching_files["path"].to_pylist())
        paths = [_location(uri) for uri in uris]
        columns = {
            "path": pa.array(paths, pa.string()),
            "size": matching_files["size"],
            "rows": matching_files["rows"],
        }
        if row_groups:
            _refuse_renaming(opened, snapshot)
            kept = _row_groups(snapshot, matching_files, uris, candidates.predicate, session)
            columns["row_groups"] = pa.array(kept, pa.list_(pa.int32()))
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files that may hold rows matching a condition.

    Attributes:
        certain: Files in which Spark's reader finds all matching rows.
        doubtful: Files in which Spark's reader could miss NaN values: it prunes by bounds, and some
            writers exclude NaN from bounds.
        on_floats: Whether the condition references floating-point columns.
        predicate: The condition; None for no condition.
    """

    certain: pa.Table
    doubtful: pa.Table
    on_floats: bool
    predicate: Predicate | None

    @property
    def files(self) -> pa.Table:
        """All files that may hold matching rows."""
        return pa.concat_tables([self.certain, self.doubtful])


def prune_files(
    opened: Backend, snapshot: Snapshot, where: str | None, spark: SparkSession, *, later: bool
) -> Pruned:
    """Return the files that may hold rows matching *where*.

    Args:
        opened: The table's backend.
        snapshot: The version that is read.
        where: The condition; None: all files.
        spark: The session that evaluates the condition.
        later: Whether the condition is evaluated at a later time.

    Raises:
        UsageError: The condition is invalid for the table.
    """
    if where is None:
        live_files = opened.files(snapshot)
        return Pruned(live_files, live_files.slice(0, 0), on_floats=False, predicate=None)
    rows = without_rows(opened, snapshot, spark)
    analysed = condition(where, rows, snapshot.schema, later=later)
    floats = [
        parts
        for parts, type_ in leaves(snapshot.schema)
        if parts[0] in analysed.columns and has_nan(type_)
    ]
    live_files = opened.files(snapshot, tuple(sorted({*columns_of(analysed.predicate), *floats})))
    candidates = live_files.filter(pa.array(matching(analysed.predicate, live_files)))
    may_hide = pa.array([False] * candidates.num_rows, pa.bool_())
    for parts in floats:
        may_hide = pc.or_(may_hide, _may_hide(candidates, parts))
    certain = candidates.filter(pc.invert(may_hide))
    doubtful = candidates.filter(may_hide)
    return Pruned(certain, doubtful, on_floats=bool(floats), predicate=analysed.predicate)


def _may_hide(files: pa.Table, parts: NameParts) -> pa.Array:
    """Return which files may have footer bounds that exclude NaN values of a column.

    Files with a layout of zadapter have no such bounds: parquet-java orders NaN as the largest.
    """
    stats = file_stats.column(files, parts)
    if stats is None:
        return pc.is_null(files["layout"].combine_chunks())
    no_nans = pc.equal(pc.struct_field(stats, "nans"), 0).fill_null(False)  # noqa: FBT003
    return pc.invert(pc.or_(no_nans, pc.is_valid(files["layout"].combine_chunks())))


def _refuse_renaming(opened: Backend, snapshot: Snapshot) -> None:
    if not is_versioned(opened):
        raise UnsupportedError(
            f"{snapshot.table}: {snapshot.format} files may have former column names, so "
            "row_groups= is not supported; omit it"
        )


def _row_groups(
    snapshot: Snapshot,
    matching_files: pa.Table,
    uris: Sequence[str],
    predicate: Predicate | None,
    spark: SparkSession,
) -> list[list[int]]:
    """Return the numbers of the row groups of each file that may hold matching rows."""
    columns = () if predicate is None else columns_of(predicate)
    groups = footer_reader.read_row_group_table(spark, snapshot, matching_files, uris, columns)
    every = np.ones(groups.table.num_rows, np.bool_)
    may = every if predicate is None else matching(predicate, groups.table)
    return [np.flatnonzero(may[groups.file_of == n]).tolist() for n in range(len(uris))]


def _snapshot(table: OpenTable, version: int | datetime | None) -> Snapshot:
    backend = table.backend
    if version is None:
        return table.snapshot()
    if not is_versioned(backend):
        raise UnsupportedError(
            f"{table.name}: zadapter reads versions of plain Parquet tables only; use VERSION AS "
            "OF or TIMESTAMP AS OF in Spark"
        )
    if isinstance(version, datetime):
        version = backend.version_at(table.name, version)
    return backend.at(table.name, version)


def _location(uri: str) -> str:
    """Return a URI in the form that readers other than Spark accept."""
    parsed = urlparse(uri)
    location = unquote(parsed.path) if parsed.scheme == "file" else unquote(uri)
    return location.replace("s3a://", "s3://", 1) if parsed.scheme == "s3a" else location
