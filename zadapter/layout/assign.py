"""Where a layout sends rows, computed over Arrow: the specification.

``zadapter.rewrite.expressions`` computes the same numbers as Spark expressions; a property test
keeps the two equal.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints, rank
from zadapter.layout.layout import Layout


def leaves(layout: Layout, columns: Sequence[pa.Array], root_of: Ints) -> Ints:
    """Return for each row the leaf it falls into.

    Args:
        layout: The layout.
        columns: The values, one array a key column.
        root_of: For each row its root.
    """
    node = root_of
    for level in layout.levels:
        values = columns[level.column]
        both = rank(pa.concat_arrays([values, level.cuts.cast(values.type)])).ranks
        value, cut = both[: len(values)], both[len(values) :][node]
        node = node * 2 + ((value >= cut) & (cut > 0))
    return node


def files(layout: Layout, leaf: Ints, salt: Ints) -> Ints:
    """Return for each row the file it goes to.

    Args:
        layout: The layout.
        leaf: For each row its leaf.
        salt: For each row a number >= 0 that spreads equal values over the files sharing a leaf.
    """
    return np.asarray(layout.first_file[leaf] + salt % layout.width[leaf], np.int64)


def places(layout: Layout, leaf: Ints) -> Ints:
    """Return for each row its leaf's place among all leaves."""
    return np.asarray(layout.places[leaf], np.int64)


def row_groups(layout: Layout, leaf: Ints, file: Ints) -> Ints:
    """Return for each row of a sample its row group, counted over all files.

    Args:
        layout: The layout.
        leaf: For each row its leaf.
        file: For each row its file.
    """
    order, count = np.lexsort((places(layout, leaf), file)), np.bincount(file)
    at = np.empty(len(file), np.int64)
    at[order] = np.arange(len(file)) - (np.cumsum(count) - count)[file[order]]
    each = layout.request.row_groups
    return np.asarray(file * each + at * each // count[file], np.int64)
