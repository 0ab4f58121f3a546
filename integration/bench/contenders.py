"""Who takes part, by name."""

COPY, SORT, OURS = "plain copy", "plain sort", "zadapter"
CHECKED = "zadapter (checksum)"
"""With ``verify="checksum"``."""
TUNED = " (row groups)"
"""Who begin as many row groups as zadapter does, by what the format's writer can be told."""
DEFAULTS = " (defaults)"
"""Who choose the size of files themselves."""
CONTENDERS = (
    COPY, OURS, CHECKED, SORT, SORT + TUNED,
    "Delta ZORDER", "Delta ZORDER" + TUNED, "Delta ZORDER" + DEFAULTS, "Delta liquid",
    "Delta liquid" + TUNED, "delta-rs z_order",
    "Iceberg sort", "Iceberg zorder", "Iceberg zorder" + TUNED, "Iceberg zorder" + DEFAULTS,
    "Iceberg hilbert", "Iceberg hilbert" + TUNED,
)  # fmt: skip
"""Of all formats."""
NEW = (COPY, SORT)
"""Who make a table of their own, and do not change one."""
ROW_GROUPS = 16
"""In a file, as zadapter writes them."""
