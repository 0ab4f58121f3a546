"""The Apache Iceberg format: capabilities, and requirements of a Spark session."""

from zadapter.table.format import Format, Library
from zadapter_iceberg import local_catalog

FORMAT = Format(
    name="iceberg",
    migrates=True,
    inspects=True,
    external_files=True,
    field_ids=True,
    library=Library(
        version="1.12",
        packages=(
            "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
            "org.xerial:sqlite-jdbc:3.46.1.3",
        ),
        extension="org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        probe="org.apache.iceberg.spark.SparkCatalog",
        version_method="org.apache.iceberg.IcebergBuild.version",
        operators=("org.apache.iceberg.",),
        local_settings=local_catalog.settings,
        python_package="pyiceberg",
    ),
)
