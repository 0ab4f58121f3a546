"""What the rounds of a trial have found: rows lost, doubled or changed, refusals and failures."""

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
    """Rows that a witness has compared."""
    lost: int = 0
    doubled: int = 0
    """Rows that are there more often than they should, those that came back included."""
    changed: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    """Clear refusals, by what was refused."""
    failures: list[str] = field(default_factory=list)
    measured: list[tuple[str, ...]] = field(default_factory=list)
    """Case, step, seconds, heap and outcome, for the trials of size."""
    seconds: float = 0.0

    def compare(self, what: str, wanted: Rows, found: Rows, key: str) -> None:
        """Compare two lists of rows, whatever their order.

        Args:
            what: Where the rows were read, and by whom.
            wanted: The rows as they should be.
            found: The rows as the witness has read them.
            key: A column whose values are distinct.
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
        """Tell whether nothing was lost, doubled or changed, and nothing failed."""
        return not (self.lost or self.doubled or self.changed or self.failures)


def _counted(rows: Rows, key: str) -> Counter[tuple[str, str]]:
    listed = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    return Counter((repr(row[key]), _text(row)) for row in listed)


def _text(row: Mapping[str, Any]) -> str:
    (text,) = texts([row])
    return text


def table(found: Mapping[str, Tally]) -> Iterable[tuple[str, ...]]:
    """Yield what each trial has found as a row of text, the heading first."""
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
