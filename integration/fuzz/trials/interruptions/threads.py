"""Two threads of one application that commit to a table on a slow disk: no commit is lost.

Each rename within a log takes three seconds, which is longer than an append. So another thread
comes to its own rename meanwhile, unless something keeps it waiting. A library that the process
loads first delays renames, so the rounds have a process of their own.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Barrier, Event, Thread
from typing import Any

import zadapter
import zadapter.spark
from integration.fuzz.trials.tally import Tally
from integration.migration.tables import Lakes
from zadapter.errors import ConflictError

SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
static void wait_in_logs(const char *path) {
  if (strstr(path, "/_delta_log/") || strstr(path, "/metadata/") || strstr(path, "/_zadapter/log/"))
    if (!strstr(path, ".crc")) sleep(3);
}
int rename(const char *from, const char *to) {
  int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  wait_in_logs(to);
  return next(from, to);
}
int link(const char *from, const char *to) {
  int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
  wait_in_logs(to);
  return next(from, to);
}
"""
ROWS, REWRITES = 60, 2
FORMATS = ["delta", "iceberg", "parquet"]
MODULE = "integration.fuzz.trials.interruptions.threads"


def threads(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Rewrite a table in one thread, and append to it or rewrite it in another one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise AssertionError("this trial slows down renames by a library: install a C compiler")
    with TemporaryDirectory(prefix="zadapter-threads-") as folder:
        source, library = Path(folder, "slow.c"), Path(folder, "slow.so")
        source.write_text(SLOW, encoding="utf-8")
        built = [compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
        subprocess.run(built, check=True, timeout=60)
        rounds = "1" if scale < 1 else "2"
        command = [sys.executable, "-m", MODULE, folder, rounds, str(draw.random())]
        variables = os.environ | {"LD_PRELOAD": str(library)}
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=1_200, check=False
        )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not found:
        raise AssertionError(f"the process of the threads failed: {done.stderr[-2_000:]}")
    for each in found:
        wanted, rows = ([{"a": a} for a in each[key]] for key in ("wanted", "rows"))
        tally.compare(each["what"], wanted, rows, "a")
        tally.refused.update(each["refused"])
        tally.failures += each["failures"]
        if each["versions"] != each["commits"]:
            tally.failures.append(
                f"{each['what']}: {each['commits']} commits, {each['versions']} versions"
            )


class Table:
    """A table of one format, and what its writers did."""

    def __init__(self, spark: Any, format_: str, name: str) -> None:
        self.spark, self.format, self.name = spark, format_, name
        self.wanted, self.next = list[int](), count()
        self.commits, self.refused, self.failures = list[int | None](), list[str](), list[str]()
        rows = self._rows().repartition(2)
        if format_ == "iceberg":
            rows.writeTo(name).using("iceberg").create()
        else:
            rows.write.format(format_).save(name)
        if format_ == "parquet":  # the first change adds the log
            self.append()
        self.commits = [None] * self.versions()

    def append(self) -> None:
        """Append rows as the format's users do."""
        rows = self._rows().coalesce(1)
        if self.format == "parquet":
            zadapter.append(self.name, rows, backend="parquet", spark=self.spark)
        elif self.format == "iceberg":
            rows.writeTo(self.name).append()
        else:
            rows.write.format("delta").mode("append").save(self.name)
        self.commits.append(None)

    def rewrite(self) -> None:
        """Rewrite all files; who loses against another rewrite has changed nothing."""
        try:
            done = zadapter.optimize(
                self.name, by="a", force=True, backend=self.format, spark=self.spark
            )
        except ConflictError as error:
            self.refused.append(f"{self.format}: {type(error).__name__}")
        else:
            self.commits += done.versions

    def versions(self) -> int:
        """Return the number of versions that the table has."""
        if self.format == "iceberg":
            return int(self.spark.table(f"{self.name}.snapshots").count())
        log = {"delta": "_delta_log", "parquet": "_zadapter/log"}[self.format]
        return len(list(Path(self.name, log).glob("[0-9]*.json")))

    def rows(self) -> list[int]:
        """Return the rows that the table has, without what a session has cached."""
        if self.format == "iceberg":
            self.spark.sql(f"REFRESH TABLE {self.name}")
            found = self.spark.table(self.name)
        elif self.format == "parquet":
            found = zadapter.read(self.name, backend="parquet", spark=self.spark)
        else:
            found = self.spark.read.format("delta").load(self.name)
        return sorted(row.a for row in found.collect())

    def _rows(self) -> Any:
        first = next(self.next) * ROWS
        self.wanted += range(first, first + ROWS)
        return self.spark.range(first, first + ROWS).selectExpr("id AS a")


def at_once(table: Table, rival: Callable[[], None]) -> None:
    """Rewrite the table in one thread, and let a rival go on in another one meanwhile."""
    done, barrier = Event(), Barrier(2)

    def rewrite() -> None:
        for _ in range(REWRITES):
            table.rewrite()

    def go_on() -> None:
        while not done.is_set():
            rival()

    works = (rewrite, go_on)
    running = [Thread(target=_run, args=[table, barrier, done, work]) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def _run(table: Table, barrier: Barrier, done: Event, work: Callable[[], None]) -> None:
    barrier.wait()
    try:
        work()
    except Exception as error:  # noqa: BLE001 - it is what the trial looks for
        table.failures.append(f"{table.format}: {type(error).__name__}: {error}"[:500])
    finally:
        done.set()


def rows_of(table: Table) -> list[int]:
    """Return the rows of a table, none if it cannot be read any more."""
    try:
        return table.rows()
    except Exception as error:  # noqa: BLE001 - it is what the trial looks for
        table.failures.append(f"{table.format} cannot be read: {error}"[:500])
        return []


def main(folder: str, rounds: int, seed: str) -> None:
    """Run the rounds, and print what came of each as a line of JSON."""
    draw = Random(seed)
    prefix = "spark.sql.catalog.ice"
    settings = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "hadoop",
        f"{prefix}.warehouse": f"file://{folder}/ice",
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.log.level": "ERROR",
    }
    spark = zadapter.spark.session(settings)
    for number in range(rounds):
        for format_ in draw.sample(FORMATS, len(FORMATS)):
            for rival in ("append", "rewrite"):
                what = f"{format_}, {rival} beside a rewrite, round {number}"
                name = f"{rival}{number}"
                named = f"ice.db.{name}" if format_ == "iceberg" else f"{folder}/{format_}-{name}"
                table = Table(spark, format_, named)
                at_once(table, table.append if rival == "append" else table.rewrite)
                found = {
                    "what": what,
                    "wanted": sorted(table.wanted),
                    "rows": rows_of(table),
                    "commits": len(table.commits),
                    "versions": table.versions(),
                    "refused": table.refused,
                    "failures": table.failures,
                }
                print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
