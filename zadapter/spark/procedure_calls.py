"""Procedures of Spark's SQL that run in this process.

A statement waits in the JVM. A thread of Python takes its request by a call of Java, as all calls
are made: no port is opened for it. Each request then has a thread of its own, with the session and
the properties of the statement.
"""

import json
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import SparkSession

from zadapter.base.interrupts import Interrupted, Watch, ignoring_errors, watching
from zadapter.base.outcome import stating
from zadapter.base.printable import append_notes
from zadapter.base.secrets import mask_secrets
from zadapter.errors import SessionError, UsageError, ZadapterError
from zadapter.spark.compat.spark_api import to_python_session
from zadapter.spark.jvm import procedure_catalog
from zadapter.spark.jvm.gateway import has_own_threads, jvm_of
from zadapter.spark.jvm.procedure_catalog import CATALOG
from zadapter.spark.jvm.spark_classes import activate
from zadapter.spark.sessions import check_usable

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure of the catalog."""

    name: str
    description: str
    parameters: str
    """Columns in DDL; those that may be null are optional."""
    columns: str
    """Columns of the rows that it returns, in DDL."""
    run: Callable[[SparkSession, Mapping[str, Any]], Sequence[Mapping[str, Any]]]
    """Returns the rows as JSON values, for the session of the statement and its arguments."""
    writes: bool
    """Whether it can commit."""


@dataclass(slots=True, kw_only=True)
class Calls:
    """The procedures that this process runs for a JVM, and the calls that are under way."""

    procedures: dict[str, Procedure] = field(default_factory=dict)
    running: dict[Any, tuple[Watch, threading.Thread]] = field(default_factory=dict)
    taker: threading.Thread | None = None
    """The thread that takes requests."""
    ended: bool = False
    """Whether no call begins any more."""
    beginning: threading.Lock = field(default_factory=threading.Lock)
    """Held while a call begins, and while calls are ended."""


_COMMITTED = {True: "yes", False: "no", None: "unknown, look at the table's history"}
_RETRYABLE = {True: "yes", False: "no"}
_ENDED = "zadapter's procedures have ended; call zadapter.register_procedures() again"
by_jvm: WeakKeyDictionary[Any, Calls] = WeakKeyDictionary()
"""What this process runs, by the JVM."""


def register(spark: SparkSession, procedures: Iterable[Procedure]) -> None:
    """Add the catalog of procedures to a session, and to all sessions that Spark makes later.

    Raises:
        SessionError: Spark is too old, or the session is stopped or has no threads of its own.
        UsageError: The session has another catalog with the same name.
    """
    if not procedure_catalog.has_procedures(check_usable(spark)):
        raise SessionError(
            f"Spark {spark.version} has no procedures; use Spark 4.0 or later, or call zadapter in "
            "Python or on the command line"
        )
    if not has_own_threads(spark):
        raise SessionError("procedures need PySpark's pinned threads; unset PYSPARK_PIN_THREAD")
    if other := procedure_catalog.other_catalog(spark):
        raise UsageError(
            f"the session has another catalog named {CATALOG}, {other}; give it another name"
        )
    known = {procedure.name: procedure for procedure in procedures}
    for name, procedure in known.items():
        procedure_catalog.define(spark, name, procedure.description, procedure.parameters)
    procedure_catalog.add_to_sessions(spark)
    jvm = jvm_of(spark)
    calls = by_jvm.setdefault(jvm, Calls())
    calls.procedures.update(known)
    calls.ended = False
    if calls.taker is None or not calls.taker.is_alive():
        arguments = (spark, calls)
        calls.taker = threading.Thread(target=answer_all, args=arguments, daemon=True)
        calls.taker.start()


def end_calls(spark: SparkSession) -> bool:
    """End the calls under way as Ctrl-C ends a call, and wait for their ends; none begins later.

    Returns:
        Whether calls were under way.
    """
    calls = by_jvm[jvm_of(spark)]
    with calls.beginning:
        calls.ended = True
        running = [*calls.running.values()]
    for watch, _ in running:
        watch.note(signal.SIGINT, None)
    for _, thread in running:
        thread.join()
    return bool(running)


def answer_all(spark: SparkSession, calls: Calls) -> None:
    """Answer the requests of a JVM until it ends."""
    while (request := procedure_catalog.take(spark)) is not None:
        with ignoring_errors():  # others are answered after it
            if request.start():
                _begin(request, calls)
            running = calls.running.get(request)
            if running is not None and request.interrupted():
                running[0].note(signal.SIGINT, None)


def _begin(request: Any, calls: Calls) -> None:
    """Start the thread of a request."""
    watch = Watch("")
    thread = threading.Thread(target=_answer, args=(request, calls, watch), daemon=True)
    try:
        with calls.beginning:
            if calls.ended:
                raise SessionError(_ENDED)  # noqa: TRY301 - the statement has it
            calls.running[request] = watch, thread
            thread.start()
    except Exception as error:  # noqa: BLE001 - the statement has it
        calls.running.pop(request, None)
        _fail(request, error, may_have_committed=False)


def _answer(request: Any, calls: Calls, watch: Watch) -> None:
    """Run a procedure, and answer with its rows or its error."""
    may_have_committed = False
    try:
        procedure = calls.procedures[request.procedure()]
        may_have_committed = procedure.writes
        rows = _run(request, procedure, watch)
        request.answer(procedure.columns, json.dumps(rows))
    except BaseException as error:  # noqa: BLE001 - the statement has it
        _fail(request, error, may_have_committed=may_have_committed)
    finally:
        del calls.running[request]


def _run(request: Any, procedure: Procedure, watch: Watch) -> Sequence[Mapping[str, Any]]:
    context = SparkContext._active_spark_context  # noqa: SLF001 - there is no public way
    if context is None:
        with stating():
            raise SessionError("the Spark session of the statement is stopped")
    procedure_catalog.use_properties(context, request)
    session = to_python_session(context, request.session())
    with activate(session), watching(watch):
        return procedure.run(session, json.loads(request.arguments()))


def _fail(request: Any, error: BaseException, *, may_have_committed: bool) -> None:
    """Answer with an error, whatever its text: a statement without an answer waits forever."""
    is_usage = isinstance(error, UsageError)
    with ignoring_errors():  # the JVM may be gone
        try:
            text = _message(error, may_have_committed).encode(errors="backslashreplace").decode()
            request.fail(text, is_usage)
        except Exception:  # noqa: BLE001 - also one whose text cannot be had
            request.fail(f"{type(error).__name__}: it has no text that Spark can show", is_usage)


def _message(error: BaseException, may_have_committed: bool) -> str:
    """Return the text of an error for a statement, with what its attributes are in Python."""
    if isinstance(error, Interrupted):
        return mask_secrets(str(error))
    committed = _COMMITTED[getattr(error, "committed", None) if may_have_committed else False]
    if isinstance(error, ZadapterError):
        retryable = _RETRYABLE[error.retryable]
        return f"{mask_secrets(str(error))} [committed: {committed}; retryable: {retryable}]"
    _logger.error("a procedure failed", exc_info=error)
    text = append_notes(f"{type(error).__name__}: {error}", error)
    return f"{mask_secrets(text)} [committed: {committed}]"
