"""Which rewrites of which tables fit into a budget and save most.

Rewrites are taken in the order of what they save for a unit of cost. What a rewrite costs is its
largest share of anything that is limited. Such a choice is poor only where single rewrites need
much of the budget, so it is compared with those that begin with up to three of the largest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heappop, heappush, nlargest
from itertools import accumulate, chain, combinations, islice, takewhile
from math import inf

from zadapter.lake.settings import Budget

PATIENCE = 1.2
"""Factor by which each night of waiting multiplies what a table saves. A thousandth of the savings
of others is made up for in 38 nights."""
LONGEST = 1_000
"""Nights of waiting that count."""
SEEDS, LARGE = 12, 0.01
"""Number of rewrites, those that save most, of which up to three are taken first for comparison,
and the least share of the budget that each of them needs: others are no obstacle."""
WORK = 200_000
"""Number of steps that are looked at for these comparisons; many small steps need none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rewrite of some files of a table. A table's steps are taken in their order."""

    bytes: int
    """Bytes of the files to replace."""
    saved: float
    """Bytes that a filter reads less afterwards, on average."""
    seconds: float
    """Expected core seconds."""
    money: float
    """Expected cost; 0 without prices."""
    files: int = 1
    """Number of files to replace."""
    fewer: int = 0
    """By how many they exceed the files to write."""
    share: float = 0.0
    """Mean share of the table's rows, from 0 to 1, in files that a filter reads less afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A table whose files could be rewritten."""

    table: str
    steps: tuple[Step, ...]
    weight: float = 1.0
    """How much its savings count, relative to those of others: as often as it is read."""
    waited: int = 0
    """Nights that a due rewrite of the table has waited."""
    max_wait: int | None = None
    """Nights that it waits at most."""


class Why(str, Enum):
    """Why rewrites are left."""

    TOO_LARGE = "too large"
    """The next one alone exceeds the budget, tonight and any other night."""
    SPENT = "budget spent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some consecutive steps of a table, and their sums."""

    steps: int
    bytes: int
    seconds: float
    """Core seconds."""
    money: float
    saved: float
    """Bytes that a filter reads less, regardless of how often the table is read."""
    share: float
    """Share of the table's rows in files that a filter reads less."""
    fewer: int
    """By how many the files to replace exceed those to write."""

    @classmethod
    def of(cls, steps: Sequence[Step]) -> "Part":
        """Add up steps."""
        return cls(
            steps=len(steps),
            bytes=sum(each.bytes for each in steps),
            seconds=sum(each.seconds for each in steps),
            money=sum(each.money for each in steps),
            saved=sum(each.saved for each in steps),
            share=sum(each.share for each in steps),
            fewer=sum(each.fewer for each in steps),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What one run rewrites."""

    taken: Mapping[str, Part]
    """The first steps of each table by its name, maybe none."""
    order: tuple[str, ...]
    """The tables of which steps are taken, in the order in which they are to run."""
    left: Mapping[str, tuple[Part, Why]]
    """The other steps of tables that have some, and why they are left."""
    weights: Mapping[str, float]
    """How much each table counted, relative to others, before its nights of waiting."""


def choose(candidates: Sequence[Candidate], budget: Budget, cores: int) -> Choice:
    """Choose the steps to take.

    Tables that have waited as long as they may come first, each with its first step.

    Args:
        candidates: The tables, by distinct names.
        budget: What may be spent.
        cores: Number of cores that work at the same time.
    """
    limits = _Limits.of(budget, cores)
    tables = [_Table(each, limits) for each in candidates]
    urgent = _urgent(tables, limits)
    stops = _improve(tables, limits, urgent)
    chosen = [number for number, stop in enumerate(stops) if stop]
    chosen.sort(key=lambda number: (not urgent[number], -tables[number].rate(0, stops[number])))
    taken, left = dict[str, Part](), dict[str, tuple[Part, Why]]()
    for table, stop in zip(tables, stops, strict=True):
        name, steps = table.candidate.table, table.candidate.steps
        taken[name] = Part.of(steps[:stop])
        if stop < len(steps):
            why = Why.SPENT if stop < table.steps else Why.TOO_LARGE
            left[name] = Part.of(steps[stop:]), why
    order = tuple(tables[number].candidate.table for number in chosen)
    weights = {each.table: each.weight for each in candidates}
    return Choice(taken=taken, order=order, left=left, weights=weights)


Amounts = tuple[float, float, float]
"""Bytes, core seconds and money."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Limits of all amounts; infinite: no limit."""

    most: Amounts

    @classmethod
    def of(cls, budget: Budget, cores: int) -> "_Limits":
        seconds = inf if budget.seconds is None else budget.seconds * cores
        size, money = (inf if each is None else each for each in (budget.bytes, budget.money))
        return cls((size, seconds, money))

    def hold(self, amounts: Amounts) -> bool:
        return all(amount <= most for amount, most in zip(amounts, self.most, strict=True))

    def cost(self, amounts: Amounts) -> float:
        """Return the largest share of a limit, or the bytes if there is none."""
        if all(most == inf for most in self.most):
            return amounts[0]
        shares = zip(amounts, self.most, strict=True)
        return max(amount / (most or 1) for amount, most in shares)


class _Table:
    """A candidate with the sums of its first steps."""

    def __init__(self, candidate: Candidate, limits: _Limits) -> None:
        """Add up the steps."""
        weight = candidate.weight * PATIENCE ** min(candidate.waited, LONGEST)
        every = [(step.bytes, step.seconds, step.money) for step in candidate.steps]
        each = list(takewhile(limits.hold, every))  # no step behind a larger one can be taken
        self.candidate = candidate
        self.steps = len(each)
        self._sums = [
            list(accumulate(column, initial=0)) for column in zip(*each, strict=True)
        ] or [[0]] * 3
        self.cost = list(accumulate(map(limits.cost, each), initial=0.0))
        self.worth = list(
            accumulate((weight * step.saved for step in candidate.steps[: len(each)]), initial=0.0)
        )
        self._pieces = dict[int, list[int]]()

    def amounts(self, start: int, stop: int) -> Amounts:
        """Return the amounts that some steps need."""
        size, seconds, money = (sums[stop] - sums[start] for sums in self._sums)
        return size, seconds, money

    def rate(self, start: int, stop: int) -> float:
        """Return what some steps save for a unit of cost."""
        cost = self.cost[stop] - self.cost[start]
        return (self.worth[stop] - self.worth[start]) / cost if cost > 0 else inf

    def pieces(self, start: int) -> list[int]:
        """Return the ends of the pieces of all steps from *start* on."""
        if start not in self._pieces:
            self._pieces[start] = self.pieces_of(start, self.steps)
        return self._pieces[start]

    def pieces_of(self, start: int, stop: int) -> list[int]:
        """Return the ends of the pieces of some steps, each of a rate as high as the next one's.

        These are the corners of the concave hull of what the steps save.
        """
        ends = [start]
        for end in range(start + 1, stop + 1):
            while len(ends) > 1 and self.rate(ends[-2], ends[-1]) < self.rate(ends[-1], end):
                ends.pop()
            ends.append(end)
        return ends[1:]


def _urgent(tables: Sequence[_Table], limits: _Limits) -> list[int]:
    """Return the number of first steps of each table that come first: one or none."""
    found, spent = [0] * len(tables), (0.0, 0.0, 0.0)
    waits = [
        (each.candidate.max_wait - each.candidate.waited, -each.rate(0, 1), number)
        for number, each in enumerate(tables)
        if each.steps and each.candidate.max_wait is not None
    ]
    for ahead, _, number in sorted(waits):
        more = _add(spent, tables[number].amounts(0, 1))
        if ahead <= 0 and limits.hold(more):
            found[number], spent = 1, more
    return found


def _improve(tables: Sequence[_Table], limits: _Limits, first: list[int]) -> list[int]:
    """Return the best of the choices that begin with none or some of the large steps."""
    best = _fill(tables, limits, first)
    if all(stop == each.steps for stop, each in zip(best, tables, strict=True)):
        return best
    large = (
        (table.worth[stop] - table.worth[stop - 1], number, stop)
        for number, table in enumerate(tables)
        for stop in range(first[number] + 1, len(table.worth))
        if table.cost[stop] - table.cost[stop - 1] >= LARGE and limits.hold(table.amounts(0, stop))
    )
    largest = [(number, stop) for _, number, stop in nlargest(SEEDS, large)]
    seeds = chain.from_iterable(combinations(largest, count) for count in (1, 2, 3))
    for some in islice(seeds, WORK // sum(len(table.worth) for table in tables)):
        begun = first.copy()
        for number, stop in some:
            begun[number] = max(begun[number], stop)
        if limits.hold(_sum(tables, begun)):
            best = max(best, _fill(tables, limits, begun), key=lambda each: _worth(tables, each))
    return best


def _fill(tables: Sequence[_Table], limits: _Limits, begun: Sequence[int]) -> list[int]:
    """Return the numbers of steps of all tables after adding pieces to them, best first."""
    stops, spent = list(begun), _sum(tables, begun)
    ends = [iter(table.pieces(start)) for table, start in zip(tables, begun, strict=True)]
    waiting = list[tuple[float, int, int]]()

    def push(number: int) -> None:
        end = next(ends[number], None)
        if end is not None:
            heappush(waiting, (-tables[number].rate(stops[number], end), number, end))

    for number in range(len(tables)):
        push(number)
    while waiting:
        _, number, end = heappop(waiting)
        table, start = tables[number], stops[number]
        more = _add(spent, table.amounts(start, end))
        if limits.hold(more):
            stops[number], spent = end, more
        else:  # nothing behind this piece fits either, but the steps that it begins with may
            ends[number] = iter(table.pieces_of(start, _fitting(table, limits, spent, start, end)))
        push(number)
    return stops


def _fitting(table: _Table, limits: _Limits, spent: Amounts, start: int, end: int) -> int:
    """Return the end of the steps before *end* that fit."""
    stop = start
    while stop + 1 < end and limits.hold(_add(spent, table.amounts(start, stop + 1))):
        stop += 1
    return stop


def _add(one: Amounts, other: Amounts) -> Amounts:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def _sum(tables: Sequence[_Table], stops: Sequence[int]) -> Amounts:
    spent = (0.0, 0.0, 0.0)
    for table, stop in zip(tables, stops, strict=True):
        if stop:
            spent = _add(spent, table.amounts(0, stop))
    return spent


def _worth(tables: Sequence[_Table], stops: Sequence[int]) -> float:
    return sum(table.worth[stop] for table, stop in zip(tables, stops, strict=True))
