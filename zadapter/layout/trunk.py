"""The trunk of a partition: the upper levels of one tree, which many layouts of it share.

A partition that is larger than one job is written by many jobs, each with its own layout. If all of
them begin with the same cuts, no file spans two boxes of these cuts. So the files in one box can be
merged without those in others, in one job.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.ranks import Ints, Ranked, rank
from zadapter.layout import assign
from zadapter.layout.build import fit, grow_tree
from zadapter.layout.layout import Layout, Request
from zadapter.layout.levels import Level, Start


@dataclass(frozen=True, slots=True, eq=False)
class Trunk:
    """Upper levels of a tree.

    Attributes:
        boxes: Number of boxes.
        levels: The levels; empty if they are still to be fitted to a sample.
    """

    boxes: int
    levels: tuple[Level, ...] = ()

    def shorten(self, boxes: int) -> "Trunk":
        """Return the first levels, which have at most *boxes* boxes, if it has levels."""
        if not self.levels:
            return self
        levels = self.levels[: boxes.bit_length() - 1]
        return Trunk(min(self.boxes, 1 << len(levels)), levels)

    def cuts_of(self, box: int, columns: int) -> tuple[int, ...]:
        """Return how often each column is cut on the way from the root to a box."""
        cut = [0] * columns
        for depth, level in enumerate(self.levels):
            node = box >> (len(self.levels) - depth)
            for each in level.by_column:
                cut[each.column] += each.cuts[node].is_valid
        return tuple(cut)

    def fit(self, request: Request, sample: Sequence[pa.Array]) -> "Trunk":
        """Return a trunk of as many boxes, each with as many of the sampled rows.

        It has fewer boxes where values repeat.
        """
        one_root = np.zeros(len(sample[0]), np.int64)
        layout = fit(replace(request, row_groups=1), sample, [()], one_root, [self.boxes])
        box_of = [
            layout.first_file.reshape(1 << depth, -1) for depth in range(len(layout.levels) + 1)
        ]
        divided = [np.asarray(np.ptp(boxes, axis=1) > 0) for boxes in box_of]
        levels = [
            level.only(nodes)
            for level, nodes in zip(layout.levels, divided, strict=False)
            if nodes.any()
        ]
        return Trunk(int(_find_reachable(levels).sum()), tuple(levels))


def fit_below(
    trunk: Trunk,
    request: Request,
    sample: Sequence[pa.Array | Ranked],
    root: tuple[str | None, ...],
    files: int,
) -> Layout:
    """Fit a layout of one partition that begins with the levels of its trunk.

    Each box gets files in proportion to its sampled rows, at least one, and no file has rows of two
    boxes. Boxes without a sampled row, which have next to no rows, share one more file.

    Args:
        trunk: The trunk, with its levels.
        request: The request; its curve is one of ``TREES``.
        sample: The sampled values, one array per key column, or their ranks, all of the same
            length.
        root: Partition values.
        files: Number of files to write, or of boxes if there are more boxes.
    """
    ranked = [rank(column) for column in sample]
    types = [column.distinct.type for column in ranked]
    levels = tuple(level.cast(types) for level in trunk.levels)
    node = assign.nodes(levels, ranked, np.zeros(len(ranked[0].ranks), np.int64))
    budget, first = _files_of(
        levels, np.bincount(node, minlength=1 << len(levels)), max(files, trunk.boxes)
    )
    columns = [level.column for level in levels]
    used = [columns.count(column) for column in range(len(sample))]
    return grow_tree(
        request,
        ranked,
        (root,),
        Start(levels=levels, node=node, budget=budget, first=first),
        [number - min(used) for number in used],
    )


def _files_of(levels: Sequence[Level], rows: Ints, files: int) -> tuple[Ints, Ints]:
    """Return the number of files and the first file of each box, by its sampled rows."""
    reached = _find_reachable(levels)
    rows = rows if rows.any() else reached.astype(np.int64)
    exact = rows * (files / rows.sum())
    budget = np.where(rows > 0, np.maximum(1, np.rint(exact)), 0).astype(np.int64)
    shared = budget.sum() if (reached & (rows == 0)).any() else 0
    first = np.where(rows > 0, np.cumsum(budget) - budget, shared)
    return np.maximum(budget, 1), first


def _find_reachable(levels: Sequence[Level]) -> npt.NDArray[np.bool_]:
    """Return which nodes below some levels rows can reach."""
    reached = np.ones(1, np.bool_)
    for level in levels:
        reached = np.stack([reached, reached & level.is_cut], axis=1).ravel()
    return reached
