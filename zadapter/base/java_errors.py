"""What the JVM has thrown, behind an exception of py4j or PySpark."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from zadapter.base.secrets import masked

JavaObject = Any

_DEEPEST = 32
"""Causes that are looked at: a chain may lead back to itself."""


def java_exception(error: BaseException) -> JavaObject | None:
    """Return the Java exception behind a Python one, if there is one."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def causes(error: BaseException) -> Iterator[str]:
    """Yield the Java exceptions behind a Python one as text, outermost first."""
    return islice(_causes(error), _DEEPEST)


def _causes(error: BaseException) -> Iterator[str]:
    thrown = java_exception(error)
    while thrown is not None:
        yield str(thrown.toString())
        thrown = thrown.getCause()


def first_line(error: BaseException) -> str:
    """Return what a Java exception says, on one line and without what looks like a secret."""
    thrown = java_exception(error)
    return first_line_of(str(thrown.getMessage() if thrown is not None else error))


def first_line_of(message: str) -> str:
    """Return the first line of a message that is not empty, without what looks like a secret."""
    line = next((part for part in message.splitlines() if part.strip()), "no message")
    return masked(line).strip()
