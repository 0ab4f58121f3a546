"""Loops over many files run within the JVM, and find what Iceberg's plan has."""

from contextlib import closing

import pytest

from zadapter_iceberg import IcebergBackend

COLUMNS = [("a",), ("s",)]


@pytest.fixture
def table(lake, spark):
    """A table of several partitions and manifests, with row-level deletes."""
    rows = spark.range(300).selectExpr("id a", "concat('s', id) s", "id % 3 p")
    modes = {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
    name = lake.make(rows, partition_by="p", files=2, **modes)
    lake.append(name, rows.selectExpr("a + 300 a", "s", "p").repartition(3))
    lake.sql(f"DELETE FROM {name} WHERE a % 100 = 5")
    return name


def planned(lake, name):
    """Return the tasks of Iceberg's plan by path, one by one."""
    iterator, tasks = lake.java(name).newScan().planFiles().iterator(), {}
    while iterator.hasNext():
        task = iterator.next()
        tasks[str(task.file().location())] = task
    return tasks


def test_files_listed_in_parts_are_those_listed_at_once(spark, table, monkeypatch):
    """Each with its stats, partition, deletes and counts."""
    with closing(IcebergBackend(spark)) as backend:
        at_once = backend.files(backend.snapshot(table), COLUMNS)
        monkeypatch.setattr("zadapter.spark.jvm.spark_parts.AT_ONCE", 0)
        in_parts = backend.files(backend.snapshot(table), COLUMNS)

    assert at_once.num_rows > 6
    assert in_parts.sort_by("path").equals(at_once.sort_by("path"))


def test_tasks_found_in_bulk_are_those_of_the_plan(lake, spark, table):
    """Those of some paths, those with deletes, and the specs of their files."""
    every = planned(lake, table)
    some = sorted(every)[::2]
    with closing(IcebergBackend(spark)) as backend:
        version = backend.snapshot(table).handle
        found = [str(task.file().location()) for task in version.tasks.find_tasks(some)]
        with_deletes = {str(task.file().location()) for task in version.tasks.with_deletes()}

    assert found == some
    assert with_deletes == {path for path, task in every.items() if len(task.deletes())}
    assert 0 < len(with_deletes) < len(every)
    assert version.tasks.specs(some) == {int(task.file().specId()) for task in every.values()}


def test_deletes_of_files_are_those_of_the_plan(lake, spark, table, monkeypatch):
    """Their ids tell whether a file has changed since."""
    every = planned(lake, table).values()
    expected = {
        str(task.file().location()): " ".join(
            sorted(f"{each.location()}@{each.contentOffset()}" for each in task.deletes())
        )
        for task in every
    }

    monkeypatch.setattr("zadapter_iceberg.bulk_calls.AT_ONCE", 2)
    with closing(IcebergBackend(spark)) as backend:
        files = backend.files(backend.snapshot(table))

    pairs = zip(files["path"].to_pylist(), files["deletes"].to_pylist(), strict=True)
    assert {path: id_ for path, id_ in pairs if id_} == {
        p: id_ for p, id_ in expected.items() if id_
    }
