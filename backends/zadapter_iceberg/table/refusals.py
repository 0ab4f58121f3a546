"""Refusal of tables that cannot be rewritten safely."""

import json
from collections.abc import Iterator, Mapping

from zadapter.base.names import join
from zadapter.errors import UnsupportedError
from zadapter_iceberg.columns import types
from zadapter_iceberg.jvm import Jvm
from zadapter_iceberg.key_types import TESTED
from zadapter_iceberg.table.lookup import Located
from zadapter_iceberg.table.snapshots import Version

FORMAT_VERSIONS = frozenset({1, 2, 3})
"""Tested format versions of the Iceberg spec."""
PROPERTIES: Mapping[str, frozenset[str]] = {
    "write.format.default": frozenset({"parquet"}),
    "write.location-provider.impl": frozenset(),
    "write.parquet.shred-variants": frozenset({"false"}),
}
"""Properties that change how files are written, with the tested values in lower case."""


def refuse_other_branch(jvm: Jvm, table: str, located: Located) -> None:
    """Refuse the main branch if Spark redirects it to another branch.

    Raises:
        UnsupportedError: The session sets ``spark.wap.branch``, and the table enables
            write-audit-publish (``SparkTableUtil.wapSession``).
    """
    branch = jvm.spark.conf.get("spark.wap.branch", None)
    enabled = located.table.properties().getOrDefault("write.wap.enabled", "false").lower()
    if branch and enabled == "true" and located.branch is None:
        raise UnsupportedError(
            f"{table}: this session has spark.wap.branch={branch}, so Spark reads and writes that "
            f"branch; pass {table}.branch_{branch}, or unset it to use the main branch"
        )


def refuse(table: str, version: Version) -> None:
    """Refuse a table with features that zadapter was not tested with.

    Raises:
        UnsupportedError: The table has such a feature.
    """
    for what, advice in _find_untested(version):
        raise UnsupportedError(f"{table} has {what}, which zadapter was not tested with; {advice}")


def _find_untested(version: Version) -> Iterator[tuple[str, str]]:
    """Yield features that were not tested, each with what the user can do."""
    pinned, metadata, number = version.pinned, version.metadata, version.format_version
    if number not in FORMAT_VERSIONS:
        versions = ", ".join(map(str, sorted(FORMAT_VERSIONS)))
        yield f"format version {number}", f"pass a table of format version {versions}"
    properties = pinned.properties()
    if properties.containsKey("encryption.key-id") or not metadata.encryptionKeys().isEmpty():
        yield "encrypted files", "their content cannot be verified, so pass another table"
    for key, tested in PROPERTIES.items():
        value = properties.get(key)
        if value is not None and str(value).lower() not in tested:
            yield f"the property {key}={value}", "remove it, or use Iceberg's rewrite_data_files"
    schema = json.loads(version.jvm.iceberg.SchemaParser.toJson(pinned.schema()))
    for parts, type_ in types(schema):
        if type_ not in TESTED:
            yield (
                f"column {join(parts)} of the type {type_}",
                "drop the column, or pass another table",
            )
