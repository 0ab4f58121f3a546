"""Stories on Delta tables."""

import json
from pathlib import Path

import pytest

import zadapter
from zadapter_delta import DeltaBackend


class Lake:
    """A folder of Delta tables, looked at without zadapter."""

    def __init__(self, spark, folder):
        self.spark, self.folder = spark, Path(folder)

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

    def sql(self, text):
        return self.spark.sql(text)

    def rows(self, path):
        """All rows, as sorted text."""
        return sorted(map(str, self.load(path).collect()))

    def log(self, path):
        """The actions of each version."""
        entries = sorted((Path(path) / "_delta_log").glob("*.json"))
        return [[json.loads(line) for line in e.read_text().splitlines()] for e in entries]

    def optimize(self, path, **arguments):
        """Optimize by column a, into several small files."""
        asked = {"by": ["a"], "target_file_size": "2KB", "spark": self.spark} | arguments
        return zadapter.optimize(path, **asked)


@pytest.fixture
def lake(spark, tmp_path):
    return Lake(spark, tmp_path)


@pytest.fixture
def between():
    """Make a Delta backend that runs an action after staging and before the first commit."""

    def make(action):
        class Interrupted(DeltaBackend):
            done = False

            def commit(self, rewrite):
                if not Interrupted.done:
                    Interrupted.done = True
                    action()
                return super().commit(rewrite)

        return Interrupted

    return make
