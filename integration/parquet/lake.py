"""Parquet tables, looked at without zadapter: by the log's format and pyarrow alone."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq


def entries(table):
    """Every entry of the log, in order; none, if the folder is no table yet."""
    paths = sorted(Path(table, "_zadapter", "log").glob("*.json"))
    return [json.loads(path.read_text().splitlines()[0]) for path in paths]


def paths(table, version=-1):
    """The live files of a version."""
    known = entries(table)
    if not known:
        found = Path(table).rglob("*.parquet")
        return [str(path) for path in found if "_zadapter" not in path.parts]
    return [str(Path(table, path)) for path in stats(table, version)["path"].to_pylist()]


def stats(table, version=-1):
    """The stats table of a version."""
    parts = [Path(table, part["path"]) for part in entries(table)[version]["parts"]]
    return pa.concat_tables(map(pq.read_table, parts), promote_options="permissive")


def live(table, version=-1):
    """The rows of a version, partition columns by the names of folders."""
    found = paths(table, version)
    if not found:
        return pa.table({})
    hive = ds.partitioning(flavor="hive")
    return ds.dataset(found, format="parquet", partitioning=hive).to_table()
