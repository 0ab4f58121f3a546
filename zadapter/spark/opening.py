"""Resolve the table, its backend and the session before anything is written."""

import os
from collections.abc import Sequence
from contextlib import closing

from pyspark.sql import SparkSession

from zadapter.backend import plugins
from zadapter.backend.contract import Factory
from zadapter.backend.format import Format
from zadapter.backend.plugins import formats, load, names
from zadapter.base.local_paths import check_local
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
    extra,
)
from zadapter.spark import object_stores
from zadapter.spark.sessions import default, ensure_format, loadable, running


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
        return _detected(name, spark or start(None, [name]))
    if isinstance(backend, str):
        backend = load(backend)
    if not isinstance(getattr(backend, "format", None), Format):
        raise UsageError(f"backend= must be a format name or a backend class, not {backend!r}")
    return ensure_format(spark, backend.format, name), backend


def start(backend: str | None, tables: Sequence[str]) -> SparkSession:
    """Return the running session, or start one for this and later calls.

    Args:
        backend: A format to support besides every installed one, or None.
        tables: Paths and identifiers of tables. The session supports their object stores.

    Raises:
        MissingBackendError: The backend is not installed.
        SessionError: No suitable session can be started.
    """
    form = None if backend is None else load(backend).format
    return default({}, form, object_stores.named(tables))


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
        with closing(factory(session)) as opened:
            snapshot = opened.snapshot(table)
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
