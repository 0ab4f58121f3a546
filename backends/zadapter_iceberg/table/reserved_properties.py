"""Names of properties that Iceberg, or Spark's reader of Iceberg, gives a meaning of its own.

Names of the same first word are the user's: Iceberg has ``commit.retry.num-retries``, and keeps
``commit.sha``.
"""

from zadapter.table.spec import COMMENT

_NAMES = {
    "format-version", "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id",
    "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec",
    "default-sort-order", "format", "sort-order", "identifier-fields", "identifier-fields.rely",
    "commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms", "commit.status-check.num-retries",
    "commit.status-check.min-wait-ms", "commit.status-check.max-wait-ms",
    "commit.status-check.total-timeout-ms", "commit.manifest.target-size-bytes",
    "commit.manifest.min-count-to-merge", "commit.manifest-merge.enabled",
    "read.split.target-size", "read.split.metadata-target-size", "read.split.planning-lookback",
    "read.split.open-file-cost", "read.split.adaptive-size.enabled",
    "read.parquet.vectorization.enabled", "read.parquet.vectorization.batch-size",
    "read.orc.vectorization.enabled", "read.orc.vectorization.batch-size",
    "read.data-planning-mode", "read.delete-planning-mode", "write.format.default",
    "write.delete.format.default", "write.target-file-size-bytes",
    "write.delete.target-file-size-bytes", "write.distribution-mode",
    "write.delete.distribution-mode", "write.update.distribution-mode",
    "write.merge.distribution-mode", "write.delete.mode", "write.update.mode", "write.merge.mode",
    "write.delete.isolation-level", "write.update.isolation-level", "write.merge.isolation-level",
    "write.delete.granularity", "write.upsert.enabled", "write.wap.enabled",
    "write.summary.partition-limit", "write.location-provider.impl", "write.folder-storage.path",
    "write.data.path", "write.metadata.path", "write.object-storage.enabled",
    "write.object-storage.partitioned-paths", "write.object-storage.path",
    "write.metadata.compression-codec", "write.metadata.previous-versions-max",
    "write.metadata.delete-after-commit.enabled", "write.metadata.metrics.default",
    "write.metadata.metrics.max-inferred-column-defaults", "write.manifest.compression-codec",
    "write.manifest.compression-level", "write.spark.fanout.enabled",
    "write.spark.accept-any-schema", "write.spark.auto-schema-evolution.enabled",
    "write.spark.advisory-partition-size-bytes", "write.parquet.bloom-filter-max-bytes",
    "write.parquet.bloom-filter-adaptive-enabled", "write.parquet.shred-variants",
    "write.parquet.variant-inference-buffer-size",
    "write.parquet.row-group-size-track-uncompressed", "write.orc.bloom.filter.columns",
    "write.orc.bloom.filter.fpp", "schema.name-mapping.default",
    "compatibility.snapshot-id-inheritance.enabled", "engine.hive.enabled",
    "engine.hive.lock-enabled", "gc.enabled", "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep", "history.expire.max-ref-age-ms", "encryption.key-id",
    "encryption.data-key-length",
}  # fmt: skip
"""Constants of Iceberg's ``TableProperties`` and ``SparkTable``."""
_OF_FILES = {
    "parquet.row-group-size-bytes", "parquet.page-size-bytes", "parquet.page-version",
    "parquet.page-row-limit", "parquet.dict-size-bytes", "parquet.compression-codec",
    "parquet.compression-level", "parquet.row-group-check-min-record-count",
    "parquet.row-group-check-max-record-count", "avro.compression-codec",
    "avro.compression-level", "orc.stripe-size-bytes", "orc.block-size-bytes",
    "orc.vectorized.batch-size", "orc.compression-codec", "orc.compression-strategy",
}  # fmt: skip
"""Constants that begin with ``write.`` for data files, with ``write.delete.`` for deletes."""
_OF_COLUMNS = (
    *(
        f"write.parquet.{each}.column."
        for each in (
            *("bloom-filter-fpp", "bloom-filter-ndv", "bloom-filter-enabled", "stats-enabled"),
            "dict-encoding-enabled",
        )
    ),
    "write.metadata.metrics.column.",
)
"""Prefixes that the name of a column follows."""


def is_reserved(key: str) -> bool:
    """Return whether Iceberg would interpret a property with this name."""
    of_file = key.removeprefix("write.").removeprefix("delete.")
    return (
        key in _NAMES
        or key == COMMENT
        or (key.startswith("write.") and of_file in _OF_FILES)
        or key.startswith(_OF_COLUMNS)
    )
