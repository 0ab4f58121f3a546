"""Logs of queries on the workloads' tables: filters with drawn parameters, and their templates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from integration.bench.tables import hits, ssb, synthetic, tpc

OLDER, NEWER = 1_001, 2_002
"""Seeds of the queries to learn from, and of those to judge by."""
REPEATED = (0, 100, 200)


@dataclass(frozen=True)
class Log:
    """Queries of a workload.

    Attributes:
        filters: Returns the filters of a seed: some rounds of one filter for each query.
        templates: Template of each filter of a round. Filters of one template differ in their
            parameters only.
    """

    filters: Callable[[int], list[str]]
    templates: Sequence[int]

    def by_template(self, seed: int) -> list[tuple[int, str]]:
        """Return the filters of a seed, each with its template."""
        return [
            (self.templates[number % len(self.templates)], text)
            for number, text in enumerate(self.filters(seed))
        ]


def _repeated(draw: Callable[[int], list[str]]) -> Callable[[int], list[str]]:
    return lambda seed: [text for more in REPEATED for text in draw(seed + more)]


LOGS = {
    "tpch": Log(lambda seed: tpc.lineitem_filters(seed, 30), range(11)),
    "tpcds": Log(lambda seed: tpc.store_sales_filters(seed, 25), range(6)),
    "ssb": Log(lambda seed: ssb.lineorder_filters(seed, 25), range(13)),
    "hits": Log(lambda seed: hits.hits_filters(seed, 12), hits.TEMPLATES),
    "connections": Log(_repeated(synthetic.connection_filters), range(7)),
    "hot": Log(_repeated(synthetic.hot_filters), range(5)),
    "taxi": Log(_repeated(synthetic.taxi_filters), range(4)),
}
"""By the workload's name."""

SELECTIVE = {"selective": Log(_repeated(synthetic.selective_filters), range(6))}
"""Filters that hardly a row matches: point lookups, ten seconds, the last rows."""
