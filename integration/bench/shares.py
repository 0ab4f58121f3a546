"""Share of all rows that min/max cannot exclude, from the footers written."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zadapter import predict
from zadapter.filestats import column_type

SAMPLE = 100_000


def sample(folder, keys):
    """Key values of rows drawn at random from the input: the same for every contender."""
    table = pq.read_table(folder, columns=keys)
    picked = np.random.default_rng(1).choice(len(table), min(SAMPLE, len(table)), replace=False)
    return [table[key].take(pa.array(picked)).combine_chunks() for key in keys]


def _stats(chunks, name, type_):
    """One column's bounds, a row for each list of row groups."""
    low, high, nulls = [], [], []
    for groups in chunks:
        at = [g.schema_index[name] for g in groups]
        stats = [g.metadata.column(i).statistics for g, i in zip(groups, at, strict=True)]
        low.append(min(s.min for s in stats))
        high.append(max(s.max for s in stats))
        nulls.append(sum(s.null_count for s in stats))
    flags = pa.array([0] * len(low), pa.int8())
    nans = pa.nulls(len(low), pa.int64())
    arrays = [pa.array(low, type_), pa.array(high, type_), pa.array(nulls, pa.int64()), nans, flags]
    return pa.StructArray.from_arrays(arrays, fields=list(column_type(type_)))


class _Group:
    def __init__(self, metadata, names):
        self.metadata, self.schema_index = metadata, names


def _groups(path):
    metadata = pq.read_metadata(path)
    names = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    return [_Group(metadata.row_group(i), names) for i in range(metadata.num_row_groups)]


def shares(paths, keys, sampled):
    """Files, row groups, megabytes, and the share of rows to read by file and by row group."""
    files = [_groups(file) for file in paths]
    groups = [[group] for file in files for group in file]
    found = {}
    for name, chunks in (("by file", files), ("by row group", groups)):
        rows = np.array([sum(g.metadata.num_rows for g in chunk) for chunk in chunks])
        stats = [_stats(chunks, key, s.type) for key, s in zip(keys, sampled, strict=True)]
        ranks, boxes = predict.boxes_of_stats(sampled, stats, rows)
        found[name] = predict.share_read(boxes, predict.queries(ranks))
    megabytes = sum(_size(file) for file in paths)
    return {"files": len(files), "row groups": len(groups), "MB": megabytes / 2**20, **found}


def _size(path):
    with pa.OSFile(path) as file:
        return file.size()
