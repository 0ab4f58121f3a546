"""Cost of metadata alone, without Spark: planning of many files, and the log of a folder."""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zadapter.inspection.analyzer import Subject, analysis
from zadapter.inspection.conjuncts import explain_files
from zadapter.layout.layout import Request
from zadapter.planning import file_groups
from zadapter.planning.maintenance import Limits, maintenance
from zadapter.planning.merges import groups_of
from zadapter.predicates import pruning
from zadapter.predicates.predicate import And, Comparison
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot
from zadapter_parquet.format.entries import Entry, LogOperation
from zadapter_parquet.log import commit_entries, stats_table
from zadapter_parquet.log.log import Log
from zadapter_parquet.operations import registration
from zadapter_parquet.store.local import LocalFiles


def million(files: int = 1_000_000, partitions: int = 1_000) -> pa.Table:
    """Return a file table with stats of two columns, in a number of partitions."""
    random = np.random.default_rng(0)
    types = {("a",): pa.int64(), ("b",): pa.int64()}
    made = file_stats.schema(types, {"p": pa.int64()})
    stats = []
    for parts in types:
        low = random.integers(0, 1 << 40, files)
        fields = list(made.field("stats").type[".".join(parts)].type)
        zeros = pa.array(np.zeros(files, np.int64))
        flags = pa.array(np.zeros(files, np.int8))
        columns = [pa.array(low), pa.array(low + 1_000), zeros, zeros, flags]
        stats.append(pa.StructArray.from_arrays(columns, fields=fields))
    partition = pa.array(random.integers(0, partitions, files))
    columns = [
        pa.array([f"part-{i:07d}.parquet" for i in range(files)]),
        pa.nulls(files, pa.string()),
        pa.array(random.integers(1 << 20, 1 << 27, files)),
        pa.array(np.full(files, 10_000)),
        pa.nulls(files, pa.string()),
        pa.StructArray.from_arrays([partition], fields=list(made.field("partition").type)),
        pa.StructArray.from_arrays(stats, fields=list(made.field("stats").type)),
    ]
    return pa.table(columns, schema=made)


def _by_three_columns() -> And:
    """Return ``a BETWEEN 5 AND 10000000 AND b > 7 AND p < 900``."""
    compared = (("a", ">=", 5), ("a", "<=", 10_000_000), ("b", ">", 7), ("p", "<", 900))
    return And(tuple(Comparison((name,), op, pa.scalar(v, pa.int64())) for name, op, v in compared))


def planned(files: pa.Table, request: Request) -> list[file_groups.Job]:
    """Return the jobs of one call of ``optimize``."""
    chosen = maintenance(files, request, ["p"], Limits(job_bytes=256 << 30))
    return file_groups.jobs(groups_of(chosen.rewrites), request, max_job_bytes=256 << 30)


def aged_partitions(request: Request, partitions: int = 100_000) -> pa.Table:
    """Return the files of partitions with a run of four files, one of two, and two new files."""
    files = million(8 * partitions, partitions)
    runs = [request.id + "a" * 16] * 4 + [request.id + "b" * 16] * 2 + [None] * 2
    partition = pa.array(np.repeat(np.arange(partitions), 8))
    values = {"layout": pa.array(runs * partitions, pa.string())}
    values["partition"] = pa.StructArray.from_arrays(
        [partition], fields=list(files.schema.field("partition").type)
    )
    for name, column in values.items():
        files = file_stats.replace_column(files, files.schema.field(name), column)
    return files


def planning() -> dict[str, float]:
    """Return the seconds of grouping and pruning, and the peak memory."""
    files = million()
    request = Request(columns=(("a",), ("b",)), weights=(1.0, 1.0), target_file_size=1 << 27)
    start = time.perf_counter()
    jobs = planned(files, request)
    grouped = time.perf_counter() - start
    aged = aged_partitions(request)
    start = time.perf_counter()
    planned(aged, request)
    maintained = time.perf_counter() - start
    predicate = _by_three_columns()
    start = time.perf_counter()
    pruning.matching(predicate, files)
    return {
        "files": files.num_rows,
        "jobs": len(jobs),
        "grouping, s": round(grouped, 2),
        "planning 100 000 partitions of two runs and new files, s": round(maintained, 2),
        "pruning by three columns, s": round(time.perf_counter() - start, 2),
        "peak memory of the process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }


def seen(*counts: int) -> dict[str, float]:
    """Return the seconds of analyses and explanations of many files, and the memory they add.

    The seconds of CPU are those of one core, whatever else the machine does.
    """
    found = {}
    for count in counts or (10_000, 1_000_000):
        files = million(count)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        subject = Subject(
            snapshot=_SNAPSHOT,
            files=files,
            columns=(("a",), ("b",)),
            request=Request(columns=(("a",), ("b",)), weights=(1.0, 1.0), target_file_size=1 << 27),
            table_files=count,
            limits=Limits(job_bytes=256 << 30),
            target_file_size=1 << 27,
            left_out={},
            note="",
        )
        start, busy = time.perf_counter(), time.process_time()
        analysis(subject, where=None, queries=(), row_groups=None, rewrite=subject.find_pending())
        found[f"analysis of {count} files, s"] = _since(start)
        found[f"CPU of it, {count} files, s"] = round(time.process_time() - busy, 4)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        found[f"memory that it adds, of {count} files, MB"] = more
        start = time.perf_counter()
        explain_files(_by_three_columns(), files)
        found[f"explanation of {count} files, s"] = _since(start)
    return found


_SNAPSHOT = Snapshot(
    table="t", format="delta", version=0, location="", partition={"p": pa.int64()}, id="",
    schema=pa.schema([("a", pa.int64()), ("b", pa.int64()), ("p", pa.int64())]), definition="",
    physical={}, without_stats=frozenset(),
)  # fmt: skip
EMPTY = Entry(
    version=0, previous="", transaction="0", operation=LogOperation.REGISTER, read_version=-1,
    timestamp=1, table="t", schema='{"type":"struct","fields":[]}', partition=(), parts=(),
    files=0, size=0, rows=0, oldest=0,
)  # fmt: skip


def log(versions: int = 10_000, registered: int = 10_000) -> dict[str, float]:
    """Return the seconds of log operations on local disk, without Spark."""
    with tempfile.TemporaryDirectory(prefix="zadapter-bench-") as folder:
        return {**_commits(folder, versions), **_stats(folder), **_footers(folder, registered)}


def _commits(folder: str, versions: int) -> dict[str, float]:
    files = LocalFiles(Path(folder))
    found = Log(files, "t")
    found.claim(EMPTY)
    for number in range(1, versions):
        said = {"transaction": str(number)}
        found.claim(
            commit_entries.build_next(found, found.entry(number - 1), LogOperation.VACUUM, **said)
        )
    start = time.perf_counter()
    for _ in range(10):
        head = found.head()
        transaction = f"last {head.version}"
        found.claim(
            commit_entries.build_next(found, head, LogOperation.VACUUM, transaction=transaction)
        )
    return {f"commit without data at version {versions}, s": _since(start) / 10}


def _stats(folder: str) -> dict[str, float]:
    files, table = LocalFiles(Path(folder)), million()
    parts = stats_table.rewrite_parts(files, (), set(), table)
    types, partition = {("a",): pa.int64(), ("b",): pa.int64()}, {"p": pa.int64()}
    start = time.perf_counter()
    loaded = stats_table.load(files, parts, types, partition)
    loading = _since(start)
    predicate = _by_three_columns()
    start = time.perf_counter()
    pruning.matching(predicate, loaded)
    return {"loading 1 000 000 files, s": loading, "pruning them, s": _since(start)}


def _footers(folder: str, number: int) -> dict[str, float]:
    columns = {f"c{n}": range(100) for n in range(16)}
    place = Path(folder, "many")
    place.mkdir()
    pq.write_table(pa.table(columns), place / "0.parquet")
    data = (place / "0.parquet").read_bytes()
    for at in range(1, number):
        (place / f"{at}.parquet").write_bytes(data)
    start = time.perf_counter()
    registration.read_footers(LocalFiles(place), [f"{at}.parquet" for at in range(number)])
    return {f"footers of {number} files of 16 columns, files/s": round(number / _since(start))}


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 4)
