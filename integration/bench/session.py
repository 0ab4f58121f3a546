"""Session of a run: a fixed number of cores, and 4 GB in total."""

from pathlib import Path

from pyspark.sql import SparkSession

import zadapter.spark
from integration.bench.formats import catalog

CORES = 2
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # keeps all generated code compiled
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Parquet stores no time zone for such timestamps, and DuckDB would use its own
    "spark.sql.session.timeZone": "UTC",
}


def session(folder: Path, cores: int = CORES) -> SparkSession:
    """Start a session whose Iceberg catalog is in *folder*."""
    return zadapter.spark.session(
        {"spark.master": f"local[{cores}]", **SETTINGS, **catalog(folder)}
    )
