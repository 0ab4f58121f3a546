"""The Delta Lake format: capabilities, and requirements of a Spark session."""

from zadapter.backend.builds import Build
from zadapter.backend.format import Format, Library, Settings

_RELEASES = (
    ("4.1", "4.4.0", "4.1_2.13"),
    ("4.1", "4.2.0", "4.1_2.13"),
    ("4.2", "4.4.0", "4.2_2.13"),
    ("4.0", "4.4.0", "4.0_2.13"),
    ("4.0", "4.0.0", "2.13"),
    ("3.5", "3.3.2", "2.12"),
)
"""Minor version of Spark, release of Delta, and the end of its artifact's name."""


def _local_settings(_: Settings, cores: int) -> Settings:
    """Return one partition per core for a table's state, where Delta's default is 50."""
    return {"spark.databricks.delta.snapshotPartitions": str(cores)}


FORMAT = Format(
    name="delta",
    log="_delta_log",
    migrates=True,
    dates_files=True,
    inspects=True,
    recovers=True,
    external_files=True,
    library=Library(
        builds=tuple(
            Build(spark=spark, version=version, packages=(f"io.delta:delta-spark_{end}:{version}",))
            for spark, version, end in _RELEASES
        ),
        excludes=(
            "com.fasterxml.jackson.core:jackson-annotations",
            "com.fasterxml.jackson.core:jackson-core",
            "com.fasterxml.jackson.core:jackson-databind",
            "org.apache.hadoop:hadoop-client-api",
            "org.apache.hadoop:hadoop-client-runtime",
            "org.apache.logging.log4j:log4j-api",
            "org.apache.logging.log4j:log4j-core",
            "org.apache.logging.log4j:log4j-slf4j2-impl",
            "org.apache.parquet:parquet-hadoop",
            "org.roaringbitmap:RoaringBitmap",
            "org.slf4j:slf4j-api",
        ),
        extension="io.delta.sql.DeltaSparkSessionExtension",
        catalog="org.apache.spark.sql.delta.catalog.DeltaCatalog",
        probe="org.apache.spark.sql.delta.DeltaLog",
        version_method="io.delta.package.VERSION",
        operators=("org.apache.spark.sql.delta.", "io.delta."),
        local_settings=_local_settings,
        client="delta-spark",
    ),
)
