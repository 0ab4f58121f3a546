"""Results of a trial: lost, doubled or changed rows, refusals and failures."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from integration.migration.tables import texts

Row = dict[str, Any]
Rows = pa.Table | Sequence[Mapping[str, Any]]


@dataclass
class Tally:
    """Counts over all rounds of a trial; a clean one has zeros and no failures."""

    rounds: int = 0
    compared: int = 0
    """Rows that other readers have compared."""
    lost: int = 0
    doubled: int = 0
    """Surplus rows, including deleted rows that reappeared."""
    changed: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    """Number of clear refusals by subject."""
    failures: list[str] = field(default_factory=list)
    measured: list[tuple[str, ...]] = field(default_factory=list)
    """Case, step, seconds, heap and outcome, for the trials of size."""
    seconds: float = 0.0

    def compare(self, what: str, wanted: Rows, found: Rows, key: str) -> None:
        """Compare two lists of rows in any order.

        Args:
            what: Where the rows were read, and by which reader.
            wanted: Expected rows.
            found: Rows that were read.
            key: Column with distinct values.
        """
        before, after = _counted(wanted, key), _counted(found, key)
        missing, extra = before - after, after - before
        lost, come = (Counter(name for name, _ in each.elements()) for each in (missing, extra))
        changed = sum((lost & come).values())
        self.compared += before.total()
        self.changed += changed
        self.lost += lost.total() - changed
        self.doubled += come.total() - changed
        if missing or extra:
            first = [next(iter(each), None) for each in (missing, extra)]
            self.failures.append(f"{what}: wanted {first[0]}, found {first[1]}")

    def is_clean(self) -> bool:
        """Return whether no row was lost, doubled or changed, and nothing failed."""
        return not (self.lost or self.doubled or self.changed or self.failures)


def _counted(rows: Rows, key: str) -> Counter[tuple[str, str]]:
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return Counter((repr(row[key]), _text(row)) for row in listed)


def _text(row: Mapping[str, Any]) -> str:
    (text,) = texts([row])
    return text


def table(found: Mapping[str, Tally]) -> Iterable[tuple[str, ...]]:
    """Yield the results of each trial as a row of strings, after a header."""
    yield (
        "trial",
        "rounds",
        "rows compared",
        "lost",
        "doubled",
        "changed",
        "refused",
        "failures",
        "s",
    )
    for name, each in found.items():
        counts = (each.rounds, each.compared, each.lost, each.doubled, each.changed)
        tail = (each.refused.total(), len(each.failures), round(each.seconds))
        yield (name, *(f"{number:,}" for number in (*counts, *tail)))
