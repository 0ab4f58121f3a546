"""Session settings under which Spark changes dates and timestamps when it reads them.

Footers and logs hold bounds of the stored values, so formats refuse such a session where it
matters.
"""

from collections.abc import Callable, Collection

MOVING = {
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", {"date", "timestamp"}),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", {"timestamp"}),
    "spark.sql.parquet.int96TimestampConversion": ("TRUE", {"timestamp"}),
}
"""For each setting, the value that changes dates or timestamps, and the affected types."""
USER_PREFIX = "zadapter.users."
"""Prefix under which a clone of a session, which resets these settings, keeps the user's values."""


def moving(setting_of: Callable[..., str | None], types: Collection[str]) -> str | None:
    """Return the setting of the user's session that changes values of *types*, or None.

    Args:
        setting_of: Returns a setting of the session or of its clone; its second argument is the
            default.
        types: Type names in Spark's notation.
    """
    for setting, (value, moved) in MOVING.items():
        current = setting_of(USER_PREFIX + setting, "") or setting_of(setting) or ""
        if moved.intersection(types) and current.strip().upper() == value:
            return setting
    return None
