"""Java exceptions behind exceptions of py4j and PySpark."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from zadapter.base.secrets import mask_secrets

JavaObject = Any

_MISMATCH = re.compile(r"Checksum error: (?P<path>file:[^\n]+?) at \d+")
"""Message of Hadoop's ``LocalFileSystem``. HDFS, which keeps checksums elsewhere, names no scheme.
"""

_LONGEST = 400
"""Most characters of a message that an error quotes."""
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


def checksum_file(name: str) -> str:
    """Return the name of the checksum file that Hadoop writes beside a file on local disk."""
    return f".{name}.crc"


def checksum_mismatch(messages: Sequence[str]) -> tuple[str, str] | None:
    """Return the file that does not match its checksum file, and a sentence; None if there is none.

    Programs other than Hadoop rewrite a file without its checksum file: it is not damaged then.

    Args:
        messages: The exceptions as text.
    """
    found = next(filter(None, map(_MISMATCH.search, messages)), None)
    if found is None:
        return None
    path, name = found["path"], checksum_file(found["path"].rpartition("/")[2])
    return path, (
        f"{path} does not match {name}, the checksum file that Hadoop wrote beside it and compares "
        f"at each read. If another program has rewritten the file since, delete {name}, and retry; "
        "otherwise the file is damaged: restore it, or the table to a version without it"
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, with likely secrets masked."""
    thrown = java_exception(error)
    return first_line_of(str(thrown.getMessage() if thrown is not None else error))


def first_line_of(message: str) -> str:
    """Return the first non-empty line of a message, shortened, with likely secrets masked.

    The SDK of AWS names each place without credentials in a sentence of its own.
    """
    line = next((part for part in message.splitlines() if part.strip()), "no message")
    masked = mask_secrets(line).strip()
    return masked if len(masked) <= _LONGEST else f"{masked[:_LONGEST]} [...]"
