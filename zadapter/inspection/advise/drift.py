"""Whether a learned layout still is for the queries that are asked."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from zadapter.inspection.advice import Drift
from zadapter.inspection.advise.judging import SampledTable, mean_share
from zadapter.layout.filters import Filter
from zadapter.layout.layout import Request


def drift(table: SampledTable, request: Request | None, newer: Sequence[Filter]) -> Drift | None:
    """Return what a table's layout promised; None: it was not learned from filters.

    Args:
        table: The table, with the columns of its layout.
        request: The request of its layout.
        newer: Filters of newer queries.
    """
    if request is None or not request.filters:
        return None
    # files that came out larger than their target would make the promise better than it was
    most = min(1.0, table.files.num_rows / int(table.budget.sum()))
    budget = np.maximum(1, np.rint(table.budget * most)).astype(np.int64)
    anew, _ = replace(table, budget=budget).then(request.keys)
    columns = set(request.columns)
    without = [not all(columns & {part.column for part in box} for box in each.boxes)
               for each in newer]  # fmt: skip
    return Drift(
        filters=len(request.filters),
        promised=mean_share(anew.shares(request.filters), request.filters),
        held=mean_share(table.now.shares(request.filters), request.filters),
        elsewhere=mean_share(np.array(without, np.float64), newer),
    )
