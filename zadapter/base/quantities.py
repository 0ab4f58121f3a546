"""Sizes in bytes and ages as text, such as ``128 MB``, ``10 minutes`` or ``7d``; weights."""

import re
from datetime import timedelta
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

from zadapter.errors import UsageError

_UNITS = {"": 1, "B": 1} | {
    f"{letter}{tail}": 1024 ** (power + 1)
    for power, letter in enumerate("KMGT")
    for tail in ("", "B", "IB")
}
MOST_WEIGHT = 1e15
"""The largest weight: sums and products of such weights are far from the largest number."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*\Z")

_AGE = re.compile(
    r"(\d+) ?(?:(s|sec|seconds?)|(m|min|minutes?)|(h|hours?)|(d|days?)|(w|weeks?))", re.IGNORECASE
)

_AGE_UNITS = ("seconds", "minutes", "hours", "days", "weeks")


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


def show_count(number: int, things: str) -> str:
    """Format a number of things, whose plural is given.

    >>> show_count(1, "entries"), show_count(1234, "row groups")
    ('1 entry', '1,234 row groups')
    """
    one = f"{things[:-3]}y" if things.endswith("ies") else things.removesuffix("s")
    return f"{number:,} {one if number == 1 else things}"


def is_weight(given: Any, most: float = MOST_WEIGHT) -> bool:
    """Return whether a value is a number above 0, up to a limit.

    >>> [is_weight(each) for each in (1, 0.5, 0, True, float("nan"), 10**400, "1")]
    [True, True, False, False, False, False, False]
    """
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return is_number and bool(0 < given <= most)


def age(given: object, name: str) -> timedelta:
    """Return a duration, or a text of one, as a duration above zero.

    Args:
        given: The duration.
        name: Argument that it is given for.

    Raises:
        UsageError: It is no duration, or not above zero.
    """
    found = parse_age(given, name) if isinstance(given, str) else given
    if isinstance(found, timedelta) and found > timedelta(0):
        return found
    raise UsageError(f"{name} must be a duration such as '10 minutes', not {given!r}")


def parse_age(text: str, name: str) -> timedelta:
    """Parse a number with a unit.

    >>> parse_age("36h", "min_age=")
    datetime.timedelta(days=1, seconds=43200)

    Args:
        text: The text.
        name: Argument or option that it is given for.

    Raises:
        UsageError: It is not a number with one of the units.
    """
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{name}: {text!r} is not a duration; pass a number with a unit of s, m, h, d or w, "
            "such as 7d"
        )
    unit = next(unit for unit, found in zip(_AGE_UNITS, match.groups()[1:], strict=True) if found)
    try:
        return timedelta(**{unit: int(match[1])})
    except OverflowError:
        raise UsageError(f"{name}: {text!r} is too long; pass a shorter duration") from None
