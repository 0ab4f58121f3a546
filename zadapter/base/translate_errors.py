"""Translation of failures in Spark, formats and stores to errors of zadapter with advice.

Only this module translates exceptions of other programs: :func:`translate_errors` wraps each public
function. Exceptions of Python's own types, such as ``TypeError``, are not translated.
"""

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from os import PathLike
from typing import ParamSpec, TypeVar

from zadapter.base.failure_kinds import KINDS, FailureKind
from zadapter.base.interrupts import reraise
from zadapter.base.java_errors import causes, checksum_mismatch, first_line_of, java_exception
from zadapter.base.outcome import stating
from zadapter.base.secrets import mask_secrets
from zadapter.errors import (
    DataFileError,
    EngineError,
    ZadapterError,
)

P = ParamSpec("P")
R = TypeVar("R")

_FOREIGN = {"fsspec", "obstore", "py4j", "pyarrow", "pyiceberg", "pyspark"}
"""Packages whose exceptions are translated, besides errors of the operating system."""
_URI = r"(?:[a-zA-Z][\w+.-]*:/+|/)[^\s'\"`,;<>|]*[\w/]"
_READING = re.compile(
    rf"(?:reading file|Error reading file:|Checksum error:|column in file|in file) (?P<path>{_URI})"
)
_WORKER = "An exception was thrown from the Python worker"
_WRITING = "Task failed while writing rows to"
_WROTE = re.compile(rf"{_WRITING} (?P<path>{_URI})")
_LOST = re.compile(r"ExecutorLostFailure \((?P<reason>[^\n]*)\)")
_PATH = re.compile(rf"(?<![\w:/.])(?P<path>{_URI})")
_CLASS = re.compile(
    r"\bClass (?P<name>[\w.$]+) was not found"
    r"|(?:ClassNotFoundException|NoClassDefFoundError): (?P<last>\S+)"
)


@contextmanager
def translate_errors(table: str) -> Iterator[None]:
    """Translate exceptions of other programs to errors of zadapter.

    The cause is the original exception, unless it contains a secret, which a traceback would print.

    Args:
        table: The table, as the user named it.

    Raises:
        StoreError: The store is full, does not answer, or denies access.
        UnknownTableError: There is no such bucket.
        DataFileError: A file is missing, damaged or cannot be read.
        SessionError: The session lacks a class or memory, has ended, or a value is rejected.
        UnsupportedError: Iceberg itself cannot list the files of the table.
        EngineError: Spark, a format or a library has failed in another way.
    """
    try:
        yield
    except ZadapterError as error:
        reraise(error)
        _mask_causes(error)
        raise
    except Exception as error:
        reraise(error)
        if not is_foreign(error):
            raise
        explained = translate_error(table, texts(error))
        explained.__cause__ = error
        _mask_causes(explained)
        raise explained from explained.__cause__


def translates_errors(verb: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function whose first argument is a table with :func:`translate_errors`.

    Its errors state whether the call has committed anything.
    """

    @wraps(verb)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        table = args[0] if args else kwargs.get("table")
        named = str(table) if isinstance(table, str | PathLike) else "the table"
        with stating(), translate_errors(named):
            return verb(*args, **kwargs)

    return wrapped


def is_foreign(error: BaseException) -> bool:
    """Return whether Spark, a library or the operating system has raised an exception."""
    return isinstance(error, OSError) or any(
        class_.__module__.partition(".")[0] in _FOREIGN for class_ in type(error).__mro__
    )


def texts(error: BaseException) -> list[str]:
    """Return an exception and its causes as text, outermost first."""
    messages: list[str] = []
    link: BaseException | None = error
    while link is not None and len(messages) < len(errno.errorcode):
        if java_exception(link) is not None:
            messages += causes(link)
        else:
            messages.append(f"{type(link).__name__}: {link}")
        link = link.__cause__
    return messages


def translate_error(table: str, messages: Sequence[str]) -> ZadapterError:
    """Return the error for a failure.

    Args:
        table: The table, as the user named it.
        messages: The exceptions as text, outermost first.
    """
    by_python = next((text for text in reversed(messages) if _WORKER in text), None)
    if by_python is not None:
        return EngineError(
            f"{table}: a Python function of the query failed: {_last_line(by_python)}; fix it, and "
            "retry"
        )
    if unmatched := checksum_mismatch(messages):
        return DataFileError(f"{table}: {unmatched[1]}", unmatched[0])
    cause = root_cause(messages)
    for kind in KINDS:
        hit = next((text for text in reversed(messages) if kind.pattern.search(text)), None)
        if hit is not None:
            return _build_error(table, kind, messages, hit)
    return EngineError(
        f"{table}: {cause}; Spark, the format or a library raised this error{_where(messages)}. In "
        "Python, the exception's __cause__ is the original error"
    )


def _build_error(table: str, kind: FailureKind, messages: Sequence[str], hit: str) -> ZadapterError:
    """Return the error of a kind of failure, which *hit* is the text of."""
    reads = kind.error is DataFileError
    # the damaged file is the one being read, not the one being written
    path = _path([text for text in messages if not (reads and _WRITING in text)], hit)
    named = _PATH.search(hit.partition("\n\tat ")[0])
    name, lost = _CLASS.search(hit), _LOST.search(hit)
    text = kind.text.format(
        path=path or f"a file of {table} (see the log of Spark)",
        at=f" for {named['path']}" if named else "",
        to=f" to {named['path']}" if named else "",
        where=_where(messages),
        cause=root_cause(messages),
        name=(name and (name["name"] or name["last"])) or "named in the cause",
        lost=first_line_of(lost["reason"]) if lost else root_cause(messages),
    )
    return DataFileError(f"{table}: {text}", path) if reads else kind.error(f"{table}: {text}")


def _where(messages: Sequence[str]) -> str:
    """Return what Spark was doing at a failure, from its own words; empty: they do not say it."""
    for text in messages:
        if read := _READING.search(text):
            return f" while it read {read['path']}"
        if written := _WROTE.search(text):
            return f" while it wrote to {written['path']}"
    return ""


def _last_line(traceback: str) -> str:
    """Return the exception at the end of a Python traceback in the message of a Spark error."""
    lines = traceback.partition("\n\tat ")[0].splitlines()
    return first_line_of(next(line.strip() for line in reversed(lines) if line.strip()))


def root_cause(messages: Sequence[str]) -> str:
    """Return the first line of the innermost exception with a message."""
    non_empty = (text for text in reversed(messages) if text.partition(": ")[2].strip())
    name, _, message = next(non_empty, messages[-1] if messages else "no message").partition(": ")
    if not message.strip():
        return first_line_of(name).rstrip(".")
    # masked as one text, since a secret may be recognised by the text before it
    line = next(part for part in message.splitlines() if part.strip())
    return first_line_of(f"{name.rpartition('.')[2]}: {line.strip()}").rstrip(".")


def _path(messages: Sequence[str], hit: str) -> str | None:
    """Return the path of the file that caused a failure, or None if no text names it."""
    for pattern, among in ((_READING, messages), (_PATH, [hit]), (_PATH, messages)):
        for text in among:
            named = pattern.search(text.partition("\n\tat ")[0])
            if named is not None:
                return named["path"]
    return None


class _Masked(Exception):  # noqa: N818 - stands for an exception of any name
    """An exception whose text contained a secret."""


def _mask_causes(error: BaseException) -> None:
    """Replace causes of an error that contain secrets, since a traceback prints all causes."""
    link = error
    for _ in errno.errorcode:
        behind = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if behind is None:
            return
        text = f"{type(behind).__name__}: {behind}"
        if mask_secrets(text) != text:
            link.__cause__ = _Masked(mask_secrets(text))
            return
        link = behind
