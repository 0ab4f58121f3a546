"""Names of columns that helper columns have, or had, or that need to be quoted."""

HELPERS = (
    *("zadapter path", "ZADAPTER known", "zadapter value 0", "zadapter value {}"),
    *("file_path", "Path", "file", "hash", "C0", "stats", "place", "salt", "known", "value"),
    *("low0", "High0", "nulls0", "nans0", "min0", "partition0", "records", "tight", "minValues"),
    *("rows", "size", "layout", "partition", "deletes", "tags", "add", "content", "spec_id"),
)
QUOTED = (
    *(
        "a.b",
        "back`tick",
        "two``ticks",
        "quo'te",
        'dou"ble',
        " blanks ",
        "ümlaut",
        "日本語",
        "select",
    ),
    *("per%20cent", "${env}", "back\\slash", "UPPER", "dash-ed", "1st", "#", "*", "element.list"),
)
RESERVED = (
    *("_metadata", "_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"),
    *("_last_updated_sequence_number", "_commit_snapshot_id", "_METADATA", "_change_type"),
)
"""Formats have columns of these names, as a kind of metadata."""


def sql(name):
    """Write a name as Spark's SQL does."""
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def numbers(names, count=60):
    """Columns of these names, each with other numbers; the first has each of them once."""
    return {
        name: [(row * 7 + 13 * at) % count for row in range(count)] for at, name in enumerate(names)
    }
