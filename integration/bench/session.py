"""The session of a run: so many cores, 4 GB for all of it."""

from pathlib import Path

from pyspark.sql import SparkSession

import zadapter.spark
from integration.bench.formats import catalog

CORES = 2
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # generated code stays compiled, however many others have run meanwhile
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Parquet files know no zone for such moments, DuckDB would read them in its own
    "spark.sql.session.timeZone": "UTC",
}


def session(folder: Path, cores: int = CORES) -> SparkSession:
    """Start a session whose Iceberg catalog lies in *folder*."""
    return zadapter.spark.session(
        {"spark.master": f"local[{cores}]", **SETTINGS, **catalog(folder)}
    )
