"""Stories on folders of Parquet files."""

from functools import partial

import pytest

from integration.kit.lakes import Lake, interrupted
from integration.parquet.lake import live, paths, stats
from zadapter_parquet import ParquetBackend


class Folders(Lake):
    """Folders of Parquet files, looked at without zadapter."""

    def __init__(self, spark, folder):
        super().__init__(spark)
        self.folder = folder

    def make(self, rows, *partition_by, files=4, name="events"):
        """Write *rows* as so many files and return their folder."""
        table = f"{self.folder}/{name}"
        rows.repartition(files).write.partitionBy(*partition_by).parquet(table)
        return table

    def optimize(self, table, **arguments):
        return super().optimize(table, **{"backend": "parquet"} | arguments)

    def plan(self, table, **arguments):
        return super().plan(table, **{"backend": "parquet"} | arguments)

    def read(self, table, version=-1):
        """All rows of a version by pyarrow, as sorted text."""
        rows = live(table, version).to_pylist()
        return sorted(str(dict(sorted(row.items()))) for row in rows)

    def rows_of_folder(self, table):
        """What Spark reads of the folder, as if there were no log."""
        return sorted(map(str, self.spark.read.parquet(table).collect()))

    def stats(self, table, version=-1):
        """The stats table of a version, in the order of the files' lowest ids."""
        return stats(table, version).sort_by("id_minValue")

    def files(self, table, version=-1):
        """The live files of a version."""
        return paths(table, version)


@pytest.fixture
def lake(spark, tmp_path):
    return Folders(spark, tmp_path)


@pytest.fixture
def between():
    """Make a Parquet backend that runs an action after staging and before the first commit."""
    return partial(interrupted, ParquetBackend)
