"""States which protocols each backend implements; mypy reads this, nothing runs it.

A backend is loaded by its name, and its format declares what it can do. No other type check
notices that a method is missing.
"""

from pyspark.sql import SparkSession

from zadapter.backend.contract import (
    Backend,
    DatedBackend,
    InspectedBackend,
    MigrationBackend,
    RecoverableBackend,
    VersionedBackend,
)
from zadapter_delta.backend import DeltaBackend
from zadapter_iceberg.backend import IcebergBackend
from zadapter_parquet.backend import ParquetBackend


def each(
    spark: SparkSession,
) -> tuple[list[Backend], list[RecoverableBackend], list[InspectedBackend]]:
    """What all formats can do."""
    delta, iceberg, parquet = DeltaBackend(spark), IcebergBackend(spark), ParquetBackend(spark)
    return [delta, iceberg, parquet], [delta, iceberg, parquet], [delta, iceberg, parquet]


def migrated(spark: SparkSession) -> list[MigrationBackend]:
    """All formats are sources and targets."""
    return [DeltaBackend(spark), IcebergBackend(spark), ParquetBackend(spark)]


def dated(spark: SparkSession) -> list[DatedBackend]:
    """All formats know how old files are."""
    return [DeltaBackend(spark), IcebergBackend(spark), ParquetBackend(spark)]


def versioned(spark: SparkSession) -> VersionedBackend:
    """Only zadapter keeps versions of plain Parquet."""
    return ParquetBackend(spark)
