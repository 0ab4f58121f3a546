"""The Apache Iceberg format: capabilities, and requirements of a Spark session."""

from zadapter.backend.builds import Build
from zadapter.backend.format import Format, Library
from zadapter_iceberg import local_catalog

_RELEASES = (
    ("4.1", "1.12.0", "2.13"),
    ("4.1", "1.11.0", "2.13"),
    ("4.0", "1.11.0", "2.13"),
    ("4.0", "1.10.1", "2.13"),
    ("3.5", "1.10.1", "2.12"),
)
"""Minor version of Spark, release of Iceberg, and version of Scala. Spark 4.2 has none yet."""
_SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"
"""Driver of the local catalog's database."""

FORMAT = Format(
    name="iceberg",
    migrates=True,
    dates_files=True,
    inspects=True,
    recovers=True,
    external_files=True,
    field_ids=True,
    rows_show_paths=True,
    library=Library(
        builds=tuple(
            Build(
                spark=spark,
                version=version,
                packages=(
                    f"org.apache.iceberg:iceberg-spark-runtime-{spark}_{scala}:{version}",
                    _SQLITE,
                ),
                local_settings=local_catalog.of_hadoop if version < "1.11" else None,
            )
            for spark, version, scala in _RELEASES
        ),
        extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        probe="org.apache.iceberg.spark.SparkCatalog",
        version_method="org.apache.iceberg.IcebergBuild.version",
        operators=("org.apache.iceberg.",),
        local_settings=local_catalog.settings,
        python_package="pyiceberg",
    ),
)
