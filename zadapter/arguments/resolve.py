"""Resolve the table, its backend, the session and the key columns before anything is written."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.arguments.options import Options
from zadapter.backend.contract import Factory
from zadapter.backend.plugins import load, names
from zadapter.base.names import Parts, join, resolve, split
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
    extra,
)
from zadapter.layout.layout import Curve, Request, orders
from zadapter.spark import object_stores
from zadapter.spark.sessions import ensure_format, running, session
from zadapter.table.format import Format
from zadapter.table.snapshot import Snapshot

_NO_KEYS = (
    (pa.types.is_struct, "a struct; pass one of its fields"),
    (pa.types.is_list, "an array; pass other columns"),
    (pa.types.is_map, "a map; pass other columns"),
    (lambda type_: not orders(type_), "of a type without min and max; pass other columns"),
)


def open_table(
    name: str, backend: str | Factory | None, spark: SparkSession | None
) -> tuple[SparkSession, Factory]:
    """Return a session that supports the table's format, and the factory of its backend.

    Raises:
        UnknownTableError: No backend finds the table.
        MissingBackendError: The backend is not installed.
        SessionError: The session does not support the format.
        UnsupportedError: The table uses a feature that zadapter does not support.
        UsageError: *backend* is neither a name nor callable.
    """
    if backend is None:
        return _detected(name, spark or running() or start({}, None, [name]))
    if isinstance(backend, str):
        return _loaded(backend, name, spark)
    if not isinstance(getattr(backend, "format", None), Format):
        raise UsageError(f"backend= must be a format name or a backend class, not {backend!r}")
    return ensure_format(spark, backend.format, name), backend


def start(conf: Mapping[str, str], backend: str | None, tables: Sequence[str]) -> SparkSession:
    """Return the running session, or start one.

    Args:
        conf: Spark settings.
        backend: The format to support; None: every installed format.
        tables: Paths and identifiers of tables. The session supports their object stores.

    Raises:
        MissingBackendError: The backend is not installed.
        SessionError: No suitable session can be started.
    """
    if backend is not None:
        load(backend)
    formats = None if backend is None else [backend]
    return session(conf, formats=formats, stores=object_stores.named(tables))


def _loaded(name: str, table: str, spark: SparkSession | None) -> tuple[SparkSession, Factory]:
    factory = load(name)
    return ensure_format(spark, factory.format, table), factory


def _detected(table: str, spark: SparkSession | None) -> tuple[SparkSession, Factory]:
    reasons: list[ZadapterError] = []
    for name in names():
        try:
            result = _tried(name, table, spark)
        except UnsupportedError as error:
            # the table may have a format that the session does not support
            raise next((r for r in reasons if isinstance(r, SessionError)), error) from error
        if not isinstance(result, ZadapterError):
            return result
        reasons.append(result)
    if not reasons:
        raise MissingBackendError(f"no backend is installed; {extra('delta')}")
    if len(reasons) == 1:
        raise reasons[0]
    # first the backends that looked for the table, then those that could not
    reasons.sort(key=lambda reason: not isinstance(reason, UnknownTableError))
    raise UnknownTableError("; ".join(map(str, reasons)))


def _tried(
    name: str, table: str, spark: SparkSession | None
) -> tuple[SparkSession, Factory] | ZadapterError:
    """Return a session and the backend if it finds the table, or else the reason."""
    try:
        session_for_format, factory = _loaded(name, table, spark)
        snapshot = factory(session_for_format).snapshot(table)
        # a catalog states the format of its tables
        if snapshot.version is None and snapshot.identifier is None:
            return UnknownTableError(
                f"{table} has no log; pass backend={name!r} to create a table from its files"
            )
    except (UnknownTableError, MissingBackendError, SessionError) as error:
        return error
    return session_for_format, factory


def request_of(options: Options, snapshot: Snapshot) -> Request:
    """Resolve the options against a snapshot, and check the key columns.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot be a key, or an argument is invalid.
    """
    columns = tuple(_key(name, snapshot) for name in options.weights)
    return Request(
        columns=columns,
        weights=tuple(options.weights.values()),
        curve=Curve(options.curve),
        target_file_size=options.file_bytes,
        row_groups=int(options.row_groups),
    )


def _key(name: str, snapshot: Snapshot) -> Parts:
    parts, type_ = resolve(split(name), snapshot.schema)
    if parts[0] in snapshot.partition:
        raise UsageError(
            f"{join(parts)!r} is a partition column, so each file contains one value of it "
            "already; pass other columns"
        )
    for is_a, reason in _NO_KEYS:
        if is_a(type_):
            raise UsageError(f"{join(parts)!r} cannot be a key: it is {reason}")
    if parts in snapshot.without_bounds:
        raise UsageError(
            f"{join(parts)!r} cannot be a key: {snapshot.format} stores no min and max of its type "
            f"({type_}), so clustering by it would not prune any files; pass other columns"
        )
    return parts
