"""Parsing and formatting of sizes in bytes."""

import re
from fractions import Fraction
from numbers import Integral

from zadapter.errors import UsageError

_UNITS = {"": 1, "B": 1} | {
    f"{letter}{tail}": 1024 ** (power + 1)
    for power, letter in enumerate("KMGT")
    for tail in ("", "B", "IB")
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*\Z")


def parse(size: object, name: str = "a size") -> int:
    """Parse a size; K, M, G and T (with or without B or iB) are powers of 1024, as in Spark.

    Args:
        size: Bytes, or text.
        name: Name of the argument, for error messages.

    >>> parse("128MB")
    134217728

    Raises:
        UsageError: *size* is not a size, or less than a kilobyte.
    """
    if isinstance(size, bool) or not isinstance(size, str | Integral):
        raise UsageError(f"{name}: {size!r} is not a size; pass a number of bytes, or '128MB'")
    match = _SIZE.match(str(size))
    if match is None or match[2].upper() not in _UNITS:
        raise UsageError(f"{name}: {size!r} is not a size; pass a number of bytes, or '128MB'")
    size_in_bytes = int(Fraction(match[1]) * _UNITS[match[2].upper()])
    if size_in_bytes < 1024:  # noqa: PLR2004 - a kilobyte
        raise UsageError(f"{name}: {size!r} is too small; the minimum is 1KB")
    return size_in_bytes


def show(size: float) -> str:
    """Format bytes with up to four significant digits.

    >>> show(134217728)
    '128 MB'
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:  # noqa: PLR2004 - the base of all units
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} TB"


def show_part(part: float, whole: float) -> str:
    """Format a part of a number of bytes, in the unit of the whole.

    >>> show_part(3328599654, 12884901888)
    '3.1 of 12 GB'
    """
    shown = show(whole)
    number = part / _UNITS[shown.rpartition(" ")[2]]
    return f"{f'{number:.1f}'.removesuffix('.0')} of {shown}"
