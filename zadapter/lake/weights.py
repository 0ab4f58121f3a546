"""How much tables count: as often as the queries of a log read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from zadapter.base.outcome import stating
from zadapter.base.translate_errors import translate_errors
from zadapter.errors import UsageError
from zadapter.inspection.querylog.table_reads import count_reads
from zadapter.lake import journal
from zadapter.lake.journal import Line
from zadapter.lake.runs import Run, message_of
from zadapter.lake.tables import Judged

LEAST = 0.01
"""Weight of a table that no query reads, beside 1 for one that is read as often as the mean. A
hundredth is made up for in 26 nights of waiting."""
READS = "[reads]"
"""Stands for the log in the journal, where others have the name of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """How often tables are read."""

    weights: Mapping[str, float] = field(default_factory=dict[str, float])
    """A weight for each table; none: all are taken to be read equally often."""
    lines: tuple[Line, ...] = ()
    """A line that says why there is none, if there is a log."""


def weigh_tables(run: Run, judged: Mapping[str, Judged]) -> Reads:
    """Return how much tables count by the query log of a lake.

    A log that cannot be used does not end the run: rewrites that are due save queries anyway. It is
    reported as a failure, though, since it was stated. Nothing is read if no rewrite is due.
    """
    queries = run.lake.queries
    if queries is None or not any(each.steps for each in judged.values()):
        return Reads()
    kept = {name: each for name, each in judged.items() if each.found.entry.enabled}
    tables = {name: each.spelling for name, each in kept.items()}
    try:
        with stating(), translate_errors(READS):
            return Reads(weights=weigh(count_reads(queries, tables, run.spark)))
    except Exception as error:  # noqa: BLE001 - reported, and the tables are maintained
        why = f"{message_of(error)}; this run took all tables to be read equally often"
        return Reads(lines=(run.line(READS, None, journal.FAILED, error=why),))


def weigh(reads: Mapping[str, float]) -> dict[str, float]:
    """Return how much tables count by how often each is read, 1 for the mean.

    Raises:
        UsageError: No table is read.
    """
    mean = fmean(reads.values())
    if mean <= 0:
        raise UsageError("no query of the log reads a table of the lake; pass a log of its queries")
    return {table: max(count / mean, LEAST) for table, count in reads.items()}
