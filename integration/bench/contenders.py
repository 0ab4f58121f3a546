"""Names of the contenders."""

COPY, SORT, OURS = "plain copy", "plain sort", "zadapter"
CHECKED = "zadapter (checksum)"
"""With ``verify="checksum"``."""
TUNED = " (row groups)"
"""Suffix: with as many row groups as zadapter, as far as the format's writer allows."""
DEFAULTS = " (defaults)"
"""Suffix: with the format's default file size."""
CONTENDERS = (
    COPY, OURS, CHECKED, SORT, SORT + TUNED,
    "Delta ZORDER", "Delta ZORDER" + TUNED, "Delta ZORDER" + DEFAULTS, "Delta liquid",
    "Delta liquid" + TUNED, "delta-rs z_order",
    "Iceberg sort", "Iceberg zorder", "Iceberg zorder" + TUNED, "Iceberg zorder" + DEFAULTS,
    "Iceberg hilbert", "Iceberg hilbert" + TUNED,
)  # fmt: skip
"""Contenders of all formats."""
NOTHING, WHOLE = "nothing", "zadapter (whole fit)"
"""Of tables that age: no call at all, and all rows fitted anew by each call."""
KEEPERS = (
    OURS, NOTHING, WHOLE,
    "Delta ZORDER", "Delta ZORDER" + TUNED, "Delta liquid", "Delta liquid" + TUNED,
    "delta-rs z_order", "Iceberg zorder", "Iceberg binpack",
)  # fmt: skip
"""Contenders that maintain a table after appends."""
NEW = (COPY, SORT)
"""Prefixes of contenders that write a new table instead of changing one."""
ROW_GROUPS = 16
"""Row groups per file, as zadapter writes them."""
