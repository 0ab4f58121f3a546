"""Resolve the table, its backend, the session and the key columns before anything is written."""

import os
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.arguments.local_paths import check_local
from zadapter.arguments.options import AUTO, Options
from zadapter.backend import plugins
from zadapter.backend.contract import Factory
from zadapter.backend.plugins import formats, load, names
from zadapter.base.names import Parts, join, resolve, split
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownColumnError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
    extra,
)
from zadapter.layout.layout import Curve, Request
from zadapter.layout.levels import orders
from zadapter.planning.file_size import chosen_file_size, kept_bloom_filters
from zadapter.spark import object_stores
from zadapter.spark.sessions import default, ensure_format, loadable, running, session
from zadapter.table.bloom_filters import refusal
from zadapter.table.format import Format
from zadapter.table.snapshot import Snapshot

_NO_KEYS = (
    (pa.types.is_struct, "a struct; pass one of its fields"),
    (pa.types.is_list, "an array; pass other columns"),
    (pa.types.is_map, "a map; pass other columns"),
    (
        lambda type_: not orders(type_),
        "of the type {type}, without min and max; pass other columns",
    ),
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
    spark = spark or running()
    if isinstance(backend, str):
        plugins.check(backend)
    if spark is None:
        check_local([name], {})
    if backend is None:
        return _detected(name, spark or start({}, None, [name]))
    if isinstance(backend, str):
        backend = load(backend)
    if not isinstance(getattr(backend, "format", None), Format):
        raise UsageError(f"backend= must be a format name or a backend class, not {backend!r}")
    return ensure_format(spark, backend.format, name), backend


def start(
    conf: Mapping[str, str],
    backend: str | None,
    tables: Sequence[str],
    *,
    for_one_call: bool = False,
) -> SparkSession:
    """Return the running session, or start one.

    Args:
        conf: Spark settings.
        backend: A format to support; None: every installed format.
        tables: Paths and identifiers of tables. The session supports their object stores.
        for_one_call: Whether no other call follows. Else the session also supports every installed
            format.

    Raises:
        MissingBackendError: The backend is not installed.
        SessionError: No suitable session can be started.
    """
    form = None if backend is None else load(backend).format
    stores = object_stores.named(tables)
    if form is not None and for_one_call:
        return session(conf, formats=[form.name], stores=stores)
    return default(conf, form, stores)


def _detected(table: str, spark: SparkSession) -> tuple[SparkSession, Factory]:
    """Return the backend that finds the table, of those whose jars the session has.

    Raises:
        MissingBackendError: No backend can be loaded.
        UnknownTableError: No backend finds the table.
        SessionError: The table's format needs settings or jars that the session lacks.
        UnsupportedError: The table uses a feature that zadapter does not support.
    """
    factories = _factories()
    supported = {form.name for form in loadable(spark, (each.format for each in factories))}
    lacking = [each.format for each in factories if each.format.name not in supported]
    reasons: list[ZadapterError] = []
    for factory in (each for each in factories if each.format.name in supported):
        try:
            result = _tried(factory, table, spark)
        except UnsupportedError as error:
            # the folder may belong to a table whose format the session does not support
            named = (form for form in lacking if f"{form.name} table" in str(error).lower())
            if form := next(named, None):
                ensure_format(spark, form, table)
            raise next((r for r in reasons if isinstance(r, SessionError)), error) from error
        if not isinstance(result, ZadapterError):
            return result
        reasons.append(result)
    raise _reason(table, reasons, sorted(supported), [form.name for form in lacking])


def _factories() -> list[Factory]:
    """Return the backends that can be loaded.

    Raises:
        MissingBackendError: There is none; the first reason, if there are several.
    """
    registered = names()
    if not registered:
        raise MissingBackendError(f"no backend is installed; {extra('delta')}")
    working = formats()
    return [load(name) for name in registered if name in working] or [load(registered[0])]


def _reason(
    table: str, reasons: Sequence[ZadapterError], looked: Sequence[str], lacking: Sequence[str]
) -> ZadapterError:
    """Return the one reason why no backend takes the table."""
    if len(reasons) == 1 and not lacking:
        return reasons[0]
    for reason in reasons:
        if isinstance(reason, UnknownTableError) and reason.exists:
            return reason
    for reason in reasons:
        if isinstance(reason, SessionError):
            return reason
    if os.path.isfile(table):  # noqa: PTH113 - any text
        return UnknownTableError(f"{table} is a file; pass the folder of the table", exists=True)
    absent = f"; this session does not load {' and '.join(lacking)}" if lacking else ""
    return UnknownTableError(
        f"{table}: no {' or '.join(looked)} table found; check the name{absent}"
    )


def _tried(
    factory: Factory, table: str, spark: SparkSession
) -> tuple[SparkSession, Factory] | ZadapterError:
    """Return a session and the backend if it finds the table, or else the reason."""
    try:
        session = ensure_format(spark, factory.format, table)
        snapshot = factory(session).snapshot(table)
        # a catalog states the format of its tables
        if snapshot.version is None and snapshot.identifier is None:
            return UnknownTableError(
                f"{table} has no log; pass backend={factory.format.name!r} (--backend "
                f"{factory.format.name}) to create a table from its files",
                exists=True,
            )
    except (UnknownTableError, MissingBackendError, SessionError) as error:
        return error
    return session, factory


def key_columns(options: Options, snapshot: Snapshot) -> tuple[Parts, ...]:
    """Return the key columns as the table's schema spells them.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot be a key, or keys are to come from queries that are not there.
    """
    try:
        return tuple(_key(name, snapshot) for name in options.weights)
    except UnknownColumnError as error:
        if options.by == AUTO:
            raise UsageError(
                "by='auto' needs queries= (--queries); pass a query log, or column names"
            ) from error
        raise


def request_of(options: Options, snapshot: Snapshot, files: pa.Table) -> Request:
    """Resolve the options against a snapshot and its files, with the errors of `key_columns`."""
    columns, curve = key_columns(options, snapshot), Curve(options.curve)
    size = options.file_bytes or chosen_file_size(
        files, snapshot.layouts, columns, curve, snapshot.target_file_size
    )
    return Request(
        columns=columns,
        bloom_filters=_bloom_filters(options, snapshot, files),
        weights=tuple(options.weights.values()),
        curve=curve,
        target_file_size=size,
        row_groups=int(options.row_groups),
        filters=options.filters,
    )


def _bloom_filters(options: Options, snapshot: Snapshot, files: pa.Table) -> tuple[Parts, ...]:
    """Return the columns with Bloom filters: the stated ones, or those of the table's layout.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot have one.
    """
    if options.bloom_filters is None:
        return kept_bloom_filters(files, snapshot.layouts)
    return tuple(sorted({_filtered(name, snapshot) for name in options.filtered_columns}))


def _filtered(name: str, snapshot: Snapshot) -> Parts:
    parts, type_ = resolve(split(name), snapshot.schema)
    reason = refusal(parts, type_, snapshot.physical)
    if parts[0] in snapshot.partition:
        reason = "it is a partition column, so each file contains one value of it"
    if reason is not None:
        raise UsageError(f"{join(parts)!r} cannot have a Bloom filter: {reason}")
    return parts


def _key(name: str, snapshot: Snapshot) -> Parts:
    parts, type_ = resolve(split(name), snapshot.schema)
    if parts[0] in snapshot.partition:
        raise UsageError(
            f"{join(parts)!r} is a partition column, so each file contains one value of it "
            "already; pass other columns"
        )
    name_of_type = snapshot.stored_types.get(parts, type_)
    for is_a, reason in _NO_KEYS:
        if is_a(type_):
            stated = reason.format(type=name_of_type)
            raise UsageError(f"{join(parts)!r} cannot be a key: it is {stated}")
    if parts in snapshot.without_bounds:
        raise UsageError(
            f"{join(parts)!r} cannot be a key: {snapshot.format} stores no min and max of its type "
            f"({name_of_type}), so clustering by it would not prune any files; pass other columns"
        )
    return parts
