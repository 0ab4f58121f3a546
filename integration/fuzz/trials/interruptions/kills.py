"""``kill -9`` of a migrating process: the same call completes it, with each row once."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from random import Random

import zadapter
from integration.fuzz.trials.tally import Tally
from integration.kit.lakes import settings as changed
from integration.migration.faults.test_kills import settings
from integration.migration.tables import FORMATS, Lakes

CODE = """
import json
import sys

import zadapter
import zadapter.spark

settings, table, arguments = json.loads(sys.argv[1])
spark = zadapter.spark.session(settings)
print("ready", flush=True)
zadapter.migrate(table, spark=spark, **arguments)
print("done", flush=True)
"""
CASES = [
    (*pair, mode)
    for mode in ("copy", "follow", "in_place")
    for pair in permutations(FORMATS, 2)
    if mode != "in_place" or pair[1] != "parquet"
]
"""All migrations, except in place to Parquet, which adopts no files."""


def kills(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Kill a migration of each kind at a random event of an uninterrupted one."""
    for case in CASES if scale == 1 else draw.sample(CASES, 1):
        _kill(lakes, draw, tally, *case)


def _kill(lakes: Lakes, draw: Random, tally: Tally, format_: str, to: str, mode: str) -> None:
    what = f"{format_} to {to}, {mode}"
    table, wanted = _source(lakes, format_), 300
    arguments = {"backend": format_, "to": to, "mode": "copy" if mode == "follow" else mode}
    targets = [lakes.name(to) for _ in range(2)]
    if mode == "follow":
        for target in targets:
            zadapter.migrate(table, target=target, spark=lakes.spark, **arguments)
        lakes.append(format_, table, _rows(lakes, 300, 360))
        arguments["follow"], wanted = True, 360
    before, kept = lakes.read(format_, table), _bytes(lakes, format_, table)
    if len(before) != wanted:
        raise AssertionError(f"{what}: the source has {len(before)} rows")

    with _watched(lakes, targets[0]) as uninterrupted:
        zadapter.migrate(table, target=targets[0], spark=lakes.spark, **arguments)
    last = draw.randrange(len(uninterrupted.events) + 1)
    arguments["target"] = targets[1]
    done = _killed(lakes, draw, table, arguments, last)
    at = f"{what}, killed at event {last} of {len(uninterrupted.events)}"

    state = lakes.read(to, targets[1]) if lakes.exists(to, targets[1]) else None
    if state not in ([None, before] if mode != "follow" else [_first(before), before]):
        tally.failures.append(f"{at}: {state and len(state)} rows are visible")
    if done and state != before:
        tally.failures.append(f"{at}: it was done, and there are {state and len(state)} rows")
    zadapter.migrate(table, spark=lakes.spark, **arguments)
    _compare(tally, f"{at}, new table", before, lakes.read(to, targets[1]))
    if mode != "in_place":
        _cleaned(lakes, to, targets[1])
        _compare(tally, f"{at}, new table after a clean-up", before, lakes.read(to, targets[1]))
    _compare(tally, f"{at}, old table", before, lakes.read(format_, table))
    if now := {path: size for path, size in kept.items() if _bytes_of(path) != size}:
        tally.failures.append(f"{at}: files of the old table have changed: {sorted(now)[:3]}")


def _rows(lakes: Lakes, first: int, end: int):
    return lakes.spark.range(first, end).selectExpr(
        "id AS k", "int(id % 3) AS p", "concat('t', id) AS t", "IF(id % 7 = 0, NULL, id / 3) AS f"
    )


def _source(lakes: Lakes, format_: str) -> str:
    """Make a table of six files, with types that all formats support."""
    table = lakes.make(format_, _rows(lakes, 0, 300), "p")
    if format_ == "parquet":  # this adds a log with versions
        asked = {"by": "k", "backend": "parquet", "target_file_size": "2KB", "spark": lakes.spark}
        zadapter.optimize(table, **asked)
    return table


def _first(before: list[str]) -> list[str]:
    """Return the rows of the first load."""
    return [row for row in before if int(row.split("('k', '")[1].split("'")[0]) < 300]


def _compare(tally: Tally, what: str, before: list[str], after: list[str]) -> None:
    tally.compare(
        what,
        [{"k": row.split("('k', '")[1].split("'")[0], "row": row} for row in before],
        [{"k": row.split("('k', '")[1].split("'")[0], "row": row} for row in after],
        "k",
    )


def _killed(lakes: Lakes, draw: Random, table: str, arguments: dict, last: int) -> bool:
    """Run the migration in a process, kill it after *last* events; return whether it was done."""
    said = json.dumps([settings(lakes.spark), table, arguments])
    command = [sys.executable, "-c", CODE, said]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    whole = draw.random() < 0.7  # otherwise, the JVM lives on until it notices
    with _watched(lakes, arguments["target"]) as seen:
        while child.poll() is None and len(seen.events) < last:
            seen.more.acquire(timeout=0.05)
        with suppress(ProcessLookupError):  # the process has ended
            (os.killpg if whole else os.kill)(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
    return "done" in output


class Watch:
    """Watcher of new and changed files in a table's folder or its catalog's."""

    def __init__(self, roots: list[Path]) -> None:
        self.roots, self.events = roots, list[str]()
        self.more, self.over = threading.Semaphore(0), threading.Event()
        self.seen = self.look()

    def look(self) -> set[str]:
        """Return all files with their sizes."""
        found = set()
        for root in self.roots:
            for folder, _, names in os.walk(root):
                for name in names:
                    path = os.path.join(folder, name)  # noqa: PTH118 - thousands a second
                    found.add(f"{path} {_bytes_of(path)}")
        return found

    def run(self) -> None:
        """Record new files until the end."""
        while not self.over.is_set():
            now = self.look()
            self.over.wait(0.005)  # leaves the disk to others
            for event in sorted(now - self.seen):
                self.events.append(event)
                self.more.release()
            self.seen |= now


@contextmanager
def _watched(lakes: Lakes, target: str) -> Iterator[Watch]:
    iceberg = target.startswith("ice.")
    warehouse = Path(
        lakes.spark.conf.get("spark.sql.catalog.ice.warehouse").removeprefix("file://")
    )
    roots = (
        [warehouse / target.removeprefix("ice.").replace(".", "/")] if iceberg else [Path(target)]
    )
    watch = Watch(roots)
    thread = threading.Thread(target=watch.run, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.over.set()
        thread.join()


def _bytes_of(path: str) -> int | None:
    try:
        return Path(path).stat().st_size
    except FileNotFoundError:
        return None


def _bytes(lakes: Lakes, format_: str, table: str) -> dict[str, int | None]:
    """Return the live files of the source table with their sizes."""
    backend = zadapter.files(table, backend=format_, spark=lakes.spark)
    return {path: _bytes_of(path) for path in backend["path"].to_pylist()}


def _cleaned(lakes: Lakes, format_: str, table: str) -> None:
    """Delete the leftovers of a killed process, of any age, with the format's own clean-up."""
    if format_ == "parquet":
        said = {"older_than": timedelta(0), "dry_run": False, "spark": lakes.spark}
        zadapter.vacuum(table, backend="parquet", **said)
    elif format_ == "delta":
        key = "spark.databricks.delta.retentionDurationCheck.enabled"
        with changed(lakes.spark, {key: "false"}):
            lakes.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    else:
        jvm, session = lakes.spark._jvm, lakes.spark._jsparkSession  # noqa: SLF001
        java = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, table)
        actions = jvm.org.apache.iceberg.spark.actions.SparkActions.get(session)
        now = jvm.System.currentTimeMillis() + 60_000
        actions.deleteOrphanFiles(java).olderThan(now).execute()
