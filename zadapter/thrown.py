"""What the JVM has thrown, behind an exception of py4j or PySpark."""

import re
from collections.abc import Iterator
from typing import Any

JavaObject = Any


def java_exception(error: BaseException) -> JavaObject | None:
    """Return the Java exception behind a Python one, if there is one."""
    return getattr(error, "java_exception", None) or getattr(error, "_origin", None)


def causes(error: BaseException) -> Iterator[str]:
    """Yield the Java exceptions behind a Python one as text, outermost first."""
    thrown = java_exception(error)
    while thrown is not None:
        yield str(thrown.toString())
        thrown = thrown.getCause()


_SECRET = re.compile(
    r"(?i)((?:sig|token|secret|password|credential|access_?key)[\w.-]*\s*[=:]\s*)[^\s&,;]+"
)


def first_line(error: BaseException) -> str:
    """Return what a Java exception says, on one line and without what looks like a secret."""
    thrown = java_exception(error)
    message = str(thrown.getMessage() if thrown is not None else error)
    line = next((part for part in message.splitlines() if part.strip()), "no message")
    return _SECRET.sub(r"\1***", re.sub(r"//[^/@\s]+@", "//***@", line)).strip()
