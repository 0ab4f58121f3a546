"""Lakes of a few tables, read by programs that are not zadapter."""

import os
import time
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import zadapter

ROWS, PARTS = 2_000, 4


class Tables:
    """Tables of Delta in a folder, and of Iceberg in a catalog."""

    def __init__(self, folder):
        self.folder = folder

    def rows(self):
        """Return rows in no order of ``a``; ``b`` counts them."""
        return pa.table({"a": [i * 7919 % 2_003 for i in range(ROWS)], "b": range(ROWS)})

    def parts(self):
        return [self.rows().slice(part * ROWS // PARTS, ROWS // PARTS) for part in range(PARTS)]

    def make_delta(self, name):
        for part in self.parts():
            deltalake.write_deltalake(str(self.folder / name), part, mode="append")

    def make_iceberg(self, catalog, *names, location=None):
        for name in names:
            catalog.create_namespace_if_not_exists(name.partition(".")[0])
            table = catalog.create_table(name, self.rows().schema, location)
            for part in self.parts():
                table.append(part)

    def of_delta(self, name):
        return deltalake.DeltaTable(str(self.folder / name)).to_pyarrow_table()

    def is_whole(self, found):
        """Return whether all rows are there, once each."""
        return found.select(["a", "b"]).sort_by("b").to_pylist() == self.rows().to_pylist()

    def lake(self, *entries, **values):
        """Return the content of a lake's file."""
        common = {"by": ["a"], "target_file_size": "4KB"}
        tables = [{"match": each} if isinstance(each, str) else each for each in entries]
        return values | {"defaults": common | values.get("defaults", {}), "tables": tables}


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path)


@pytest.fixture
def maintain(spark):
    """Runs a night, and returns its report and its lines by the last part of the table's name."""

    def run(lake, **keywords):
        report = zadapter.maintain(lake, spark=spark, **keywords)
        return report, {line.table.replace("/", ".").split(".")[-1]: line for line in report.lines}

    return run


def make_orphan(folder, name="data/orphan.parquet"):
    """Leave a file of a writer that has died three days ago."""
    path = Path(folder, name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"left by a writer that has died")
    then = time.time() - 3 * 86_400
    os.utime(path, (then, then))
    return path


@pytest.fixture
def orphan():
    return make_orphan
