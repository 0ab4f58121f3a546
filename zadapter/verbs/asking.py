"""Turn what users type into values, or say what is wrong with it before anything is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from zadapter.backend import Factory, load, names
from zadapter.commit import Backoff
from zadapter.errors import (
    MissingBackendError,
    SessionError,
    UnknownTableError,
    UsageError,
    ZadapterError,
)
from zadapter.layout import Curve, Request, orders
from zadapter.names import Parts, join, resolve, split
from zadapter.sizes import parse
from zadapter.spark.sessions import ensure, session
from zadapter.spark.settings import FORMATS
from zadapter.table import Snapshot

By = str | Sequence[str] | Mapping[str, float]

_NO_KEYS = (
    (pa.types.is_struct, "a struct; name one of its fields"),
    (pa.types.is_list, "an array"),
    (pa.types.is_map, "a map"),
    (lambda type_: not orders(type_), "of a type without an order that stats keep"),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What the caller asked for, as typed."""

    table: str
    by: By
    where: str | None = None
    curve: str = "adaptive"
    target_file_size: str | int = "128MB"
    row_groups: int = 8
    max_group_bytes: str | int = "256GB"
    widen_stats: bool = False
    force: bool = False
    backoff: Backoff = field(default_factory=Backoff)


def open_table(
    question: Question, backend: str | Factory | None, spark: SparkSession | None
) -> tuple[SparkSession, Factory]:
    """Return a session that fits, and the table's backend, to be called with a session.

    Raises:
        UnknownTableError: No backend knows the table.
        MissingBackendError: The backend is not installed.
        SessionError: The session cannot handle the format.
    """
    if not str(question.table).strip():
        raise UsageError(f"{question.table!r} is no table; give a path or an identifier")
    if backend is None:
        return _detected(question.table, spark)
    if isinstance(backend, str):
        return _loaded(backend, spark)
    return ensure(spark, getattr(backend, "format", "")), backend


def start(conf: Mapping[str, str], backend: str | None) -> SparkSession:
    """Return the running session, or start one for *backend*, or else for all that is installed.

    Raises:
        MissingBackendError: The backend is not installed.
        SessionError: No fitting session can be started.
    """
    if backend is not None:
        load(backend)
    wanted = names() if backend is None else [backend]
    return session(conf, formats=[name for name in wanted if name in FORMATS])


def _loaded(name: str, spark: SparkSession | None) -> tuple[SparkSession, Factory]:
    factory = load(name)
    return ensure(spark, name), factory


def _detected(table: str, spark: SparkSession | None) -> tuple[SparkSession, Factory]:
    reasons: list[ZadapterError] = []
    for name in names():
        found = _tried(name, table, spark)
        if not isinstance(found, ZadapterError):
            return found
        reasons.append(found)
    if not reasons:
        raise MissingBackendError("no backend is installed; pip install 'zadapter[delta]'")
    if len(reasons) == 1:
        raise reasons[0]
    raise UnknownTableError("; ".join(map(str, reasons)))


def _tried(
    name: str, table: str, spark: SparkSession | None
) -> tuple[SparkSession, Factory] | ZadapterError:
    """Return a session and the backend that knows the table, or why it does not."""
    try:
        found, factory = _loaded(name, spark)
        factory(found).snapshot(table)
    except (UnknownTableError, MissingBackendError, SessionError) as error:
        return error
    return found, factory


def request_of(question: Question, snapshot: Snapshot) -> Request:
    """Resolve and check the key columns.

    Raises:
        UnknownColumnError: The table has no such column.
        UsageError: A column cannot be a key, or an argument makes no sense.
    """
    weights = _weights(question.by)
    columns = tuple(_key(name, snapshot) for name in weights)
    if question.curve not in {curve.value for curve in Curve}:
        known = ", ".join(curve.value for curve in Curve)
        raise UsageError(f"no curve {question.curve!r}; there are: {known}")
    if isinstance(question.row_groups, bool) or not isinstance(question.row_groups, int):
        raise UsageError(f"row_groups must be a whole number, not {question.row_groups!r}")
    return Request(
        columns=columns,
        weights=tuple(weights.values()),
        curve=Curve(question.curve),
        target_file_size=parse(question.target_file_size),
        row_groups=question.row_groups,
    )


def _weights(by: By) -> dict[str, float]:
    if isinstance(by, Mapping):
        return {str(name): float(weight) for name, weight in by.items()}
    named = [by] if isinstance(by, str) else list(by)
    if not all(isinstance(name, str) for name in named):
        raise UsageError(f"by= takes column names, not {by!r}")
    if len(set(named)) < len(named):
        raise UsageError(f"key columns repeat: {', '.join(named)}; name each once")
    return dict.fromkeys(named, 1.0)


def _key(name: str, snapshot: Snapshot) -> Parts:
    parts, type_ = resolve(split(name), snapshot.schema)
    if parts[0] in snapshot.partition:
        raise UsageError(
            f"{join(parts)!r} is a partition column, so each file holds one value of it already; "
            "cluster by other columns"
        )
    for is_a, what in _NO_KEYS:
        if is_a(type_):
            raise UsageError(f"{join(parts)!r} cannot be a key: it is {what}")
    return parts
