"""``read`` and ``files``: the rows of one version, or the files that may hold them."""

from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from itertools import chain
from os import PathLike
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend import Backend, Factory, Versioned
from zadapter.errors import UnsupportedError
from zadapter.failures import explained
from zadapter.filestats import replaced
from zadapter.footers import file_table
from zadapter.names import quote
from zadapter.predicates import columns as columns_of
from zadapter.pruning import matching
from zadapter.spark import footers
from zadapter.table import Snapshot
from zadapter.verbs.asking import open_table
from zadapter.verbs.filtering import check_types, condition
from zadapter.verbs.question import named


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
    opened = factory(session)
    snapshot = _snapshot(opened, named(table), version)
    found = pruned(opened, snapshot, where, session)
    rows = opened.read(snapshot, found).select(*(F.col(quote((n,))) for n in snapshot.schema.names))
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
    with closing(factory(session)) as opened:
        snapshot = _snapshot(opened, named(table), version)
        found = pruned(opened, snapshot, where, session)
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
            kept = _row_groups(snapshot, found, uris, where, session)
            columns["row_groups"] = pa.array(kept, pa.list_(pa.int32()))
    return pa.table(columns)


def pruned(opened: Backend, snapshot: Snapshot, where: str | None, spark: SparkSession) -> pa.Table:
    """Return the files that may hold rows that *where* is true for.

    Raises:
        UsageError: The condition makes no sense for the table.
    """
    if where is None:
        return opened.files(snapshot)
    predicate = condition(where, snapshot.schema, spark)
    found = opened.files(snapshot, tuple(sorted(columns_of(predicate))))
    if found.num_rows:
        check_types(opened.read(snapshot, found.slice(0, 1)), where)
    return found.filter(pa.array(matching(predicate, found)))


def _refuse_renaming(opened: Backend, snapshot: Snapshot) -> None:
    if not isinstance(opened, Versioned):
        raise UnsupportedError(
            f"{snapshot.table}: a {snapshot.format} file may know columns by names of the past; "
            "leave row_groups out, and readers of the format find them"
        )


def _row_groups(
    snapshot: Snapshot, found: pa.Table, uris: Sequence[str], where: str | None, spark: SparkSession
) -> list[list[int]]:
    """Return the numbers of the row groups of each file that may hold matching rows."""
    read = footers.read_row_groups(spark, uris)
    if where is None:
        return [list(range(len(groups))) for groups in read]
    of_file = np.repeat(np.arange(len(read)), [len(groups) for groups in read])
    every = chain.from_iterable(read)
    groups = file_table(snapshot, {str(number): group for number, group in enumerate(every)})
    values = found["partition"].combine_chunks().take(pa.array(of_file))
    groups = replaced(groups, found.schema.field("partition"), values)
    may = matching(condition(where, snapshot.schema, spark), groups)
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
    return unquote(parsed.path) if parsed.scheme == "file" else unquote(uri)
