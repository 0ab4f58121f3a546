"""Dates and times in SQL text, read as Spark reads them.

Only the plain ISO forms are read. Spark takes more (``2024``, ``T10:00``, names of zones in the
text), and what it takes beyond them depends on its version and settings.
"""

import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})\Z", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?(Z|[+-]\d{2}:\d{2})?)?\Z",
    re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?\Z", re.ASCII)
_EPOCH = date(1970, 1, 1)


def zone(name: str) -> tzinfo | None:
    """Return the time zone that Spark calls *name*, or None where Python knows no such one."""
    if name in {"Z", "UTC", "GMT", "UT"}:
        return timezone.utc
    if match := _OFFSET.match(name):
        sign, hours, minutes = match.groups()
        delta = timedelta(hours=int(hours), minutes=int(minutes or 0))
        return timezone(-delta if sign == "-" else delta)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def day(text: str) -> date | None:
    """Read ``2024-02-29``; None if *text* is not of this form.

    Raises:
        ValueError: There is no such day.
    """
    match = _DATE.match(text)
    return date(*map(int, match.groups())) if match else None


def wall_clock(text: str) -> datetime | None:
    """Read a date or a timestamp without zone; None if *text* is neither.

    Raises:
        ValueError: There is no such day or time of day.
    """
    match = _TIMESTAMP.match(text)
    return None if match is None or match[6] else _local(match)


def instant(text: str, session: tzinfo | None) -> datetime | None:
    """Read a date or a timestamp, its zone being *session* unless it names one.

    Returns:
        A time in UTC; None if *text* is no timestamp, or if :func:`at` has none.

    Raises:
        ValueError: There is no such day, time of day or zone.
        OverflowError: UTC lies outside the years 1 to 9999.
    """
    match = _TIMESTAMP.match(text)
    if match is None:
        return None
    return at(_local(match), zone(match[6]) if match[6] else session)


def at(local: datetime, session: tzinfo | None) -> datetime | None:
    """Place a wall-clock time in a zone, where it falls into a gap or an overlap as Java does.

    Returns:
        A time in UTC; None where no zone is given, and for regions before 1970, about which
        copies of the zone database disagree.

    Raises:
        OverflowError: UTC lies outside the years 1 to 9999.
    """
    if session is None or (isinstance(session, ZoneInfo) and local.date() <= _EPOCH):
        return None
    return local.replace(tzinfo=session).astimezone(timezone.utc)


def _local(match: re.Match[str]) -> datetime:
    date_, hour, minute, second, fraction, _ = match.groups()
    clock = time(
        int(hour or 0), int(minute or 0), int(second or 0), int((fraction or "").ljust(6, "0"))
    )
    return datetime.combine(date(*map(int, date_.split("-"))), clock)
