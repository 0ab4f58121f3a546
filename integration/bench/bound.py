"""What a log alone can promise to other queries: ``python -m integration.bench.bound``.

All trees of eight files over three independent columns are tried: each of the seven nodes cuts one
of the columns at its median. A query looks for one value of each column of its template. A log has
six of the seven templates, with random weights. For each log, the best tree of those that read at
most so many times what the columns in turn do, for every template, is compared with these columns.
"""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np

COLUMNS, LEVELS = 3, 3
TEMPLATES = [t for width in range(1, COLUMNS + 1) for t in combinations(range(COLUMNS), width)]
IN_TURN = (0, 1, 1, 2, 2, 2, 2)
LOGS, SEED = 400, 1
LIMITS = (1.1, 1.25, 1.5, 2.0, 4.0)


def shares(tree: tuple[int, ...]) -> list[float]:
    """Return the share of the files that queries of each template read."""
    cuts = np.zeros((1 << LEVELS, COLUMNS))
    for leaf in range(1 << LEVELS):
        for level in range(LEVELS):
            cuts[leaf, tree[(1 << level) - 1 + (leaf >> (LEVELS - level))]] += 1
    return [float(np.exp2(-cuts[:, each].sum(axis=1)).mean()) for each in TEMPLATES]


def logs() -> Iterator[tuple[np.ndarray, int]]:
    """Yield weights of the templates of a log, and the template that it lacks."""
    random = np.random.default_rng(SEED)
    for _ in range(LOGS):
        weights = random.dirichlet(np.full(len(TEMPLATES), 0.5))
        lacks = int(random.integers(len(TEMPLATES)))
        weights[lacks] = 0
        yield weights / weights.sum(), lacks


def ranked(weights: np.ndarray) -> list[int]:
    """Return the columns, the most filtered one first."""
    used = [
        sum(w for t, w in zip(TEMPLATES, weights, strict=True) if c in t) for c in range(COLUMNS)
    ]
    return sorted(range(COLUMNS), key=lambda column: -used[column])


def main() -> None:
    """Print the table."""
    trees = list(product(range(COLUMNS), repeat=len(IN_TURN)))
    read = np.array([shares(tree) for tree in trees])
    at = {tree: number for number, tree in enumerate(trees)}
    print("| each template at most, x in turn | templates of the log, x | other, x | worst, x |")
    print("|---|---|---|---|")
    for limit in LIMITS:
        known, new = [], []
        for weights, lacks in logs():
            order = ranked(weights)
            plain = read[at[tuple(order[turn] for turn in IN_TURN)]]
            fair = np.flatnonzero((read <= plain * limit + 1e-9).all(axis=1))
            best = read[fair[np.argmin(read[fair] @ weights)]]
            known.append(best @ weights / (plain @ weights))
            new.append(best[lacks] / plain[lacks])
        means = [float(np.exp(np.log(each).mean())) for each in (known, new)]
        print(f"| {limit} | {means[0]:.2f} | {means[1]:.2f} | {max(new):.2f} |")


if __name__ == "__main__":
    main()
