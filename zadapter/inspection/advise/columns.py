"""Choice of the columns that a layout learns to cut, where filters name many.

A tree takes the column that spares the most rows at once, so a column that filters name often takes
cuts from others that spare more together. The most filtered columns are one choice. The others are
those that a tree of more columns cuts most. The one of which the filters read least is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from zadapter.base.names import NameParts
from zadapter.inspection.advise.judging import SampledTable, mean_share
from zadapter.layout.filters import Filter, Keys
from zadapter.layout.layout import Layout
from zadapter.layout.learned import SPARE

MOST_COLUMNS = 8
"""Maximum number of columns of a layout that is learned from filters. With more, the generated code
of a write exceeds the JIT's limit."""
MOST_TRIED = 16
"""Maximum number of columns of the tree that tells which are cut."""
COUNTS = (4, MOST_COLUMNS)
"""Numbers of these columns that are tried."""
MOST_FILES, ROWS = 32, 8_000
"""Maximum number of files by which columns are compared, about, and number of sampled rows."""

Weights = Mapping[NameParts, float]


def choose_columns(
    table: SampledTable,
    filters: Sequence[Filter],
    weights: Weights,
    fit: Callable[[Weights], Keys | None],
) -> Weights:
    """Return the columns of the learned layout of which filters read least, with their weights.

    Args:
        table: A sample of the table.
        filters: The filters.
        weights: How often they filter each column, most first.
        fit: Returns the layout of some columns that is learned from the filters.
    """
    frequent = dict(list(weights.items())[:MOST_COLUMNS])
    if len(weights) <= MOST_COLUMNS:
        return frequent
    wide = fit(dict(list(weights.items())[:MOST_TRIED]))
    if wide is None:
        return frequent
    table = _thin_out(table)
    depth = int(np.ceil(np.log2(table.budget_of(wide).max(initial=1)))) + SPARE
    order = _order_by_cuts(table.fit_layout(wide), depth)
    tried = [frequent]
    for count in COUNTS:
        most_cut = set(order[:count])
        tried.append({column: weight for column, weight in weights.items() if column in most_cut})

    def read(columns: Weights) -> float:
        keys = fit(columns)
        if keys is None:
            return 1.0
        files, _ = table.divide_rows(keys)
        return mean_share(files.shares(filters), filters)

    return min(tried, key=read)


def _thin_out(table: SampledTable) -> SampledTable:
    """Return a smaller table, by which columns are compared in a fraction of the time."""
    some = np.arange(0, len(table.root_of), max(1, len(table.root_of) // ROWS))
    values = tuple(each.take(pa.array(some)) for each in table.values)
    sampled = replace(table, values=values, root_of=table.root_of[some])
    return sampled.scale_budgets(
        lambda budget: -(-budget // max(1, int(table.budget.sum()) // MOST_FILES))
    )


def _order_by_cuts(layout: Layout, depth: int) -> list[NameParts]:
    """Return the columns of a layout, by the shares of nodes of its first levels that they cut."""
    cut = np.zeros(len(layout.request.columns))
    for level in layout.levels[:depth]:
        for each in level.by_column:
            cut[each.column] += each.cuts.is_valid().to_numpy(zero_copy_only=False).mean()
    return [layout.request.columns[at] for at in np.argsort(-cut, kind="stable")]
