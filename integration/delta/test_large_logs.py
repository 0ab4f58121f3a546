"""Logs whose checkpoint is large are read without Delta's state, and tell the same."""

import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from zadapter_delta import DeltaBackend
from zadapter_delta.commits.rewrites import removals
from zadapter_delta.jvm import Jvm

COLUMNS = [("a",), ("s",)]


@pytest.fixture
def table(lake, spark):
    """A table with a checkpoint, and commits after it that touch files of it in every way."""
    rows = spark.range(400).selectExpr("id a", "concat('s', id) s", "concat('p ä/', id % 3) p")
    path = lake.make(rows, partition_by=["p"], enableDeletionVectors="true")
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a % 50 = 3")
    log = Jvm(spark).delta.DeltaLog.forTable(spark._jsparkSession, path)
    log.checkpoint(log.update(False, Jvm(spark).option(), Jvm(spark).option()))
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a % 50 = 7 AND p LIKE '%1'")  # other vectors
    lake.sql(f"DELETE FROM delta.`{path}` WHERE p LIKE '%2' AND a < 200")
    rows.selectExpr("a + 1000 a", "s", "p").coalesce(1).write.format("delta").mode("append").save(
        path
    )
    return path


def written(lake, path, *actions):
    """Add a version, as any program may."""
    number = len(lake.log(path))
    lines = "\n".join(map(json.dumps, actions))
    (Path(path) / "_delta_log" / f"{number:020d}.json").write_text(lines)


def file_table(spark, path):
    """Return the file table, and whether it was read without Delta's state."""
    with closing(DeltaBackend(spark)) as backend:
        files = backend.files(backend.snapshot(path), COLUMNS)
        return files.sort_by([("path", "ascending"), ("deletes", "ascending")]), backend


@pytest.fixture
def large(monkeypatch):
    """Have every log with a checkpoint be large."""

    def switch():
        monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
        monkeypatch.setattr("zadapter.releases.spark_parts.AT_ONCE", 0)

    return switch


def test_a_large_log_tells_the_files_that_delta_tells(lake, spark, table, large):
    """Also of files that are removed under another spelling, and added again."""
    live = [a["add"] for actions in lake.log(table) for a in actions if "add" in a]
    first = next(add for add in live if "deletionVector" not in add and "%C3" in quote(add["path"]))
    other = first["path"].replace("%C3%A4", "%c3%a4")
    written(lake, table, {"remove": {"path": other, "dataChange": False, "deletionTimestamp": 1}})
    again = {**first, "size": first["size"] + 1}
    written(lake, table, {"add": again})
    absolute = {**first, "path": f"file:{table}/other.parquet", "size": 7}
    written(lake, table, {"add": absolute})
    told, _ = file_table(spark, table)

    large()
    found, backend = file_table(spark, table)

    assert backend._live._large is not None
    assert found.num_rows == told.num_rows > 8
    assert found.equals(told)


def test_a_rewrite_of_a_large_log_keeps_all_rows(lake, spark, table, large):
    """Deletion vectors are applied, and the removes have them."""
    before = lake.rows(table)
    large()

    lake.optimize(table)

    removes = [action["remove"] for action in lake.log(table)[-1] if "remove" in action]
    assert lake.rows(table) == before
    assert any("deletionVector" in remove for remove in removes)


def test_removes_in_bulk_are_those_made_one_by_one(lake, spark, table):
    """All fields: sizes, tags, deletion vectors, partition values, row ids and encoded paths."""
    lake.optimize(table, where="p LIKE '%0'")
    jvm = Jvm(spark)
    log = jvm.delta.DeltaLog.forTable(spark._jsparkSession, table)
    adds = log.update(False, jvm.option(), jvm.option()).allFiles().collectAsList()
    alone = [str(add.removeWithTimestamp(1 << 40, False).json()) for add in adds]

    bulk = [str(remove.json()) for remove in removals(jvm, adds, 1 << 40)]

    assert bulk == alone
    assert {"tags", "deletionVector"} <= {name for r in bulk for name in json.loads(r)["remove"]}
