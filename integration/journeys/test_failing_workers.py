"""A cluster whose executors die or hang in the middle of a rewrite."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from integration.journeys.settings import on_cluster
from integration.kit.standalone import cluster
from integration.kit.witnesses import of_delta, of_files, sorted_rows

ROWS = 300_000
TABLES = {"lake/delta": "delta", "ice.db.events": "iceberg", "lake/parquet": "parquet"}
CODE = """
import json, sys, threading
import zadapter, zadapter.spark

spark = zadapter.spark.session(json.loads(sys.argv[1]), formats=["delta", "iceberg", "parquet"])
store, tracker = spark._jsc.sc().statusStore(), spark.sparkContext.statusTracker()
rows = spark.range(0, 300_000, 1, 4).selectExpr("id * 7919 % 200003 AS a", "id AS b")
rows = rows.selectExpr("*", "sha2(cast(b AS string), 512) AS c")
rows.write.format("delta").save("lake/delta")
rows.write.parquet("lake/parquet")
spark.sql("CREATE NAMESPACE ice.db")
rows.writeTo("ice.db.events").create()

def stages():
    for job in tracker.getActiveJobsIds():
        described = store.job(job).description()
        if described.isDefined() and described.get().startswith("zadapter: write"):
            found = map(tracker.getStageInfo, tracker.getJobInfo(job).stageIds)
            yield from (stage for stage in found if stage and stage.numTasks > 4)

def watch():
    told = []
    is_last = False
    while not is_last:
        is_last = ended.wait(0.02)
        for stage in stages():
            seen.add(stage.stageId)
            if not told and stage.numCompletedTasks and stage.numActiveTasks > 1:
                told.append("writing")
                print("writing", flush=True)
        if told == ["writing"] and any(map(repeated, map(store.lastStageAttempt, seen))):
            told.append("repeated")
            print("repeated", flush=True)

def repeated(stage):
    running = stage.numActiveTasks() + stage.numCompleteTasks()
    lost = stage.numFailedTasks() + stage.numKilledTasks()
    return running > stage.numTasks() or lost or stage.attemptId()

for table, backend in json.loads(sys.argv[2]).items():
    seen, ended = set(), threading.Event()
    watcher = threading.Thread(target=watch)
    watcher.start()
    arguments = {"backend": backend, "spark": spark}
    try:
        report = zadapter.optimize(table, by="a", target_file_size="1MB", **arguments)
    finally:
        ended.set()
        watcher.join()
    files = zadapter.files(table, **arguments)
    print(json.dumps([report.rows, report.share_after, files["path"].to_pylist()]), flush=True)
    sys.stdin.readline()
spark.stop()
"""


@pytest.fixture
def workers(user, tmp_path_factory):
    """The address of a cluster of two workers, and the workers."""
    folder = tmp_path_factory.mktemp("cluster")
    bare = user.environment()
    del bare["PYTHONPATH"]
    with cluster(folder, bare, cores=(1, 1)) as found:
        yield found


@contextmanager
def driver(user, master, more):
    """Run the driver's program, and yield the process."""
    script = user.folder / "driver.py"
    script.write_text(CODE, encoding="utf-8")
    words = [script, json.dumps(on_cluster(user.folder, master) | more), json.dumps(TABLES)]
    with (user.folder / "driver.log").open("w") as log, subprocess.Popen(
        [sys.executable, *map(str, words)], cwd=user.folder, text=True, stderr=log,
        env=user.environment(PYSPARK_PYTHON="/no/python"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def said(process, user):
    """Return the next line of the driver."""
    line = process.stdout.readline().strip()
    assert line, (user.folder / "driver.log").read_text()[-5_000:]
    return line


def rewritten(user, process, harm):
    """Harm the cluster until tasks are repeated as each table is written, and yield what it is."""
    for table in TABLES:
        assert said(process, user) == "writing"
        with harm():
            assert said(process, user) == "repeated"
        told = json.loads(said(process, user))
        process.stdin.write("\n")
        process.stdin.flush()
        yield table, *told


def check(user, table, rows, share, files):
    """Each row is there once, and no file but those of the table's versions."""
    wanted = sorted_of(range(ROWS))
    if table == "lake/delta":
        assert of_delta(str(user.folder / table)) == wanted
        folder = user.folder / table
        named = named_by_delta(folder)
        found = {
            str(path.relative_to(user.folder / table)) for path in parquet(user.folder / table)
        }
    elif table == "lake/parquet":
        files = [file.removeprefix("file:") for file in files]
        assert of_files(files) == wanted
        named = set(files)
        found = {str(path) for path in (user.folder / table).rglob("*.rows")}
    else:
        catalog = SqlCatalog("ice", uri=f"sqlite:///{user.folder}/iceberg.db")
        loaded = catalog.load_table("db.events")
        assert sorted_rows(loaded.scan().to_arrow()) == wanted
        named = set(loaded.inspect.all_data_files()["file_path"].to_pylist())
        named = {path.removeprefix("file:") for path in named}
        found = {str(path) for path in parquet(Path(loaded.location().removeprefix("file:")))}
    assert (rows, share < 0.2) == (ROWS, True)
    assert found == named, (sorted(found - named), sorted(named - found))


def parquet(folder):
    return folder.rglob("*.parquet")


def sorted_of(numbers):
    return [(b * 7919 % 200_003, b) for b in numbers]


def named_by_delta(table):
    lines = [
        json.loads(line)
        for entry in (table / "_delta_log").glob("*.json")
        for line in entry.read_text().splitlines()
    ]
    return {line["add"]["path"] for line in lines if "add" in line}


def test_an_executor_dies(user, workers):
    """Its tasks and its shuffle files are made again, and what it left half-written is removed."""
    master, (first, _) = workers
    with driver(user, master, {}) as process:
        for told in rewritten(user, process, first.executors_killed):
            check(user, *told)


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1",
    "spark.speculation.efficiency.enabled": "false",
    "spark.shuffle.service.enabled": "true",  # the executor that hangs would serve none
}


def test_an_executor_hangs(user, workers):
    """Spark runs its task a second time elsewhere, and one of the two files is the table's."""
    master, (first, _) = workers
    served = {"spark.shuffle.service.port": str(first.shuffle_port)}
    with driver(user, master, SPECULATION | served) as process:
        for told in rewritten(user, process, first.executors_stopped):
            check(user, *told)
