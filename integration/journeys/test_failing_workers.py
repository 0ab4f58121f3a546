"""A cluster whose executors die, hang or lose files in the middle of a rewrite."""

import json
import subprocess
import sys
from contextlib import contextmanager

import pytest

from integration.journeys.cluster_tables import OnDisk, OnS3

ROWS = 300_000
CODE = """
import json, sys, threading
import zadapter, zadapter.spark

settings, tables, stores = map(json.loads, sys.argv[1:])
spark = zadapter.spark.session(settings, formats=["delta", "iceberg", "parquet"], stores=stores)
store, tracker = spark._jsc.sc().statusStore(), spark.sparkContext.statusTracker()
rows = spark.range(0, 300_000, 1, 4).selectExpr("id * 7919 % 200003 AS a", "id AS b")
rows = rows.selectExpr("*", "sha2(cast(b AS string), 512) AS c")
spark.sql("CREATE NAMESPACE ice.db")
for table, backend in tables.items():
    if backend == "iceberg":
        rows.writeTo(table).create()
    else:
        rows.write.format(backend).save(table)
print("made", flush=True)

def stages():
    for job in tracker.getActiveJobsIds():
        described = store.job(job).description()
        if described.isDefined() and described.get().startswith("zadapter: write"):
            found = map(tracker.getStageInfo, tracker.getJobInfo(job).stageIds)
            yield from (stage for stage in found if stage and stage.numTasks > 4)

def watch(told, ended):
    seen, is_last = set(), False
    while not is_last:
        is_last = ended.wait(0.02)
        for stage in stages():
            seen.add(stage.stageId)
            if not told and stage.numCompletedTasks and is_on_both(stage):
                tell("writing", told)
        if told == ["writing"] and any(map(repeated, map(store.lastStageAttempt, seen))):
            tell("repeated", told)

def tell(word, told):
    told.append(word)
    print(word, flush=True)

def is_on_both(stage):
    tasks = store.taskList(stage.stageId, stage.currentAttemptId, 1_000)
    tasks = [tasks.apply(at) for at in range(tasks.size())]
    return len({task.host() for task in tasks if task.status() == "RUNNING"}) == 2

def repeated(stage):
    running = stage.numActiveTasks() + stage.numCompleteTasks()
    lost = stage.numFailedTasks() + stage.numKilledTasks()
    return running > stage.numTasks() or lost or stage.attemptId()

def rewrite(table, backend):
    told, ended = [], threading.Event()
    watcher = threading.Thread(target=watch, args=(told, ended))
    watcher.start()
    keys = {"by": "a", "target_file_size": "1MB", "force": True}
    try:
        report = zadapter.optimize(table, **keys, backend=backend, spark=spark)
    finally:
        ended.set()
        watcher.join()
    return report, told[1:]

for table, backend in tables.items():
    every = []
    for _ in range(9):
        report, harmed = rewrite(table, backend)
        files = zadapter.files(table, backend=backend, spark=spark)["path"].to_pylist()
        every += files
        if harmed:
            break
        print("ended", flush=True)  # before it was harmed
    else:
        raise SystemExit(f"{table} was never harmed")
    print(json.dumps([[report.rows_added, report.share_after], files, every]), flush=True)
    sys.stdin.readline()
spark.stop()
"""


@contextmanager
def driver(user, lake, settings):
    """Run the driver's program, and yield the process."""
    script = user.folder / "driver.py"
    script.write_text(CODE, encoding="utf-8")
    words = [script, *map(json.dumps, (settings, lake.tables, lake.stores))]
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


def rewritten(user, lake, process, harm):
    """Harm the cluster until tasks are repeated as each table is written, and yield what it is."""
    assert said(process, user) == "made"
    made = {table: lake.found(table) for table in lake.tables}
    for table in lake.tables:
        while not (said(process, user) == "writing" and harmed(user, process, harm)):
            pass  # it ended before that
        told = json.loads(said(process, user))
        process.stdin.write("\n")
        process.stdin.flush()
        yield table, made[table], *told


def harmed(user, process, harm):
    """Harm the cluster, and return whether tasks are repeated for that."""
    with harm():
        return said(process, user) == "repeated"


def check(lake, table, made, reported, files, every):
    """Each row is there once, and no file was added but *every* one of the table's versions."""
    wanted = [(b * 7919 % 200_003, b) for b in range(ROWS)]
    found, named = lake.found(table), lake.named(table, every)
    assert lake.rows(table, files) == wanted
    rows, share = reported
    assert (rows, share < 0.2) == (ROWS, True)
    assert named <= found
    assert found <= named | made  # as it was made, Spark may have written a file twice


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["executors_killed", "shuffle_files_lost"])
def test_an_executor_dies_or_loses_files(user, workers, harm):
    """Its tasks and its shuffle files are made again, and what it left half-written is removed."""
    master, (first, _) = workers
    lake = OnDisk(user.folder)
    with driver(user, lake, lake.settings(master)) as process:
        for told in rewritten(user, lake, process, getattr(first, harm)):
            check(lake, *told)


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1",
    "spark.speculation.efficiency.enabled": "false",
    "spark.shuffle.service.enabled": "true",  # the executor that hangs would serve none
}


@pytest.mark.slow
@pytest.mark.parametrize("store", ["disk", "s3"])
def test_an_executor_hangs(user, s3, workers, store):
    """Spark runs its task a second time elsewhere, and one of the two files is the table's."""
    master, (first, _) = workers
    lake = OnDisk(user.folder) if store == "disk" else OnS3(user.folder, s3)
    served = {"spark.shuffle.service.port": str(first.shuffle_port)}
    with driver(user, lake, lake.settings(master) | SPECULATION | served) as process:
        for told in rewritten(user, lake, process, first.executors_stopped):
            check(lake, *told)
