"""The trunk of a partition that is larger than a job, read off the boxes of its files.

Runs that were cut along one trunk share its cuts: their files lie on one side or the other. So the
trunk need not be stored. The levels are found from the root on: of all values of all columns, the
one that halves the files best and that few of them straddle. A partition that grows beyond the
limit gets the cuts of its largest run; a box that grows too large is cut in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout.build import TREES
from zadapter.layout.layout import Request
from zadapter.layout.levels import Level
from zadapter.layout.predict import Floats
from zadapter.layout.trunk import Trunk

FEW = 4
"""Minimum number of files of the target size that a job must hold to be worth a trunk."""
ROOM, FULL = 0.5, 0.75
"""Maximum bytes of a new trunk's boxes, and of a box that is not cut yet, as shares of a job's."""
DEEPEST = 10
"""Maximum number of levels of a trunk; the levels below need room, too."""
STRADDLED = 2.0
"""Price of the bytes that a cut runs through, beside those on its smaller side."""

NO_BOX = -1

Mask = npt.NDArray[np.bool_]


def has_trunk(request: Request, size: int, limit: int) -> bool:
    """Return whether a partition of *size* bytes has a trunk, if a job holds *limit* bytes."""
    return size > limit >= FEW * request.target_file_size and request.curve in TREES


def create_trunk(size: int, limit: int) -> Trunk:
    """Return a trunk for a partition without clustered files, with room for its growth."""
    depth = int(np.ceil(np.log2(size / (ROOM * limit))))
    return Trunk(1 << min(DEEPEST, depth))


@dataclass(frozen=True, slots=True)
class PlacedTrunk:
    """A trunk, and where the files are.

    Attributes:
        trunk: The trunk, or None if the files have no cuts in common.
        box_of: Box of each file; ``NO_BOX`` where its bounds lie in no box.
        known: Whether the bounds of each file are known in all columns that the trunk cuts.
    """

    trunk: Trunk | None
    box_of: Ints
    known: Mask


def find(
    stats: Sequence[pa.StructArray | None],
    rows: Ints,
    sizes: Ints,
    clustered: Mask,
    limit: int,
) -> PlacedTrunk:
    """Find the trunk of a partition.

    Args:
        stats: Stats of each key column of the files, or None.
        rows: Rows of each file.
        sizes: Bytes of each file. Those of raw files are taken to be spread as the others are.
        clustered: Which files were cut by a layout; the others have no cuts in common with them.
        limit: Maximum bytes of a job.
    """
    columns = [_bounds(each, rows) for each in stats]
    weights = np.where(clustered, sizes, 0)
    node, known = np.zeros(len(sizes), np.int64), np.ones(len(sizes), np.bool_)
    whole = np.array([sizes.sum()], np.float64)
    levels = list[Level]()
    while len(levels) < DEEPEST and (whole > FULL * limit).any():
        cuts = [
            _cuts(each, weights, node, whole, FULL * limit) if each else None for each in columns
        ]
        column = max(range(len(cuts)), key=lambda n: (_score(cuts[n], whole), -n))
        best, bounds = cuts[column], columns[column]
        if best is None or bounds is None or _score(best, whole) <= 0:
            break
        levels.append(Level(column, bounds.ranked.value_of(best.ranks)))
        known &= bounds.known
        at = best.ranks[node]
        right = (bounds.low >= at) & (at > 0)
        straddles = (bounds.high >= at) & ~right & (at > 0)
        node = np.where((node < 0) | straddles, NO_BOX, 2 * node + right)
        whole = np.stack([whole * (1 - best.right), whole * best.right], axis=1).ravel()
    return PlacedTrunk(
        Trunk(int((whole > 0).sum()), tuple(levels)) if levels else None, node, known
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Bounds of files in one column, as ranks."""

    ranked: Ranked
    low: Ints
    high: Ints
    known: Mask


def _bounds(stats: pa.StructArray | None, rows: Ints) -> _Bounds | None:
    """Return ranked bounds; files of null alone are below, unknown ones everywhere."""
    if stats is None:
        return None
    lows, highs, nulls = stats.flatten()[:3]
    ranked = rank(pa.concat_arrays([lows, highs]))
    low, high = ranked.ranks[: len(rows)], ranked.ranks[len(rows) :]
    is_null = nulls.fill_null(-1).to_numpy(zero_copy_only=False) == rows
    known = is_null | (low > 0) & (high > 0)
    return _Bounds(ranked, np.where(known, low, 0), np.where(known, high, len(ranked.ranks)), known)


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Cuts of the nodes of one level in one column.

    Attributes:
        ranks: Rank of each node's cut; 0 where it is not cut.
        scores: What each cut is worth, at most 1/2.
        right: Share of each node's bytes on the right of the cut.
    """

    ranks: Ints
    scores: Floats
    right: Floats


def _score(cuts: _Cuts | None, whole: Floats) -> float:
    return 0.0 if cuts is None else float((cuts.scores * whole).sum())


def _cuts(bounds: _Bounds, weights: Ints, node: Ints, whole: Floats, enough: float) -> _Cuts:
    """Return the best cut of each node with more than *enough* bytes."""
    cuts = np.zeros(len(whole), np.int64)
    scores, right = np.zeros((2, len(whole)))
    inside = np.flatnonzero((node >= 0) & (weights > 0))
    inside = inside[np.argsort(node[inside], kind="stable")]
    edges = np.searchsorted(node[inside], np.arange(len(whole) + 1))
    for number in np.flatnonzero(whole > enough).tolist():
        at = inside[edges[number] : edges[number + 1]]
        cuts[number], scores[number], right[number] = _cut(
            bounds.low[at], bounds.high[at], weights[at]
        )
    return _Cuts(cuts, scores, right)


def _cut(low: Ints, high: Ints, weights: Ints) -> tuple[int, float, float]:
    """Return the best cut of some files, what it is worth, and the share of bytes on its right."""
    values = np.unique(low[low > 0])
    if len(values) == 0:
        return 0, 0.0, 0.0
    below, above = (
        np.append(0, np.cumsum(weights[order]))[np.searchsorted(bound[order], values)]
        for bound, order in ((high, np.argsort(high)), (low, np.argsort(low)))
    )
    left, right = below, weights.sum() - above
    score = (np.minimum(left, right) - STRADDLED * (above - below)) / weights.sum()
    best = int(np.argmax(score))
    if score[best] <= 0:
        return 0, 0.0, 0.0
    share = right[best] / (left[best] + right[best])
    return int(values[best]), float(score[best]), float(share)
