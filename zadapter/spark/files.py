"""Files that were written and that no log speaks of."""

from typing import Any

from pyspark.sql import SparkSession

from zadapter.table import Written


def discard(spark: SparkSession, written: Written) -> None:
    """Remove what was written; absent files are fine. Never after an unknown outcome."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the JVM has no public door
    conf = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    for uri in written.paths.values():
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(uri))
        path.getFileSystem(conf).delete(path, False)  # noqa: FBT003
