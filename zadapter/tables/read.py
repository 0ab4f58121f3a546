"""``read`` and ``files``: the rows of one version, or the files that may hold them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from os import PathLike
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.arguments.options import named
from zadapter.arguments.resolve import open_table
from zadapter.arguments.where import condition
from zadapter.backend.contract import Backend, Factory, Versioned
from zadapter.base.names import Parts, leaves, quote
from zadapter.base.translate_errors import explained
from zadapter.errors import UnsupportedError
from zadapter.filters.predicate import Predicate
from zadapter.filters.predicate import columns as columns_of
from zadapter.filters.pruning import matching
from zadapter.spark import footers
from zadapter.spark.clone import BY_BOUNDS, UNPUSHED, planned, scratch, set_all
from zadapter.table import file_stats
from zadapter.table.file_stats import replaced
from zadapter.table.footers import file_table
from zadapter.table.snapshot import Snapshot


@explained
def read(
    table: str | PathLike[str],
    *,
    where: str | None = None,
    version: int | datetime | None = None,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Return the rows of exactly one version of *table*, from the files that may hold them.

    Args:
        table: A path or an identifier.
        where: A condition in Spark's SQL; files are left out by it before Spark sees them.
        version: A version, or a time, for formats that zadapter keeps the versions of; None is
            the current one. A time without a zone is in this machine's.
        backend: The format, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Raises:
        UsageError: There is no such table, column or version.
        VersionExpiredError: The version's files may be gone.
        ForeignChangeError: Its files were changed behind the log.
    """
    session, factory = open_table(named(table), backend, spark)
    with scratch(session) as own:
        opened = factory(own)
        snapshot = _snapshot(opened, named(table), version)
        found = pruned(opened, snapshot, where, session, later=True)
        set_all(own, BY_BOUNDS if found.on_floats else {})
        rows = opened.read(snapshot, found.certain)
        if found.doubtful.num_rows:
            with scratch(session) as unpushed:
                set_all(unpushed, UNPUSHED)
                others = factory(unpushed).read(snapshot, found.doubtful)
            rows = rows.union(others) if found.certain.num_rows else others
        rows = rows.select(*(F.col(quote((name,))) for name in snapshot.schema.names))
    # files are read by the settings of the clones, all else is done by those of the user's session
    rows = planned(session, rows._jdf.queryExecution().analyzed())  # noqa: SLF001
    return rows if where is None else rows.where(where)


@explained
def files(
    table: str | PathLike[str],
    *,
    where: str | None = None,
    version: int | datetime | None = None,
    row_groups: bool = False,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> pa.Table:
    """Return the files of one version of *table* that may hold rows that *where* is true for.

    Args:
        table: A path or an identifier.
        where: A condition in Spark's SQL.
        version: As for :func:`read`.
        row_groups: Look into the footers of these files, too, for the row groups that may hold
            such rows.
        backend: The format, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Returns:
        Where each file lies (``path``, as DuckDB, Polars and pyarrow take it), its bytes
        (``size``) and ``rows``; the numbers of its ``row_groups``, where they were asked for.

    Raises:
        UsageError: There is no such table, column or version.
        UnsupportedError: Some rows of the files are deleted, which the files alone do not tell; or
            row groups are asked for, and the format knows columns by other means than names.
    """
    session, factory = open_table(named(table), backend, spark)
    with scratch(session) as own, closing(factory(own)) as opened:
        snapshot = _snapshot(opened, named(table), version)
        asked = pruned(opened, snapshot, where, session, later=False)
        found = asked.files
        if found["deletes"].null_count < found.num_rows:
            raise UnsupportedError(
                f"{table}: rows of some files are deleted, and only readers of "
                f"{snapshot.format} know which; read it with zadapter.read()"
            )
        uris = opened.uris(snapshot, found["path"].to_pylist())
        paths = [_location(uri) for uri in uris]
        columns = {
            "path": pa.array(paths, pa.string()),
            "size": found["size"],
            "rows": found["rows"],
        }
        if row_groups:
            _refuse_renaming(opened, snapshot)
            kept = _row_groups(snapshot, found, uris, asked.predicate, session)
            columns["row_groups"] = pa.array(kept, pa.list_(pa.int32()))
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class Pruned:
    """Files that may hold rows that a condition is true for.

    Attributes:
        certain: Those that Spark's reader finds such rows in.
        doubtful: Those in which it would pass over NaN: it trusts bounds, and some writers leave
            NaN out of them.
        on_floats: Whether the condition is about floats.
        predicate: The condition, if there is one.
    """

    certain: pa.Table
    doubtful: pa.Table
    on_floats: bool
    predicate: Predicate | None

    @property
    def files(self) -> pa.Table:
        """All of them."""
        return pa.concat_tables([self.certain, self.doubtful])


def pruned(
    opened: Backend, snapshot: Snapshot, where: str | None, spark: SparkSession, *, later: bool
) -> Pruned:
    """Return the files that may hold rows that *where* is true for.

    Args:
        opened: The table's backend.
        snapshot: The version that is read.
        where: The condition, if there is one.
        spark: The session that evaluates it.
        later: Whether it does so at another time than this one.

    Raises:
        UsageError: The condition makes no sense for the table.
    """
    if where is None:
        every = opened.files(snapshot)
        return Pruned(every, every.slice(0, 0), on_floats=False, predicate=None)
    nothing = file_stats.schema({}, dict(snapshot.partition)).empty_table()
    like = opened.read(snapshot, nothing)._jdf.queryExecution().analyzed()  # noqa: SLF001
    asked = condition(where, planned(spark, like), snapshot.schema, later=later)
    floats = [
        parts
        for parts, type_ in leaves(snapshot.schema)
        if parts[0] in asked.columns and pa.types.is_floating(type_)
    ]
    every = opened.files(snapshot, tuple(sorted({*columns_of(asked.predicate), *floats})))
    found = every.filter(pa.array(matching(asked.predicate, every)))
    hiding = pa.array([False] * found.num_rows, pa.bool_())
    for parts in floats:
        hiding = pc.or_(hiding, _may_hide(found, parts))
    certain = found.filter(pc.invert(hiding))
    doubtful = found.filter(hiding)
    return Pruned(certain, doubtful, on_floats=bool(floats), predicate=asked.predicate)


def _may_hide(files: pa.Table, parts: Parts) -> pa.Array:
    """Tell of which files the footers may have bounds that leave NaN in a column out.

    Files that zadapter laid out have none that do: by parquet-java's order NaN is the largest.
    """
    stats = file_stats.column(files, parts)
    if stats is None:
        return pc.is_null(files["layout"].combine_chunks())
    none = pc.equal(pc.struct_field(stats, "nans"), 0).fill_null(False)  # noqa: FBT003
    return pc.invert(pc.or_(none, pc.is_valid(files["layout"].combine_chunks())))


def _refuse_renaming(opened: Backend, snapshot: Snapshot) -> None:
    if not isinstance(opened, Versioned):
        raise UnsupportedError(
            f"{snapshot.table}: a {snapshot.format} file may know columns by names of the past; "
            "leave row_groups out, and readers of the format find them"
        )


def _row_groups(
    snapshot: Snapshot,
    found: pa.Table,
    uris: Sequence[str],
    predicate: Predicate | None,
    spark: SparkSession,
) -> list[list[int]]:
    """Return the numbers of the row groups of each file that may hold matching rows."""
    read = footers.read_row_groups(spark, uris)
    if predicate is None:
        return [list(range(len(groups))) for groups in read]
    of_file = np.repeat(np.arange(len(read)), [len(groups) for groups in read])
    every = chain.from_iterable(read)
    groups = file_table(snapshot, {str(number): group for number, group in enumerate(every)})
    values = found["partition"].combine_chunks().take(pa.array(of_file))
    groups = replaced(groups, found.schema.field("partition"), values)
    may = matching(predicate, groups)
    return [np.flatnonzero(may[of_file == number]).tolist() for number in range(len(read))]


def _snapshot(opened: Backend, table: str, version: int | datetime | None) -> Snapshot:
    if version is None:
        return opened.snapshot(table)
    if not isinstance(opened, Versioned):
        raise UnsupportedError(
            f"{table}: Spark reads older versions of this format, "
            "with VERSION AS OF or TIMESTAMP AS OF"
        )
    return opened.at(table, version)


def _location(uri: str) -> str:
    """Return a URI as readers other than Spark take it."""
    parsed = urlparse(uri)
    location = unquote(parsed.path) if parsed.scheme == "file" else unquote(uri)
    return location.replace("s3a://", "s3://", 1) if parsed.scheme == "s3a" else location
