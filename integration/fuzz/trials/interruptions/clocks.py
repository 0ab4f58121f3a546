"""A clean-up by a machine whose clock is days ahead or behind, while a run on another one writes.

``faketime`` sets the clock of a process, and ``unshare`` gives it a namespace of its own, in which
it cannot see the other processes, as on another machine.
"""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from shutil import which

from integration.fuzz.trials.tally import Tally
from integration.kit.kills import data_files, is_of_rows
from integration.migration.faults.test_kills import settings
from integration.migration.tables import FORMATS, Lakes

DAYS = (8, -8, 400)
OPTIMIZE = """
import json
import sys

import zadapter
import zadapter.spark
from zadapter.backend.plugins import load
from zadapter.errors import ConflictError

settings, table, format_, waits = json.loads(sys.argv[1])
spark = zadapter.spark.session(settings)


class Waiting(load(format_)):
    def commit(self, change):
        print("staged", flush=True)
        sys.stdin.readline()
        return super().commit(change)


backend = Waiting if waits else format_
try:
    print(zadapter.optimize(table, by="k", force=True, backend=backend, spark=spark))
except ConflictError:
    print("lost a race")
"""


def clocks(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Optimize a table of each format while another run of it waits right before its commit."""
    for tool in ("faketime", "unshare"):
        if which(tool) is None:
            raise RuntimeError(f"install {tool}")
    for format_ in FORMATS if scale == 1 else draw.sample(FORMATS, 1):
        for days in DAYS if scale == 1 else draw.sample(DAYS, 1):
            _together(lakes, tally, format_, days)


def _together(lakes: Lakes, tally: Tally, format_: str, days: int) -> None:
    what = f"{format_}, {days} days"
    rows = lakes.spark.range(300).selectExpr("id AS k", "concat('t', id) AS t")
    table = lakes.make(format_, rows)
    before, folder = lakes.read(format_, table), _folder(lakes, table)
    old = data_files(folder)
    waiting = _started(lakes, table, format_, waits=True)
    while "staged" not in waiting.stdout.readline():
        if waiting.poll() is not None:
            raise RuntimeError(f"{what}: {waiting.stderr.read()[-500:]}")
    staged = {path for path in data_files(folder) - old if is_of_rows(path)}
    other = ["faketime", "-f", f"{days:+d}d", "unshare", "--pid", "--fork", "--mount-proc"]
    output, errors = _started(lakes, table, format_, *other, waits=False).communicate()
    if "committed" not in output:
        tally.failures.append(f"{what}: {errors[-500:]}")
    if not staged or (gone := staged - data_files(folder)):
        tally.failures.append(f"{what}: of {len(staged)} files of a live run, gone: {gone}")
    waiting.communicate("\n")
    rows_now = lakes.read(format_, table)
    tally.compare(what, [{"row": row} for row in before], [{"row": row} for row in rows_now], "row")


def _started(
    lakes: Lakes, table: str, format_: str, *before: str, waits: bool
) -> "subprocess.Popen[str]":
    said = json.dumps([settings(lakes.spark), table, format_, waits])
    return subprocess.Popen(
        [*before, sys.executable, "-c", OPTIMIZE, said],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _folder(lakes: Lakes, table: str) -> Path:
    if not table.startswith("ice."):
        return Path(table)
    return Path(str(lakes.iceberg(table).location()).removeprefix("file:"))
