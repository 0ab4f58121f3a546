"""Loops over many files run within the JVM, and find what Iceberg's plan has."""

from contextlib import closing

import pytest

from zadapter.errors import UnsupportedError
from zadapter_iceberg import IcebergBackend
from zadapter_iceberg.stats import scan_tasks

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


@pytest.fixture
def changed(lake, spark):
    """A table of several manifests and partition specs, without row-level deletes."""
    rows = spark.range(60).selectExpr("id a", "concat('s', id) s", "id % 3 p")
    name = lake.make(rows, partition_by="p", files=2)
    lake.append(name, rows.selectExpr("a + 60 a", "s", "p"))
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, a)")
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN s TO text")
    for _ in range(3):
        lake.append(name, rows.selectExpr("a + 120 a", "s text", "p"))
    return name


def as_text(jvm, tasks):
    """Return all that Iceberg itself keeps of tasks, by path."""
    to_json = jvm.iceberg.ScanTaskParser.toJson
    ids = {
        str(task.file().location()): (task.file().dataSequenceNumber(), task.file().pos())
        for task in tasks
    }
    return {str(task.file().location()): to_json(task) for task in tasks}, ids


def test_tasks_of_few_files_are_read_from_their_manifests(lake, spark, changed, monkeypatch):
    """As Iceberg plans them, but without a plan of all files: schema, spec, sequence and all."""
    every = planned(lake, changed)
    monkeypatch.setattr(scan_tasks, "MOST_HELD", 0)
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(changed)
        tasks, jvm = snapshot.handle.tasks, snapshot.handle.jvm
        backend.files(snapshot)
        monkeypatch.setattr(scan_tasks.Tasks, "_plan", lambda *_: pytest.fail("all files"))
        by_spec = {int(task.file().specId()): path for path, task in every.items()}

        assert len(by_spec) == 2
        for some in (sorted(by_spec.values()), *([path] for path in every)):
            found = list(tasks.find_tasks(some))
            assert as_text(jvm, found) == as_text(jvm, [every[path] for path in some])
        assert backend.read(snapshot, backend.files(snapshot)[:1]).count() > 0


def test_a_file_that_is_listed_twice_or_not_at_all_is_refused(lake, spark, changed, monkeypatch):
    """Its rows would be read twice, or lost."""
    monkeypatch.setattr(scan_tasks, "MOST_HELD", 0)
    live = lake.java(changed)
    twice = next(iter(planned(lake, changed).values())).file()
    live.newFastAppend().appendFile(twice).commit()
    with closing(IcebergBackend(spark)) as backend:
        snapshot = backend.snapshot(changed)
        backend.files(snapshot)

        with pytest.raises(UnsupportedError, match="twice"):
            snapshot.handle.tasks.find_tasks([str(twice.location())])
        with pytest.raises(UnsupportedError, match="only 0 of 1"):
            snapshot.handle.tasks.find_tasks(["gone"])


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
