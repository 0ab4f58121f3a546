"""Layouts, snapshots and file tables for tests."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from zadapter.base.names import leaves, split
from zadapter.layout import assign
from zadapter.layout.build import fit
from zadapter.layout.layout import Curve, Request
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot

MIB = 1 << 20


def request(columns=1, *, weights=None, curve="adaptive", target_file_size=MIB, row_groups=8):
    """Return a request for the columns c0, c1 and so on."""
    return Request(
        columns=tuple((f"c{number}",) for number in range(columns)),
        weights=tuple(weights or [1.0] * columns),
        curve=Curve(curve),
        target_file_size=target_file_size,
        row_groups=row_groups,
    )


def fitted(columns, files, *, roots=((),), root_of=None, **options):
    """Fit a layout to *columns*, NumPy or Arrow arrays, with *files* files per root."""
    return fit(
        request(len(columns), **options),
        [pa.array(column) for column in columns],
        roots,
        np.zeros(len(columns[0]), np.int64) if root_of is None else root_of,
        [files] * len(roots) if isinstance(files, int) else files,
    )


def placed(layout, columns, root_of=None):
    """Return the leaf and the file of each row."""
    roots = np.zeros(len(columns[0]), np.int64) if root_of is None else root_of
    leaf = assign.leaves(layout, [pa.array(column) for column in columns], roots)
    return leaf, assign.files(layout, leaf, np.arange(len(leaf)))


def snapshot(schema, partition=()):
    """Return a snapshot of a table with these columns; *partition* maps names to types."""
    return Snapshot(
        table="t",
        format="delta",
        version=1,
        location="file:/t",
        schema=schema,
        partition=dict(partition),
        id="t",
        definition="",
        physical={parts: parts for parts, _ in leaves(schema)},
        without_stats=frozenset(),
    )


def file_table(paths, *, sizes=MIB, rows=1_000, layouts=None, deletes=None, partition=(), stats=()):
    """Return a file table; *partition* maps names to arrays, *stats* names to (min, max, nulls).

    NaN counts may follow the null counts.
    """
    partition, stats = dict(partition), dict(stats)
    types = {split(name): bounds[0].type for name, bounds in stats.items()}
    schema = file_stats.schema(types, {name: values.type for name, values in partition.items()})
    count = len(paths)
    unknown = pa.nulls(count, pa.int64())
    exact = pa.array(np.zeros(count, np.int8))
    children = [
        file_stats.structs([*bounds, *[unknown] * (4 - len(bounds)), exact], child.type, count)
        for bounds, child in zip(stats.values(), schema.field("stats").type, strict=True)
    ]
    columns = [
        pa.array(paths, pa.string()),
        pa.array(deletes or [None] * count, pa.string()),
        pa.array(np.broadcast_to(sizes, count), pa.int64()),
        pa.array(np.broadcast_to(rows, count), pa.int64()),
        pa.array(layouts or [None] * count, pa.string()),
        file_stats.structs(list(partition.values()), schema.field("partition").type, count),
        file_stats.structs(children, schema.field("stats").type, count),
    ]
    return pa.table(columns, schema=schema)


@st.composite
def tables(draw):
    """Generate columns of several kinds: smooth, few values, one heavy value, nulls, NaN."""
    rows = draw(st.integers(1, 300))
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    smooth = random.random(rows)
    sorts = {
        "smooth": smooth,
        "few": random.integers(0, 4, rows),
        "zipf": random.zipf(1.4, rows),
        "heavy": np.where(random.random(rows) < 0.6, 0.5, smooth),
        "nan": np.where(random.random(rows) < 0.3, np.nan, smooth),
    }
    chosen = draw(st.lists(st.sampled_from([*sorts]), min_size=1, max_size=3))
    nulls = [draw(st.sampled_from([0.0, 0.2, 0.9])) for _ in chosen]
    return [
        pa.array(sorts[sort], mask=random.random(rows) < share)
        for sort, share in zip(chosen, nulls, strict=True)
    ]
