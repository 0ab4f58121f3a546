"""Planning a table of many files, synthetic, without Spark."""

import resource
import time

import numpy as np
import pyarrow as pa

from zadapter import filestats, grouping, pruning, sql
from zadapter.layout import Request


def million(files=1_000_000, partitions=1_000):
    """Return a file table with stats of two columns, in so many partitions."""
    random = np.random.default_rng(0)
    types = {("a",): pa.int64(), ("b",): pa.int64()}
    made = filestats.schema(types, {"p": pa.int64()})
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


def planning():
    """Return the seconds that grouping and pruning take, and the memory at its highest."""
    files = million()
    request = Request(columns=(("a",), ("b",)), weights=(1.0, 1.0), target_file_size=1 << 27)
    start = time.perf_counter()
    jobs = grouping.jobs(files, request, ["p"], {}, max_group_bytes=256 << 30, force=False)
    grouped = time.perf_counter() - start
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("p", pa.int64())])
    predicate = sql.parse("a BETWEEN 5 AND 10000000 AND b > 7 AND p < 900", schema)
    start = time.perf_counter()
    pruning.matching(predicate, files)
    return {
        "files": files.num_rows,
        "jobs": len(jobs),
        "grouping, s": round(grouped, 2),
        "pruning by three columns, s": round(time.perf_counter() - start, 2),
        "peak memory of the process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        // 1024,
    }
