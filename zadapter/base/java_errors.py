"""Java exceptions behind exceptions of py4j and PySpark."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from zadapter.base.secrets import masked

JavaObject = Any

_DEEPEST = 32
"""Maximum number of causes to read, since a chain may be cyclic."""


def java_exception(error: BaseException) -> JavaObject | None:
    """Return the Java exception behind a Python exception, or None."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def causes(error: BaseException) -> Iterator[str]:
    """Yield the Java exceptions behind a Python exception as text, outermost first."""
    return islice(_causes(error), _DEEPEST)


def _causes(error: BaseException) -> Iterator[str]:
    thrown = java_exception(error)
    while thrown is not None:
        yield str(thrown.toString())
        thrown = thrown.getCause()


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, with likely secrets masked."""
    thrown = java_exception(error)
    return first_line_of(str(thrown.getMessage() if thrown is not None else error))


def first_line_of(message: str) -> str:
    """Return the first non-empty line of a message, with likely secrets masked."""
    line = next((part for part in message.splitlines() if part.strip()), "no message")
    return masked(line).strip()
