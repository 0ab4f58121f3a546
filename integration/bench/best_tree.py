"""How much less than the learned tree another one reads: ``python -m integration.bench.best_tree``.

The tree of 64 files that is learned greedily is changed at random: a node gets another column or
cut, or changes places with one below it. Changes that read less are kept, and at first some that
read more (simulated annealing). The search is fitted to the older queries of a log and judged by
the newer ones, or is fitted to the newer ones that it is judged by, which no layout can hope for.

The cases are those that ``integration.bench.held_out`` keeps in its folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from integration.bench import held_out, logs
from zadapter.base.ranks import Ints, rank
from zadapter.inspection.advise.choice import weigh_columns
from zadapter.layout.filters import Filter, Keys, RankedFilters, rank_filters
from zadapter.layout.layout import Request
from zadapter.layout.learned import EVEN, HALF, learn
from zadapter.layout.levels import Start

FILES, ROWS = 64, 3_000
"""Files of the tree, and rows that it is searched with, about."""
HOT, COLD = 3e-4, 3e-6
"""Temperatures at the begin and at the end, in reads of the whole table by all queries."""
NO_VALUE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Plan:
    """A node's cut, and what is planned below it."""

    column: int
    cut: int
    sides: "tuple[Plan | None, Plan | None]" = (None, None)


@dataclass(frozen=True, eq=False)
class Node:
    """A node: its rows, filters that may match them, its cut, and the weight of what is read."""

    rows: Ints
    filters: RankedFilters
    files: int
    read: float
    plan: Plan | None = None
    sides: "tuple[Node, Node] | None" = None


class Search:
    """A search for the tree of which filters read least."""

    def __init__(self, ranks: Ints, filters: RankedFilters, seed: int = 1) -> None:
        """Begin a search by the rows of a sample."""
        self.ranks, self.filters = ranks, filters
        self.random = np.random.default_rng(seed)

    def place(self, plan: Plan | None) -> Node:
        """Return the tree of a plan."""
        return self._node(np.arange(len(self.ranks)), self.filters, FILES, plan)

    def _node(self, rows: Ints, filters: RankedFilters, files: int, plan: Plan | None) -> Node:
        ranks = self.ranks[rows]
        low = np.where(ranks == 0, NO_VALUE, ranks).min(axis=0)
        alive = filters.only(filters.hits(low[None], ranks.max(axis=0)[None])[0])
        asked = np.bincount(alive.filter, minlength=len(alive.weight)) > 0
        read = float(alive.weight[asked].sum()) * len(rows)
        plan = self._feasible(ranks, files, plan, alive) if files > 1 else None
        if plan is None:
            return Node(rows, alive, files, read)
        right = ranks[:, plan.column] >= plan.cut
        left_files = self._left_files(len(rows), files, float(1 - right.mean()))
        parts = ((rows[~right], left_files), (rows[right], files - left_files))
        left, other = (self._node(part, alive, count, below)
                       for (part, count), below in zip(parts, plan.sides, strict=True))  # fmt: skip
        return Node(rows, alive, files, left.read + other.read, plan, (left, other))

    def _feasible(
        self, ranks: Ints, files: int, plan: Plan | None, alive: RankedFilters
    ) -> Plan | None:
        """Return the plan, or one with the cut or the column moved such that files are filled."""
        if plan is not None and self._left_files_of(ranks, files, plan.column, plan.cut):
            return plan
        columns = [] if plan is None else [plan.column]
        below = (None, None) if plan is None else plan.sides
        others = np.unique(alive.column)
        for column in [*columns, *self.random.permutation(others).tolist()]:
            middle = int(np.sort(ranks[:, column])[len(ranks) * (files // 2) // files])
            for cut in (middle, middle + 1):
                if self._left_files_of(ranks, files, column, cut):
                    return Plan(column, cut, below)
        return None

    def _left_files_of(self, ranks: Ints, files: int, column: int, cut: int) -> int:
        return self._left_files(len(ranks), files, float((ranks[:, column] < cut).mean()))

    def _left_files(self, rows: int, files: int, share: float) -> int:
        """Return the files on the left of a cut; 0 if a file would have too few rows."""
        size, near = rows * FILES / len(self.ranks), round(files * share)
        near = min(max(near, 1), files - 1)
        sides = ((near, size * share), (files - near, size * (1 - share)))
        fits = all(held >= count * (HALF if count == 1 else EVEN) for count, held in sides)
        return near if fits else 0

    def improve(self, tree: Node, steps: int) -> Node:
        """Return the best tree of a number of steps."""
        total, best = len(self.ranks) * float(self.filters.weight.sum()), tree
        for step in range(steps):
            warmth = total * HOT * (COLD / HOT) ** (step / steps)
            path = self._walk(tree)
            at = int(self.random.integers(len(path))) if path else 0
            changed = self._change(path[at][0]) if path else None
            if changed is None:
                continue
            worse = changed.read - path[at][0].read
            if worse <= 0 or self.random.random() < np.exp(-worse / warmth):
                tree = _replaced(path[:at], changed)
                best = min(best, tree, key=lambda each: each.read)
        return best

    def _walk(self, tree: Node) -> list[tuple[Node, int]]:
        """Return inner nodes from the root to a file, with the side that the next one is on."""
        path, node = list[tuple[Node, int]](), tree
        while node.sides is not None:
            side = int(self.random.random() * node.files >= node.sides[0].files)
            path.append((node, side))
            node = node.sides[side]
        return path

    def _change(self, node: Node) -> Node | None:
        plan = _planned(node)
        if plan is None:
            return None
        drawn = self.random.random()
        changed = self._rotated(plan) if drawn < 0.3 else self._recut(node, plan, same=drawn < 0.5)
        if changed is None:
            return None
        return self._node(node.rows, node.filters, node.files, changed)

    def _rotated(self, plan: Plan) -> Plan | None:
        """Let a node and one below it change places."""
        side = int(self.random.integers(2))
        child, other = plan.sides[side], plan.sides[1 - side]
        if child is None:
            return None
        pairs = [(inner, other) if side == 0 else (other, inner) for inner in child.sides]
        first, second = (Plan(plan.column, plan.cut, pair) for pair in pairs)
        return Plan(child.column, child.cut, (first, second))

    def _recut(self, node: Node, plan: Plan, *, same: bool) -> Plan | None:
        """Cut a node at an end of a filter's range, by its column or by another one."""
        filters, values = node.filters, self.ranks[node.rows]
        if len(filters.column) == 0:
            return None
        column = plan.column if same else int(self.random.choice(filters.column))
        mine = filters.column == column
        ends = np.concatenate([filters.low[mine], filters.high[mine] + 1])
        for cut in self.random.permutation(ends)[:5].tolist():
            if self._left_files_of(values, node.files, column, cut):
                return Plan(column, int(cut), plan.sides)
        return None


def _planned(node: Node) -> Plan | None:
    """Return the plan of a tree as it is."""
    if node.plan is None or node.sides is None:
        return None
    left, right = (_planned(each) for each in node.sides)
    return Plan(node.plan.column, node.plan.cut, (left, right))


def _replaced(path: Sequence[tuple[Node, int]], changed: Node) -> Node:
    """Return the tree with another node at the end of a path."""
    for node, side in reversed(path):
        assert node.sides is not None
        sides = (changed, node.sides[1]) if side == 0 else (node.sides[0], changed)
        changed = Node(node.rows, node.filters, node.files, sides[0].read + sides[1].read,
                       node.plan, sides)  # fmt: skip
    return changed


def learned_plan(case: logs.Case, keys: Keys, columns: list[int]) -> Plan | None:
    """Return the plan of the tree of a learned layout; it numbers columns as *columns* do."""
    held = [case.columns.index((name,)) for name in keys.weights]
    some = pa.array(np.arange(0, len(case.ranks), _step(case)))
    request = Request(
        columns=tuple(case.columns[at] for at in held),
        weights=tuple(keys.weights.values()),
        target_file_size=1 << 20,
        filters=keys.filters,
    )
    ranked = [rank(case.values[at].take(some)) for at in held]
    none = np.zeros(1, np.int64)
    start = Start(levels=(), node=np.zeros(len(some), np.int64), budget=none + FILES, first=none)
    cuts = [
        {each.column: pc.index_in(each.cuts, case.distinct[held[each.column]]).to_pylist()
         for each in level.by_column}
        for level in learn(request, ranked, start, 16).levels
    ]  # fmt: skip

    def plan_of(depth: int, node: int) -> Plan | None:
        if depth == len(cuts):
            return None
        sides = (plan_of(depth + 1, 2 * node), plan_of(depth + 1, 2 * node + 1))
        found = [
            (columns.index(held[c]), at[node] + 1)
            for c, at in cuts[depth].items()
            if at[node] is not None
        ]
        return Plan(*found[0], sides) if found else sides[0]

    return plan_of(0, 0)


def _step(case: logs.Case) -> int:
    return max(1, len(case.ranks) // ROWS)


def read_by_newer(case: logs.Case, columns: list[int], tree: Node) -> float:
    """Return the share of the rows that newer queries read of a tree, by all rows of the case."""
    file_of, files = np.zeros(len(case.ranks), np.int64), 0
    nodes = [(_planned(tree), np.arange(len(case.ranks)))]
    while nodes:
        plan, rows = nodes.pop()
        if plan is None:
            file_of[rows] = files
            files += 1
            continue
        right = case.ranks[rows, columns[plan.column]] >= plan.cut
        nodes += [(plan.sides[0], rows[~right]), (plan.sides[1], rows[right])]
    return float(case.read(file_of, case.asked).mean())


def compared(case: logs.Case, filters: Sequence[Filter], steps: int) -> tuple[float, float]:
    """Return what newer queries read of the tree that filters teach, and of the best one found."""
    keys = logs.learned_keys(case, filters, FILES)
    columns = [case.columns.index(column) for column in weigh_columns(filters, case.columns)]
    names, distinct = [case.columns[at] for at in columns], [case.distinct[at] for at in columns]
    search = Search(case.ranks[:: _step(case), columns], rank_filters(filters, names, distinct))
    tree = search.place(learned_plan(case, keys, columns))
    best = search.improve(tree, steps)
    return read_by_newer(case, columns, tree), read_by_newer(case, columns, best)


def main() -> None:
    """Print the table."""
    parser = held_out.parser_of("best_tree", __doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    options = parser.parse_args()
    print("| table | learned | searched | learned from the judged queries | searched by them |")
    print("|---|---|---|---|---|")
    for name in options.tables:
        case = held_out.thinned(held_out.kept(options.folder / f"case-{name}-{options.scale}"))
        older = [each for _, each in case.older]
        found = [*compared(case, older, options.steps), *compared(case, case.newer, options.steps)]
        print("|", name, "|", " | ".join(f"{each:.3f}" for each in found), "|", flush=True)


if __name__ == "__main__":
    main()
