"""``python -m integration.bench.millions.planning``: many files of plain Parquet, without Spark.

It prints the seconds of CPU of each step, and the largest resident set of the process in MB.
"""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from integration.bench.millions import parquet
from integration.bench.millions.facts import REQUEST
from zadapter.planning.maintenance import Limits, maintenance
from zadapter_parquet.log import stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import external_changes
from zadapter_parquet.store.local import LocalFiles

_KEYS = {("k",): pa.int64(), ("t",): pa.timestamp("us", "UTC")}
_LIMITS = Limits(job_bytes=256 << 30, files=100)


def main(folder: Path, files: int) -> None:
    """Make a log, read its head and its file table, plan, and write the stats of a commit."""
    table = _timed("make", lambda: parquet.make(None, folder, files))
    store = LocalFiles(Path(table))
    head = _timed("head", lambda: external_changes.check_folder(Log(store, table), store, table))
    listed = _timed("load", lambda: stats_table.load(store, head.parts, _KEYS, {"p": pa.int32()}))
    _timed("maintenance", lambda: maintenance(listed, REQUEST, ["p"], _LIMITS))
    removed = set(listed["path"].slice(5_000, 1_000).to_pylist())
    _timed(
        "rewritten",
        lambda: stats_table.rewrite_parts(store, head.parts, removed, listed.slice(0, 0)),
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    sys.stdout.write(f"{listed.num_rows} files, peak {peak} MB\n")


def _timed(step: str, work: Callable[[], Any]) -> Any:
    start = time.process_time()
    result = work()
    sys.stdout.write(f"{step}: {time.process_time() - start:.1f} s\n")
    return result


if __name__ == "__main__":
    with TemporaryDirectory(prefix="zadapter-files-") as place:
        main(Path(place), int(sys.argv[1]))
