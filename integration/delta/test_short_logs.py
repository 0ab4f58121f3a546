"""Short logs are replayed on the driver, and tell the files that Delta's state has."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from integration.kit.lakes import settings
from tests.kit.variants import slow
from zadapter_delta import DeltaBackend
from zadapter_delta.jvm import Jvm
from zadapter_delta.table import live_files
from zadapter_delta.table.live_files import FEW
from zadapter_delta.table.lookup import current, locate
from zadapter_delta.table.replay import replay_commits

TOP_LEVEL = "spark.databricks.delta.checkpointV2.topLevelFileFormat"


@pytest.fixture
def table(lake, spark):
    """A table whose files are added, removed, marked, tagged, and restored."""
    rows = spark.range(400).selectExpr("id a", "concat('s', id) s", "concat('p ä/', id % 3) p")
    path = lake.make(rows, partition_by=["p"], enableDeletionVectors="true")
    name = f"delta.`{path}`"
    lake.sql(f"DELETE FROM {name} WHERE a % 50 = 3")
    lake.optimize(path, where="p = 'p ä/0'")
    lake.sql(f"DELETE FROM {name} WHERE a % 50 = 7 AND p LIKE '%1'")
    rows.limit(9).write.format("delta").mode("append").save(path)
    lake.sql(f"DELETE FROM {name} WHERE p LIKE '%2'")
    lake.sql(f"UPDATE {name} SET s = 'new' WHERE a = 11")
    return path


def snapshot_of(jvm, path):
    return current(jvm, path, locate(jvm, path))


def facts(jvm, adds):
    """Return all that actions say, by file; an empty map of tags says nothing."""
    every = [{**add, "tags": add.get("tags") or None} for add in jvm.to_python(adds)]
    return sorted(every, key=lambda add: (add["path"], str(add.get("deletionVector"))))


def jobs(spark):
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - there is no public way
    context.listenerBus().waitUntilEmpty()
    return context.statusStore().jobsList(spark._jvm.java.util.ArrayList()).size()  # noqa: SLF001


@pytest.mark.parametrize("checkpoint", [False, *slow(True)])  # noqa: FBT003 - values
def test_the_files_are_those_of_the_state(lake, spark, table, checkpoint):
    """With all that their actions say, and without a job."""
    jvm = Jvm(spark)
    if checkpoint:
        snapshot = snapshot_of(jvm, table)
        snapshot.deltaLog().checkpoint(snapshot, jvm.option())
        lake.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 4")
        lake.sql(f"DELETE FROM delta.`{table}` WHERE a % 50 = 9")
    snapshot = snapshot_of(jvm, table)
    assert (int(snapshot.checkpointProvider().version()) > 0) is checkpoint
    before = jobs(spark)

    found = replay_commits(jvm, snapshot, FEW)

    assert jobs(spark) == before
    assert facts(jvm, found) == facts(jvm, snapshot.allFiles().collectAsList())
    paths = [add["path"] for add in jvm.to_python(found)]
    assert paths == sorted(paths)


@pytest.mark.parametrize(
    "properties",
    [
        {"checkpointPolicy": "v2"},
        {"checkpoint.writeStatsAsJson": "false", "checkpoint.writeStatsAsStruct": "true"},
    ],
    ids=["of several files", "without JSON"],
)
def test_a_checkpoint_that_is_not_simple_is_left_to_the_state(lake, spark, properties):
    """One of several files, and one whose stats are no JSON."""
    path = lake.make(spark.range(9).toDF("a"), checkpointInterval="1", **properties)
    lake.sql(f"DELETE FROM delta.`{path}` WHERE a = 3")
    jvm = Jvm(spark)
    snapshot = snapshot_of(jvm, path)
    assert int(snapshot.checkpointProvider().version()) >= 0

    assert replay_commits(jvm, snapshot, FEW) is None

    with closing(DeltaBackend(spark)) as backend:
        read = backend.snapshot(path)
        assert backend.read(read, backend.files(read)).count() == 8


def test_a_file_that_is_removed_by_another_spelling_is_gone(lake, spark):
    """A relative path may be spelled in several ways, which Delta's state takes for one."""
    path = lake.make(spark.range(9).repartition(3).toDF("a"))
    first, *rest = [each["add"] for each in lake.log(path)[0] if "add" in each]
    gone = {"path": f"./{first['path']}", "deletionTimestamp": 1, "dataChange": False}
    entry = Path(path) / "_delta_log" / f"{1:020d}.json"
    entry.write_text("\n" + json.dumps({"remove": gone}) + "\n\n")

    with closing(DeltaBackend(spark)) as backend:
        files = backend.files(backend.snapshot(path))

    assert sorted(files["path"].to_pylist()) == sorted(add["path"] for add in rest)


def test_a_manifest_that_is_named_as_a_classic_checkpoint_hides_no_file(lake, spark):
    """As Delta's clean-up makes them: all files are in sidecars."""
    with settings(spark, {TOP_LEVEL: "parquet"}):
        path = lake.make(spark.range(9).toDF("a"), checkpointInterval="1", checkpointPolicy="v2")
        lake.sql(f"DELETE FROM delta.`{path}` WHERE a = 3")
    log = Path(path) / "_delta_log"
    (log / "_last_checkpoint").unlink()
    for file in log.glob("*.crc"):
        file.unlink()
    for manifest in log.glob("*.checkpoint.*-*.parquet"):
        manifest.rename(log / f"{manifest.name.partition('.')[0]}.checkpoint.parquet")
    assert list(log.glob("*.checkpoint.parquet"))

    with closing(DeltaBackend(spark)) as backend:
        read = backend.snapshot(path)
        assert backend.read(read, backend.files(read)).count() == 8


def test_a_replay_that_contradicts_the_checksum_is_not_believed(spark, table, monkeypatch):
    """Delta's writers state beside each version how many files it has, and how many bytes."""

    def incomplete(jvm, snapshot, most):
        adds = replay_commits(jvm, snapshot, most)
        adds.remove(adds.get(0))
        return adds

    with closing(DeltaBackend(spark)) as backend:
        complete = backend.files(backend.snapshot(table), [("a",)])
    monkeypatch.setattr(live_files, "replay_commits", incomplete)

    with closing(DeltaBackend(spark)) as backend:
        found = backend.files(backend.snapshot(table), [("a",)])

    assert found.sort_by("path").equals(complete.sort_by("path"))
