"""Key types in Iceberg (the spec's "Primitive Types"), and what its other types are to Spark."""

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "boolean": "boolean",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "decimal": "decimal",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "string": "string",
    "binary": "binary",
}
"""Iceberg's name of each key type that it has."""
WIDENED: Mapping[str, str] = {"byte": "integer", "short": "integer"}
"""Key types that Iceberg lacks, and those that hold their values."""
AS_SPARK_READS: Mapping[str, str] = {"uuid": "string", "fixed": "binary"}
"""Types that Spark lacks, and those that it reads them as."""
TESTED = frozenset({*NAMES.values(), *AS_SPARK_READS, "variant", "struct", "list", "map"})
"""Tested types of the Iceberg spec, which Spark reads."""
WITHOUT_BOUNDS = frozenset(
    {*AS_SPARK_READS, "time", "timestamp_ns", "timestamptz_ns", "list", "map"}
)
"""Types without usable bounds: Spark has no matching type, or a row has several values."""
