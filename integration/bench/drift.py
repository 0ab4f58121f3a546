"""When a layout is learned again: ``python -m integration.bench.drift``.

Nights of queries, and a choice before each by the log of the last four weeks. All is computed from
rows that are drawn, by the functions that ``advise`` and ``by="auto"`` use. A policy pays for what
queries read by row group, in reads of the whole table, and for each rewrite. The oracle knows all
queries, and changes at will among all layouts that any policy has had, and those that are fitted to
each week of the future.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from zadapter.inspection.advise.choice import steady_keys, weigh_columns
from zadapter.inspection.advise.judging import Divided, SampledTable
from zadapter.inspection.advise.regret import regret, weigh_newer
from zadapter.inspection.query_log import SLICES
from zadapter.layout.filters import Filter, Floats, Keys, Range
from zadapter.planning.effect import NOISE
from zadapter.planning.relearning import ENOUGH, REWRITE

ROWS, FILES = 5_000, 16
NIGHTS, LOG, WEEK, TURN = 70, 28, 7, 30
"""Nights that are played, nights of a log, and the night of a change."""
QUERIES = 6
"""Distinct queries of a night."""
NAMES = tuple((name,) for name in ("time", "user", "amount", "place", "shipped", "item"))
TEMPLATES: dict[str, list[tuple[tuple[int, ...], float]]] = {
    "days": [((0,), 0.02), ((0, 1), 0.1), ((1,), 0.01), ((1, 3), 0.1), ((0, 3), 0.1), ((3,), 0.02)],
    "sums": [((2,), 0.02), ((2, 5), 0.1), ((5,), 0.01), ((4, 5), 0.1), ((2, 4), 0.1), ((4,), 0.02)],
    "users": [
        ((1,), 0.01),
        ((1, 5), 0.1),
        ((5,), 0.01),
        ((0, 5), 0.1),
        ((0, 1), 0.1),
        ((0,), 0.02),
    ],
}
"""Workloads: columns of a filter, and the share of their values that each of its ranges has."""
ODD = 0.15
"""Share of queries that are of no template."""


def table() -> SampledTable:
    """Return rows of a table: some columns follow the time, some are skewed."""
    draw = np.random.default_rng(0)
    time = np.sort(draw.integers(0, 1_000_000, ROWS))
    columns = (
        time,
        draw.integers(0, 50_000, ROWS),
        (draw.pareto(1.5, ROWS) * 1_000).astype(np.int64),
        draw.integers(0, 200, ROWS),
        time // 10 + draw.integers(0, 30_000, ROWS),
        draw.integers(0, 100_000, ROWS),
    )
    return SampledTable(
        columns=NAMES,
        values=tuple(pa.array(column) for column in columns),
        files=pa.table({}),
        roots=((),),
        root_of=np.zeros(ROWS, np.int64),
        budget=np.array([FILES]),
        target_file_size=1 << 20,
        partition=frozenset(),
    )


@dataclass
class Game:
    """A table, and the queries of each night; nights before the first one are its history."""

    kind: str
    often: float
    """How often each query is asked."""
    rows: SampledTable = field(default_factory=table)
    _read: dict[int, tuple[Keys, Divided]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = np.random.default_rng(1)
        self.nights = {night: list(self._night(night, draw)) for night in range(-LOG, NIGHTS)}

    def _night(self, night: int, draw: np.random.Generator) -> Iterator[Filter]:
        for _ in range(QUERIES):
            names = KINDS[self.kind](night, draw)
            if names == "odd":
                columns, share = (int(draw.integers(len(NAMES))),), 0.05
            else:
                columns, share = TEMPLATES[names][int(draw.integers(6))]
            yield self._filter(columns, share, draw)
        if self.kind == "one query" and night == TURN:
            yield replace(self._filter((4,), 0.001, draw), weight=1_000_000.0)

    def _filter(self, columns: Sequence[int], share: float, draw: np.random.Generator) -> Filter:
        box = []
        for at in columns:
            ordered = np.sort(self.rows.values[at].to_numpy())
            first, width = int(draw.integers(0, ROWS * (1 - share) - 1)), int(ROWS * share)
            box.append(Range(NAMES[at], str(ordered[first]), str(ordered[first + width])))
        return Filter((tuple(box),), self.often)

    def log(self, night: int) -> tuple[list[Filter], Floats]:
        """Return the filters of the nights before, and how often each is asked in each part."""
        days = [self.nights[each] for each in range(night - LOG, night)]
        if self.kind == "five queries":
            days = [day[:1] * (at > LOG - 6) for at, day in enumerate(days)]
        filters = [each for day in days for each in day]
        weights = np.zeros((len(filters), SLICES))
        for at, each in enumerate(filters):
            weights[at, at * SLICES // len(filters)] = each.weight
        return filters, weights

    def read(self, keys: Keys, filters: Sequence[Filter]) -> float:
        """Return what filters read of a layout, in reads of the whole table."""
        if id(keys) not in self._read:
            self._read[id(keys)] = (keys, self.rows.divide_rows(keys)[1])
        shares = self._read[id(keys)][1].shares(filters)
        return float(shares @ [each.weight for each in filters])


Kind = Callable[[int, np.random.Generator], str]
"""Returns the workload of a query of a night."""


def _switch(to: str, *, weeks: int) -> Kind:
    """Return a workload that alternates with another one, which begins."""
    return lambda night, _: "days" if (night // (WEEK * weeks)) % 2 == 0 or night < 0 else to


KINDS: dict[str, Kind] = {
    "none": lambda *_: "days",
    "none, odd queries": lambda _, draw: "odd" if draw.random() < ODD else "days",
    "one query": lambda *_: "days",
    "one night": lambda night, _: "sums" if night == TURN else "days",
    "five queries": lambda night, _: "days" if night < TURN else "sums",
    "weekends": lambda night, _: "users" if night % WEEK > 4 else "days",
    "each week": _switch("sums", weeks=1),
    "each four weeks": _switch("sums", weeks=4),
    "sudden": lambda night, _: "days" if night < TURN else "sums",
    "sudden, near": lambda night, _: "days" if night < TURN else "users",
    "gradual": lambda night, draw: "sums" if draw.random() * TURN < night - TURN / 2 else "days",
}
"""How queries change."""


def learned(filters: Sequence[Filter]) -> Keys | None:
    """Return the layout that is learned from filters."""
    return steady_keys(filters, weigh_columns(filters, NAMES))


def never(_: Game, __: Keys, ___: int) -> Keys | None:
    """Keep the first layout."""
    return None


def nightly(game: Game, _: Keys, night: int) -> Keys | None:
    """Learn from the log of each night."""
    filters, weights = game.log(night)
    return learned(
        [replace(each, weight=float(sum(w))) for each, w in zip(filters, weights, strict=True)]
    )


def greedy(game: Game, present: Keys, night: int) -> Keys | None:
    """Learn from the older half of the log; rewrite if the newer one then reads less."""
    filters, weights = game.log(night)
    half = SLICES // 2
    older = [each for each, w in zip(filters, weights, strict=True) if w[:half].any()]
    late = [each for each, w in zip(filters, weights, strict=True) if w[half:].any()]
    keys = learned(older)
    if keys is None or game.read(keys, late) >= (1 - NOISE) * game.read(present, late):
        return None
    return learned(filters)


def by_regret(game: Game, present: Keys, night: int) -> Keys | None:
    """Learn from the newer half of the log once the regret is enough."""
    filters, weights = game.log(night)
    if regret(game.rows, present, filters, weights, learned) < ENOUGH:
        return None
    return learned([each for each in weigh_newer(filters, weights) if each.weight > 0])


POLICIES = {"never": never, "every night": nightly, "if better": greedy, "by regret": by_regret}


@dataclass(frozen=True)
class Played:
    """What a policy has cost, and the nights of its rewrites."""

    cost: float
    rewrites: tuple[int, ...]
    layouts: tuple[Keys, ...]


def play(game: Game, policy: Callable[[Game, Keys, int], Keys | None]) -> Played:
    """Play all nights by a policy, from the layout of the history."""
    present = learned(game.log(0)[0])
    assert present is not None
    had, cost, rewrites = [present], 0.0, []
    for night in range(NIGHTS):
        keys = policy(game, present, night) if night else None
        if keys is not None:
            present = keys
            had.append(keys)
            rewrites.append(night)
            cost += REWRITE
        cost += game.read(present, game.nights[night])
    return Played(cost, tuple(rewrites), tuple(had))


def oracle(game: Game, layouts: Sequence[Keys]) -> float:
    """Return the least that changes among layouts cost; the first of them is the present one."""
    work = np.full(len(layouts), REWRITE)
    work[0] = 0
    for night in range(NIGHTS):
        work += [game.read(keys, game.nights[night]) for keys in layouts]
        work = np.minimum(work, work.min() + REWRITE)
    return float(work.min())


def future(game: Game) -> Iterator[Keys]:
    """Yield the layouts that are fitted to each week."""
    for first in range(0, NIGHTS, WEEK):
        keys = learned(
            [each for night in range(first, first + WEEK) for each in game.nights[night]]
        )
        if keys is not None:
            yield keys


def main() -> None:
    """Print what each policy costs, as a multiple of the oracle, and its rewrites."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--often", nargs="*", type=float, default=[0.02, 0.2, 20.0])
    asked = parser.parse_args()
    print(f"| drift | each asked | {' | '.join(asked.policies)} |")
    print(f"|{'---|' * (2 + len(asked.policies))}")
    for kind in asked.kinds:
        for often in asked.often:
            game = Game(kind, often)
            played = [play(game, POLICIES[name]) for name in asked.policies]
            least = oracle(game, [*played[0].layouts, *future(game),
                                  *(k for each in played for k in each.layouts)])  # fmt: skip
            cells = [f"{each.cost / least:.2f} ({len(each.rewrites)})" for each in played]
            print(f"| {kind} | {often:g} x | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
