"""Ages as text, such as ``10 minutes`` or ``7d``."""

import re
from datetime import timedelta

from zadapter.errors import UsageError

_AGE = re.compile(
    r"(\d+) ?(?:(s|sec|seconds?)|(m|min|minutes?)|(h|hours?)|(d|days?)|(w|weeks?))", re.IGNORECASE
)
_UNITS = ("seconds", "minutes", "hours", "days", "weeks")


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
    unit = next(unit for unit, found in zip(_UNITS, match.groups()[1:], strict=True) if found)
    try:
        return timedelta(**{unit: int(match[1])})
    except OverflowError:
        raise UsageError(f"{name}: {text!r} is too long; pass a shorter duration") from None
