"""Refusal of tables that cannot be rewritten safely."""

from zadapter.errors import UnsupportedError
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.table.lookup import Located

NEWEST = 3
"""Highest supported format version of the Iceberg spec."""


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


def refuse(table: str, iceberg_table: JavaObject) -> None:
    """Refuse a table with features that zadapter does not support.

    Raises:
        UnsupportedError: The table has a newer format version, is encrypted, or does not write
            Parquet files.
    """
    version = int(iceberg_table.operations().current().formatVersion())
    if version > NEWEST:
        raise UnsupportedError(
            f"{table} has format version {version}; zadapter supports versions up to {NEWEST}"
        )
    properties = iceberg_table.properties()
    if properties.containsKey("encryption.key-id"):
        raise UnsupportedError(f"{table} is encrypted; zadapter cannot verify encrypted files")
    written_as = properties.getOrDefault("write.format.default", "parquet").lower()
    if written_as != "parquet":
        raise UnsupportedError(
            f"{table} has write.format.default={written_as}; zadapter supports Parquet files only"
        )
