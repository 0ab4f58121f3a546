"""Open a table: its session, a clone of it, and the backend that finds the table."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from zadapter.backend import plugins
from zadapter.backend.contract import Backend, Factory
from zadapter.backend.format import Format
from zadapter.backend.plugins import formats, load, names
from zadapter.base.distribution import install_command
from zadapter.base.interrupts import interruptible
from zadapter.base.locations import check_local
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownTableError,
    UnsupportedError,
    UsageError,
    ZadapterError,
)
from zadapter.spark import object_stores
from zadapter.spark.clone import scratch
from zadapter.spark.sessions import check_usable, default, ensure_format, loadable, running
from zadapter.table.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class OpenTable:
    """A table that is open."""

    name: str
    backend: Backend
    factory: Factory
    spark: SparkSession
    """The session in which the backend reads and writes, mostly a clone of the caller's."""
    user_session: SparkSession
    detected: Snapshot | None
    """The version by which the format was detected; None: the caller named the format."""

    def snapshot(self) -> Snapshot:
        """Return the version by which the format was detected, or read the current one."""
        return self.detected or self.backend.snapshot(self.name)


@contextmanager
def open_table(
    name: str,
    backend: str | Factory | None,
    spark: SparkSession | None,
    *,
    writes: bool = False,
    expressions: bool = False,
    kept: bool = False,
) -> Iterator[OpenTable]:
    """Open a table in a clone of the session, and close it on exit.

    Args:
        name: The table as the caller names it.
        backend: A format or a backend's class; None: detect it.
        spark: The caller's session; None: the running session, or a new one.
        writes: Whether signals wait until staged files are discarded.
        expressions: Whether the clone evaluates expressions of the caller.
        kept: Whether the backend stays open, since a DataFrame reads later.

    Raises:
        UnknownTableError: No backend finds the table.
        MissingBackendError: The backend is not installed.
        SessionError: The session does not support the format.
        UnsupportedError: The table uses a feature that zadapter does not support.
        UsageError: *backend* is neither a name nor callable.
    """
    session = session_for([name], backend, spark)
    with ExitStack() as left:
        if writes:
            left.enter_context(interruptible(session.sparkContext))
        clone = left.enter_context(scratch(session, expressions=expressions))
        yield left.enter_context(open_in(clone, name, backend, session, kept=kept))


def session_for(
    tables: Sequence[str],
    backend: str | Factory | None,
    spark: SparkSession | None,
    *,
    new: Sequence[str] = (),
) -> SparkSession:
    """Return the caller's session, the running one, or a new one for this and later calls.

    Args:
        tables: Paths and identifiers of tables that exist.
        backend: A format that a new session supports besides every installed one, or a backend's
            class; None: every installed format.
        spark: The caller's session.
        new: Paths and identifiers of other tables. A new session supports the object stores of all.

    Raises:
        UnknownTableError: A path does not exist.
        MissingBackendError: The backend is not installed.
        SessionError: The session is not supported, or no session can be started.
        UsageError: *backend* is neither a name nor callable.
    """
    spark = spark or running()
    if isinstance(backend, str):
        plugins.check(backend)
    if spark is not None:
        return check_usable(spark)
    check_local(tables, {})
    form = None if backend is None else _factory(backend).format
    return default({}, form, object_stores.find_stores([*tables, *new]))


@contextmanager
def open_in(
    clone: SparkSession,
    name: str,
    backend: str | Factory | None,
    session: SparkSession,
    *,
    kept: bool = False,
) -> Iterator[OpenTable]:
    """Open a table in a clone that other tables may share, or in the session itself.

    See :func:`open_table`.
    """
    if backend is None:
        table = _detect_backend(name, session, clone)
    else:
        factory = _factory(backend)
        ensure_format(session, factory.format, name)
        table = OpenTable(
            name=name,
            backend=factory(clone),
            factory=factory,
            spark=clone,
            user_session=session,
            detected=None,
        )
    with ExitStack() as left:
        left.enter_context(closing(table.backend))
        yield table
        if kept:
            left.pop_all()


def _factory(backend: str | Factory) -> Factory:
    if isinstance(backend, str):
        return load(backend)
    if not isinstance(getattr(backend, "format", None), Format):
        raise UsageError(f"backend= must be a format name or a backend class, not {backend!r}")
    return backend


def _detect_backend(table: str, session: SparkSession, clone: SparkSession) -> OpenTable:
    """Open the table by the backend that finds it, of those whose jars the session has.

    Raises:
        MissingBackendError: No backend can be loaded.
        UnknownTableError: No backend finds the table.
        SessionError: The table's format needs settings or jars that the session lacks.
        UnsupportedError: The table uses a feature that zadapter does not support.
    """
    factories = _factories()
    supported = {form.name for form in loadable(session, (each.format for each in factories))}
    lacking = [each.format for each in factories if each.format.name not in supported]
    reasons: list[ZadapterError] = []
    for factory in (each for each in factories if each.format.name in supported):
        try:
            result = _try_backend(factory, table, session, clone)
        except UnsupportedError as error:
            # the folder may belong to a table whose format the session does not support
            owners = (form for form in lacking if form.name == error.table_format)
            if form := next(owners, None):
                ensure_format(session, form, table)
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
        raise MissingBackendError(f"no backend is installed; {install_command('delta')}")
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
    formats = " or ".join([", ".join(looked[:-1]), *looked[-1:]]) if looked[1:] else "".join(looked)
    return UnknownTableError(f"{table}: no {formats} table found; check the name{absent}")


def _try_backend(
    factory: Factory, table: str, session: SparkSession, clone: SparkSession
) -> OpenTable | ZadapterError:
    """Return the table if a backend finds it, or else the reason; then its backend is closed."""
    try:
        ensure_format(session, factory.format, table)
        with ExitStack() as left:
            opened = left.enter_context(closing(factory(clone)))
            snapshot = opened.snapshot(table)
            # a catalog states the format of its tables
            if snapshot.version is None and snapshot.identifier is None:
                return UnknownTableError(
                    f"{table} has no log; pass backend={factory.format.name!r} (--backend "
                    f"{factory.format.name}) to create a table from its files",
                    exists=True,
                    unregistered=factory.format.name,
                )
            left.pop_all()
    except (UnknownTableError, MissingBackendError, SessionError) as error:
        return error
    return OpenTable(
        name=table,
        backend=opened,
        factory=factory,
        spark=clone,
        user_session=session,
        detected=snapshot,
    )
