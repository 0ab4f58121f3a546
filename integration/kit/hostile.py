"""Column names that collide with helper columns, or need quoting."""

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
"""Names of the formats' metadata columns."""

VALUES = (
    *(
        "a",
        "a b",
        " lead",
        "a+b",
        "50%",
        "%25",
        "%2F",
        "a%20b",
        "#",
        "?",
        "\u00fc",
        "u\u0308",
        "\U0001f600",
    ),
    *(
        "it's",
        'q"q',
        "n\nl",
        "t\tb",
        "a:b",
        "a=b",
        "a/b",
        "dot.",
        "[x]",
        "{a,b}",
        "*",
        "\x01",
        "\x7f",
    ),
    *("file:/x", "~", "$", "a;b", "&", "`", "null"),
)
"""Values of a partition column, for which writers escape folders in several ways."""


def sql(name):
    """Quote a name for Spark SQL."""
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def numbers(names, count=60):
    """Return columns of these names with different values; the first one has no duplicates."""
    return {
        name: [(row * 7 + 13 * at) % count for row in range(count)] for at, name in enumerate(names)
    }
