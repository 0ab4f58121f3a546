"""Lookup of Delta tables, and refusal of tables that cannot be rewritten safely."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from zadapter.base.java_errors import causes, first_line
from zadapter.base.locations import reachable, remove_new_warehouse
from zadapter.errors import SessionError, UnknownTableError, UnsupportedError
from zadapter.spark.compat.s3a import advise_jar, hadoop_of_jvm
from zadapter.spark.jvm import spark_names
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.table import logs
from zadapter_delta.table.features import CATALOG_MANAGED, REDIRECT, features, find_untested
from zadapter_delta.table.side_files import Store

_BY_PATH = re.compile(r"(?i)delta\.`(?P<path>(?:[^`]|``)+)`\Z")
_OF_PATHS = re.compile(r"[/\\:]")
_UNSUPPORTED = re.compile(r"DELTA_\w*(PROTOCOL|FEATURE|CATALOG_MANAGED)|min(Reader|Writer)Version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Log of a table, and its catalog entry if it has one.

    Attributes:
        log: Delta's ``DeltaLog``, to read; commits go through :func:`logs.load_shared`.
        catalog_table: Spark's ``Option[CatalogTable]``.
        side_files: The files beside the table.
    """

    log: JavaObject
    catalog_table: JavaObject
    side_files: Store


def locate(jvm: Jvm, table: str) -> Located:
    """Find *table*: a path, ``delta.`path```, or an identifier in the session's catalog.

    Raises:
        UnknownTableError: There is no such table, or it is not a Delta table.
    """
    path = by_path(table)
    with remove_new_warehouse(jvm.spark):
        located = None if path and _OF_PATHS.search(path) else _in_catalog(jvm, table)
    return _at_path(jvm, table, path or table) if located is None else located


def by_path(table: str) -> str | None:
    """Return the path that *table* names, or None if it may be an identifier."""
    match = _BY_PATH.match(table)
    if match:
        return match["path"].replace("``", "`")
    return table if _OF_PATHS.search(table) else None


@contextmanager
def _translate_errors(jvm: Jvm, table: str) -> Iterator[None]:
    """Translate Delta's refusals of a table.

    Raises:
        SessionError: The session lacks the jar of a file system.
        UnsupportedError: Delta does not support the table's protocol or features.
    """
    try:
        yield
    except Exception as error:
        reason = next((line for line in causes(error) if _UNSUPPORTED.search(line)), None)
        if any("UnsupportedFileSystemException" in line for line in causes(error)):
            raise SessionError(
                f"{table}: {first_line(error)}; {advise_jar(hadoop_of_jvm(jvm.root))}"
            ) from error
        if reason is None:
            raise
        raise UnsupportedError(
            f"{table}: this Delta version cannot rewrite it: {reason.splitlines()[0]}; use a "
            "release or an engine that can, or drop the feature there by ALTER TABLE ... DROP "
            "FEATURE"
        ) from error


def _at_path(jvm: Jvm, table: str, path: str) -> Located:
    with _translate_errors(jvm, table):
        log = log_of(jvm, path)
        _refuse_elsewhere(jvm, table, log, jvm.path(reachable(jvm.root, jvm.session, path)))
        log = logs.refresh(jvm, log, jvm.option())
    if not log.tableExists():
        file_system = log.dataPath().getFileSystem(log.newDeltaHadoopConf())
        state = "has no _delta_log" if file_system.exists(log.dataPath()) else "does not exist"
        catalog = "" if re.search(r"[/\\:]", path) else "the catalog does not contain it, and "
        raise UnknownTableError(f"{table}: no Delta table found; {catalog}{log.dataPath()} {state}")
    return Located(log=log, catalog_table=jvm.option(), side_files=Store(jvm, log))


def log_of(jvm: Jvm, path: str) -> JavaObject:
    """Return Delta's ``DeltaLog`` of the folder *path*."""
    return jvm.delta.DeltaLog.forTable(jvm.session, reachable(jvm.root, jvm.session, path))


def _in_catalog(jvm: Jvm, table: str) -> Located | None:
    state = jvm.session.sessionState()
    identifier, other = spark_names.in_session_catalog(jvm.spark, table)
    if other is not None:
        is_view = "view" in other
        raise UnknownTableError(f"{table} is {other}, not a Delta table", exists=is_view)
    if identifier is None or not state.catalog().tableExists(identifier):
        return None
    entry = state.catalog().getTableMetadata(identifier)
    table_type = entry.tableType().name()
    if table_type == "VIEW":
        raise UnknownTableError(f"{table} is a view; pass its underlying table", exists=True)
    provider = entry.provider().getOrElse(None) if entry.provider().isDefined() else "unknown"
    if str(provider).lower() != "delta":
        raise UnknownTableError(f"{table} is a {provider} table, not a Delta table")
    with _translate_errors(jvm, table):
        log = jvm.delta.DeltaLog.forTable(jvm.session, entry)
        # a catalog has an escaped URI
        _refuse_elsewhere(jvm, table, log, jvm.root.org.apache.hadoop.fs.Path(entry.location()))
        log = logs.refresh(jvm, log, jvm.option(entry))
    if not log.tableExists():
        raise UnknownTableError(
            f"{table} is in the catalog, but {log.dataPath()} has no _delta_log",
            exists=True,
        )
    return Located(log=log, catalog_table=jvm.option(entry), side_files=Store(jvm, log))


def reload(jvm: Jvm, located: Located) -> Located:
    """Look up a table once more: another one may have replaced it."""
    log = logs.load_shared(jvm, located.log, located.catalog_table)
    return replace(located, log=logs.refresh(jvm, log, located.catalog_table))


def current(jvm: Jvm, table: str, located: Located) -> JavaObject:
    """Return the newest snapshot of a table, after checking that it may be rewritten.

    Raises:
        UnsupportedError: The table's protocol or features forbid rewrites; the message names them.
    """
    with _translate_errors(jvm, table):
        snapshot = located.log.unsafeVolatileSnapshot()
        located.log.protocolWrite(snapshot.protocol())
    _refuse(table, snapshot)
    return snapshot


def _refuse_elsewhere(jvm: Jvm, table: str, log: JavaObject, asked: JavaObject) -> None:
    """Refuse a table that Delta looks for in another folder (``redirect``), unlike its locks."""
    inner = asked.getFileSystem(log.newDeltaHadoopConf()).makeQualified(
        jvm.root.org.apache.hadoop.fs.Path(asked, "_delta_log")
    )
    there = inner.getParent()  # as Delta has it, also of a bucket
    if not there.equals(log.dataPath()):
        raise UnsupportedError(f"{table} redirects to {log.dataPath()}; pass that table")


def _refuse(table: str, snapshot: JavaObject) -> None:
    stated = json.loads(snapshot.protocol().json())["protocol"]
    properties = json.loads(snapshot.metadata().json())["metaData"].get("configuration", {})
    if features(stated) & CATALOG_MANAGED:
        raise UnsupportedError(
            f"{table} is a catalog-managed table; only its catalog can commit maintenance to it"
        )
    if any(key.startswith(REDIRECT) for key in properties):
        raise UnsupportedError(f"{table} redirects to another table; pass that table")
    if names := find_untested(stated):
        raise UnsupportedError(
            f"{table} has table features that zadapter was not tested with: {', '.join(names)}; "
            "use Delta's own OPTIMIZE, or drop a feature that the table does not need by ALTER "
            "TABLE ... DROP FEATURE"
        )
