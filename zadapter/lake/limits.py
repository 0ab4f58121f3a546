"""Clean-ups that a format refuses, or that would delete files of others, known from a log alone.

A table whose clean-up is refused is not rewritten either: each rewrite would leave files behind
that nothing deletes, and whoever wrote ``keep`` counts on their deletion. So the mistake costs no
bytes, and is told in the first night and by a dry run.

A table that itself keeps all of its files, as after a migration in place, is no mistake: it is
rewritten, and its clean-up is left out.
"""

import re
from collections.abc import Collection
from datetime import timedelta
from math import ceil
from typing import Final

from pyspark.sql import SparkSession

from zadapter.base.locations import identify
from zadapter.errors import ProtectedFilesError, UnsupportedError, UsageError
from zadapter.lake.listing import find_logs
from zadapter.lake.settings import Keep
from zadapter.table.snapshot import Snapshot

DAY: Final = timedelta(days=1)
EVER: Final = timedelta(days=36_500)
"""Longer than any table is old; times before year 1 do not exist."""
HOUR: Final = timedelta(hours=1)
SECOND: Final = timedelta(seconds=1)
LEEWAY: Final = timedelta(minutes=5)
"""Difference of two clocks that none of the times in ``keep`` depends on."""
REFUSED_BY_DELTA: Final = (
    "Delta refuses a retention shorter than the table's property "
    "delta.deletedFileRetentionDuration (7 days if it is not set); keep versions and orphans as "
    "long, or change the property"
)
_RETENTION, _WEEK = "delta.deletedFileRetentionDuration", "interval 1 week"
"""Delta's property of the shortest retention, and its default."""
_GC = "gc.enabled"
_UNIFORM = "delta.universalFormat.enabledFormats"
_UNNEEDED: Final = (
    "which keeps all files, since others may need them, such as a table that was migrated in "
    "place; once none does,"
)
_BY_PATH = (
    "Iceberg's procedures take no paths; match the table by its name in a catalog, or remove keep "
    "for it"
)
_VERSIONS_TOO = (
    "the clean-up of this format deletes files of older versions, too; set keep.versions, or "
    "remove keep.orphans"
)
_INTERVAL = re.compile(
    r"(?:interval +)?(?:\d+ +(?:second|minute|hour|day|week)s?\s*)+", re.IGNORECASE
)
_AMOUNT = re.compile(r"(\d+) +([a-z]+?)s?\b", re.IGNORECASE)


def check(spark: SparkSession, snapshot: Snapshot, keep: Keep, *, owns_folder: bool) -> None:
    """Refuse a clean-up that its format refuses, or that may delete files of another table.

    That of a table which keeps all of its files is left out, so nothing is refused.

    Args:
        spark: A session.
        snapshot: The table.
        keep: How long older versions and orphans are kept; None of them: nothing is refused.
        owns_folder: Whether the clean-up deletes nothing that zadapter has not written.

    Raises:
        UsageError: A time is negative.
        UnsupportedError: The clean-up is refused; the message says what to do.
    """
    for name, kept in (("versions", keep.versions), ("orphans", keep.orphans)):
        if kept is not None and kept < timedelta(0):
            raise UsageError(f"keep.{name} must not be negative: {kept}")
    if keep == Keep() or find_protection(snapshot) is not None:
        return
    refusal = find_refusal(snapshot, keep)
    if refusal is None and not owns_folder:
        refusal = find_stranger(snapshot, find_logs(spark, snapshot.location))
    if refusal is not None:
        raise UnsupportedError(f"{snapshot.table}: keep: {refusal}")


def check_unprotected(snapshot: Snapshot) -> None:
    """Refuse to clean up a table that itself keeps all of its files.

    Raises:
        ProtectedFilesError: It does; the message says what ends this.
    """
    protection = find_protection(snapshot)
    if protection is not None:
        raise ProtectedFilesError(protection)


def find_protection(snapshot: Snapshot) -> str | None:
    """Return by which property a table keeps all of its files; None: by none.

    Plain Parquet has no such property: its backend finds the notes of tables that share files.
    """
    properties = snapshot.properties()
    if snapshot.format == "iceberg" and properties.get(_GC, "true").lower() == "false":
        return f"the table has the property {_GC} = false, {_UNNEEDED} set it to true"
    kept = properties.get(_RETENTION, _WEEK)
    if snapshot.format == "delta" and (parse_interval(kept) or HOUR) >= EVER:
        return (
            f"the table has the property {_RETENTION} = '{kept}', {_UNNEEDED} set it to a shorter "
            "time, such as 'interval 7 days'"
        )
    return None


def find_refusal(snapshot: Snapshot, keep: Keep) -> str | None:
    """Return why a format would refuse to clean up a table; None: nothing is known against it."""
    if snapshot.format == "iceberg":
        return _find_refusal_of_iceberg(snapshot, keep)
    if keep.versions is None:
        return _VERSIONS_TOO
    if snapshot.format == "delta":
        kept = ceil(longest(keep) / HOUR) * HOUR
        least = parse_interval(snapshot.properties().get(_RETENTION, _WEEK))
        return REFUSED_BY_DELTA if least is not None and kept < least else None
    return None


def _find_refusal_of_iceberg(snapshot: Snapshot, keep: Keep) -> str | None:
    if snapshot.identifier is None:
        return _BY_PATH
    if keep.orphans is not None and keep.orphans < DAY:
        return (
            "Iceberg refuses to remove orphans younger than 24 hours: keep.orphans is "
            f"{keep.orphans}; set at least 24h"
        )
    return None


def find_stranger(snapshot: Snapshot, logs: Collection[str]) -> str | None:
    """Return why a folder with logs of several formats is not cleaned up.

    To each of these tables, the files of the others are orphans; and if they share files, an older
    version of one may be the newest of another. Delta's own UniForm is known to its clean-up.

    Args:
        snapshot: The table.
        logs: The formats whose log or metadata its folder has.
    """
    own = {snapshot.format}
    if "iceberg" in snapshot.properties().get(_UNIFORM, "").lower():
        own.add("iceberg")
    others = sorted({*logs} - own)
    if not others:
        return None
    return (
        f"the folder {snapshot.location} is also that of a table in {' and '.join(others)}, whose "
        "files a clean-up could delete; remove keep for the table, or the metadata of a table "
        "that is no longer used"
    )


def find_nested(location: str, tables: Collection[str]) -> str | None:
    """Return why files are not deleted that may be those of another table; None: they are none's.

    Args:
        location: The table whose clean-up would delete them.
        tables: Folders with a table's log that the files lie in, at any depth.
    """
    own = identify(location)
    others = sorted(folder for folder in tables if identify(folder) != own)
    if not others:
        return None
    return (
        f"some files to be deleted lie in the folder of another table, {others[0]}, and may be its "
        "live ones, so none is deleted; move one of the tables, or remove keep for this one"
    )


def find_early(ahead: timedelta) -> str | None:
    """Return why nothing is deleted if this machine's clock is ahead of the store's by some time.

    Times are counted back from this machine's clock, by the formats themselves, too. Files have
    the times of the store's. A clock that is behind keeps files for longer.
    """
    if ahead <= LEEWAY:
        return None
    return (
        f"the clock of this machine is {ahead // SECOND} seconds ahead of the store's, so files "
        "and versions would be deleted too early; set the clock, and retry"
    )


def longest(keep: Keep) -> timedelta:
    """Return how long a format keeps files that has one time for older versions and orphans."""
    return max(kept for kept in (keep.versions, keep.orphans) if kept is not None)


def parse_interval(text: str) -> timedelta | None:
    """Return the time that a property of Delta states; None: Delta alone can tell.

    >>> parse_interval("interval 1 week 2 days")
    datetime.timedelta(days=9)
    """
    if _INTERVAL.fullmatch(text.strip()) is None:
        return None
    amounts = {f"{unit.lower()}s": int(number) for number, unit in _AMOUNT.findall(text)}
    try:
        return timedelta(**amounts)
    except OverflowError:
        return timedelta.max
