"""Settings of a session by which Spark reads days and moments other than as they are stored.

Footers and logs have bounds of what is stored, so formats refuse such a session where it matters.
"""

from collections.abc import Callable, Collection

MOVING = {
    "spark.sql.parquet.datetimeRebaseModeInRead": ("LEGACY", {"date", "timestamp"}),
    "spark.sql.parquet.int96RebaseModeInRead": ("LEGACY", {"timestamp"}),
    "spark.sql.parquet.int96TimestampConversion": ("TRUE", {"timestamp"}),
}
"""By setting, the value that moves values, and the types whose values it moves."""
KEPT = "zadapter.users."
"""Prefix under which a clone of a session, which resets these settings, keeps the user's values."""


def moving(setting_of: Callable[..., str | None], types: Collection[str]) -> str | None:
    """Return the setting of the user's session that moves values of some types, if there is one.

    Args:
        setting_of: Returns a setting of the session or of its clone; a second argument is returned
            where there is none.
        types: Types as Spark writes them.
    """
    for setting, (value, moved) in MOVING.items():
        found = setting_of(KEPT + setting, "") or setting_of(setting) or ""
        if moved.intersection(types) and found.strip().upper() == value:
            return setting
    return None
