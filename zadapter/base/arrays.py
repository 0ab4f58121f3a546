"""Large Arrow data without needless copies, and columns of nothing without memory.

A column of ten million files has up to some GB. ``ChunkedArray.combine_chunks`` copies it even if
it is one chunk, and ``Table.take`` joins all chunks of each column before it takes a row.
"""

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints


def as_array(values: pa.ChunkedArray) -> pa.Array:
    """Return *values* as one array, which shares their memory if they are one chunk."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def zeros(count: int, type_: pa.DataType) -> pa.Array:
    """Return zeros of a type of 64 bits; of many, the system has one page for all."""
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(np.zeros(count, np.int64))])


def no_texts(count: int) -> pa.StringArray:
    """Return texts that are null, of one page as :func:`zeros` are."""
    validity, offsets = np.zeros(-(-count // 8), np.uint8), np.zeros(count + 1, np.int32)
    buffers = [pa.py_buffer(each) for each in (validity, offsets, b"")]
    return pa.Array.from_buffers(pa.string(), count, buffers, count)


def take_rows(table: pa.Table, at: Ints) -> pa.Table:
    """Return the rows of *table* at the indices *at*, in their order."""
    if all(column.num_chunks <= 1 for column in table.columns):
        return table.take(pa.array(at))
    order = np.argsort(at, kind="stable")
    batches = table.to_batches()
    starts = np.cumsum([0, *map(len, batches)])
    edges = np.searchsorted(at[order], starts).tolist()
    found = [
        batch.take(pa.array(at[order[edge:stop]] - start))
        for batch, start, edge, stop in zip(batches, starts, edges, edges[1:], strict=False)
        if edge < stop
    ]
    places = np.empty(len(at), np.int64)
    places[order] = np.arange(len(at))
    return pa.Table.from_batches(found, table.schema).combine_chunks().take(pa.array(places))
