"""``read`` and ``files``: the rows of one version, or the files that may hold them."""

from contextlib import closing
from datetime import datetime
from os import PathLike, fspath
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from zadapter.backend import Backend, Factory, Versioned
from zadapter.errors import UnsupportedError
from zadapter.names import quote
from zadapter.predicates import columns as columns_of
from zadapter.pruning import matching
from zadapter.sql import parse
from zadapter.table import Snapshot
from zadapter.verbs.asking import open_table
from zadapter.verbs.preparing import check_types

TIMEZONE = "spark.sql.session.timeZone"


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
            the current one.
        backend: The format, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Raises:
        UsageError: There is no such table, column or version.
        VersionExpiredError: The version's files may be gone.
        ForeignChangeError: Its files were changed behind the log.
    """
    session, factory = open_table(str(fspath(table)), backend, spark)
    opened = factory(session)
    snapshot = _snapshot(opened, str(fspath(table)), version)
    found = pruned(opened, snapshot, where, session)
    rows = opened.read(snapshot, found).select(*(F.col(quote((n,))) for n in snapshot.schema.names))
    return rows if where is None else rows.where(where)


def files(
    table: str | PathLike[str],
    *,
    where: str | None = None,
    version: int | datetime | None = None,
    backend: str | Factory | None = None,
    spark: SparkSession | None = None,
) -> pa.Table:
    """Return the files of one version of *table* that may hold rows that *where* is true for.

    Args:
        table: A path or an identifier.
        where: A condition in Spark's SQL.
        version: As for :func:`read`.
        backend: The format, or a backend's class; None finds it out.
        spark: A session; None is the running one, or a new one.

    Returns:
        Where each file lies (``path``, as DuckDB, Polars and pyarrow take it), its bytes
        (``size``) and ``rows``.

    Raises:
        UsageError: There is no such table, column or version.
        UnsupportedError: Some rows of the files are deleted, which the files alone do not tell.
    """
    session, factory = open_table(str(fspath(table)), backend, spark)
    with closing(factory(session)) as opened:
        snapshot = _snapshot(opened, str(fspath(table)), version)
        found = pruned(opened, snapshot, where, session)
        if found["deletes"].null_count < found.num_rows:
            raise UnsupportedError(
                f"{table}: rows of some files are deleted, and only readers of "
                f"{snapshot.format} know which; read it with zadapter.read()"
            )
        paths = [_location(opened.uri(snapshot, path)) for path in found["path"].to_pylist()]
        columns = {
            "path": pa.array(paths, pa.string()),
            "size": found["size"],
            "rows": found["rows"],
        }
    return pa.table(columns)


def pruned(opened: Backend, snapshot: Snapshot, where: str | None, spark: SparkSession) -> pa.Table:
    """Return the files that may hold rows that *where* is true for.

    Raises:
        UsageError: The condition makes no sense for the table.
    """
    if where is None:
        return opened.files(snapshot)
    zone = spark.conf.get(TIMEZONE) or "UTC"
    predicate = parse(where, snapshot.schema, timezone=zone)
    found = opened.files(snapshot, tuple(sorted(columns_of(predicate))))
    if found.num_rows:
        check_types(opened.read(snapshot, found.slice(0, 1)), where)
    return found.filter(pa.array(matching(predicate, found)))


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
