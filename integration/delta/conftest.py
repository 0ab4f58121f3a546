"""Stories on Delta tables."""

import json
from functools import partial
from pathlib import Path

import pytest

from integration.kit.lakes import Lake, interrupted
from zadapter_delta import DeltaBackend


class Tables(Lake):
    """A folder of Delta tables, looked at without zadapter."""

    def __init__(self, spark, folder):
        super().__init__(spark)
        self.folder = Path(folder)

    def make(self, rows, name="events", partition_by=(), files=4, **properties):
        """Write *rows* as a table of so many files and return its path."""
        writer = rows.repartition(files).write.format("delta")
        for key, value in properties.items():
            writer = writer.option(f"delta.{key}", value)
        path = str(self.folder / name)
        writer.partitionBy(*partition_by).save(path)
        return path

    def load(self, path):
        return self.spark.read.format("delta").load(path)

    def log(self, path):
        """The actions of each version."""
        entries = sorted((Path(path) / "_delta_log").glob("*.json"))
        return [[json.loads(line) for line in e.read_text().splitlines()] for e in entries]


@pytest.fixture
def lake(spark, tmp_path):
    return Tables(spark, tmp_path)


@pytest.fixture
def between():
    """Make a Delta backend that runs an action after staging and before the first commit."""
    return partial(interrupted, DeltaBackend)
