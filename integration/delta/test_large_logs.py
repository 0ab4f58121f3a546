"""Logs whose checkpoint is large are read without Delta's state, and tell the same."""

import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from zadapter_delta import DeltaBackend
from zadapter_delta.commits.rewrites import removals
from zadapter_delta.jvm import Jvm
from zadapter_delta.table.large_log import LargeLog
from zadapter_delta.table.lookup import current, locate

COLUMNS = [("a",), ("s",)]


@pytest.fixture
def table(lake, spark):
    """A table with a checkpoint, and commits after it that touch files of it in every way."""
    rows = spark.range(400).selectExpr("id a", "concat('s', id) s", "concat('p ä/', id % 3) p")
    said = {"enableDeletionVectors": "true", "checkpointInterval": "1"}
    path = lake.make(rows, partition_by=["p"], **said)
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a % 50 = 3")
    lake.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES (delta.checkpointInterval=100)")
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
    """Return the file table."""
    with closing(DeltaBackend(spark)) as backend:
        files = backend.files(backend.snapshot(path), COLUMNS)
        return files.sort_by([("path", "ascending"), ("deletes", "ascending")])


@pytest.fixture
def large(monkeypatch):
    """Have every log with a checkpoint be large, and Delta's state be out of reach."""

    def switch():
        monkeypatch.setattr(
            "zadapter_delta.table.live_files.LiveFiles._keep_if_few",
            lambda *_, **__: pytest.fail("its state"),
        )
        monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
        monkeypatch.setattr("zadapter.spark.jvm.spark_parts.AT_ONCE", 0)

    return switch


@pytest.mark.slow
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
    told = file_table(spark, table)

    large()
    found = file_table(spark, table)

    assert found.num_rows == told.num_rows > 8
    assert found.equals(told)


@pytest.mark.slow
def test_a_rewrite_of_a_large_log_keeps_all_rows(lake, spark, table, large):
    """Deletion vectors are applied, and the removes have them."""
    before = lake.rows(table)
    large()

    lake.optimize(table)

    removes = [action["remove"] for action in lake.log(table)[-1] if "remove" in action]
    assert lake.rows(table) == before
    assert any("deletionVector" in remove for remove in removes)


@pytest.mark.slow
def test_removes_in_bulk_are_those_made_one_by_one(lake, spark, table):
    """All fields: sizes, tags, deletion vectors, partition values, row ids and encoded paths."""
    lake.optimize(table, where="p = 'p ä/0'")
    jvm, changes_data = Jvm(spark), False
    snapshot = current(jvm, table, locate(jvm, table))
    adds = snapshot.allFiles().collectAsList()
    alone = [str(add.removeWithTimestamp(1 << 40, changes_data).json()) for add in adds]

    bulk = [str(remove.json()) for remove in removals(jvm, adds, 1 << 40)]

    assert bulk == alone
    assert {"tags", "deletionVector"} <= {name for r in bulk for name in json.loads(r)["remove"]}


def test_a_list_that_contradicts_the_checksum_is_read_from_the_state(spark, table, monkeypatch):
    """Delta's writers tell beside each version how many files it has, and how many bytes."""
    told, complete = file_table(spark, table), LargeLog.frame
    monkeypatch.setattr("zadapter_delta.table.large_log.LARGE", -1)
    monkeypatch.setattr(LargeLog, "frame", lambda self: complete(self).limit(told.num_rows - 1))

    assert file_table(spark, table).equals(told)
