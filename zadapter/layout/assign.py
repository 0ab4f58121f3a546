"""Assignment of rows to leaves and files over Arrow arrays: the specification.

``zadapter.spark.layout_expression`` computes the same numbers with Spark expressions; a property
test compares the two.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked, narrow, rank
from zadapter.layout.layout import Layout
from zadapter.layout.levels import Level


def leaves(layout: Layout, columns: Sequence[pa.Array | Ranked], root_of: Ints) -> Ints:
    """Return the leaf of each row.

    Args:
        layout: The layout.
        columns: The values, one array per key column, or their ranks.
        root_of: Root of each row.
    """
    return nodes(layout.levels, columns, root_of)


def nodes(levels: Sequence[Level], columns: Sequence[pa.Array | Ranked], root_of: Ints) -> Ints:
    """Return the node of each row below some levels of a layout."""
    node, ranked = root_of, [rank(column) for column in columns]
    for level in levels:
        right = np.zeros(len(node), np.bool_)
        for each in level.by_column:
            values = ranked[each.column]
            cut = values.ceiling(each.cuts)[node]
            right |= (values.ranks >= cut) & (cut > 0)
        node = node * 2 + right
    return node


def files(layout: Layout, leaf: Ints, salt: Ints) -> Ints:
    """Return the file of each row.

    Args:
        layout: The layout.
        leaf: Leaf of each row.
        salt: A number >= 0 for each row; it spreads equal values over the files of a leaf.
    """
    return np.asarray(layout.first_file[leaf] + salt % layout.width[leaf], np.int64)


def name_numbers(layout: Layout) -> Ints:
    """Return the number that the name of each file has: the place at which readers meet it.

    Readers that stop early, as for ``ORDER BY ts DESC LIMIT 10``, read files in the order of their
    names. So the last and the first file of each root come first, which hold the ends of its
    columns. The others follow by the reversed bits of their numbers: of any part of the curve, the
    first files that are read are spread over it.
    """
    numbers = np.arange(layout.files)
    first = layout.first_file.reshape(len(layout.roots), -1).min(axis=1)
    for start, count in zip(first.tolist(), layout.grain().tolist(), strict=True):
        numbers[start : start + count] = start + _mix(count)
    return numbers


def _mix(count: int) -> Ints:
    """Return the place of each of some files: the last, the first, then by reversed bits."""
    at, bits = np.arange(count), max(0, count - 1).bit_length()
    key = np.zeros(count, np.int64)
    for bit in range(bits):
        key |= (at >> bit & 1) << (bits - 1 - bit)
    key[:1], key[-1:] = -1, -2
    return np.argsort(np.argsort(key))


def leaf_positions(layout: Layout, leaf: Ints) -> Ints:
    """Return the position of each row's leaf among all leaves."""
    return np.asarray(layout.places[leaf], np.int64)


def row_groups(layout: Layout, leaf: Ints, file: Ints, per_file: Ints) -> Ints:
    """Return the row group of each sampled row, numbered across all files.

    Args:
        layout: The layout.
        leaf: Leaf of each row.
        file: File of each row.
        per_file: Number of row groups of each file.
    """
    order = np.lexsort((narrow(leaf_positions(layout, leaf)), narrow(file)))
    count = np.bincount(file)
    at = np.empty(len(file), np.int64)
    at[order] = np.arange(len(file)) - (np.cumsum(count) - count)[file[order]]
    first = np.cumsum(per_file) - per_file
    return np.asarray(first[file] + at * per_file[file] // count[file], np.int64)
