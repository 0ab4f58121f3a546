"""Levels of several columns as a decision diagram: one look-up a column, not one a level.

A row's values are numbered by the cuts of their columns that are not above them. A diagram passes
the columns one by one: the state so far and the number of the next column's value lead to the next
state, and the last state is the node. States are equal if the same nodes are left. A tree of
hundreds of files has a few thousand entries, because its cuts are few in each column.

Source: C. Y. Lee, Representation of Switching Circuits by Binary-Decision Programs, Bell System
Technical Journal 38, 1959.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints, rank
from zadapter.layout.levels import Level

MOST_ENTRIES = 1 << 16
"""Maximum number of entries of the tables."""
MOST_BYTES = 1 << 24
"""Maximum size of a column's states, a bit for each node that is left."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The look-up of one column.

    Attributes:
        column: Index into the request's columns.
        cuts: Ascending distinct cuts. A value's number is the count of those not above it.
        next: Next state by state and number, shape (states, numbers). The states of the first
            decision are the nodes above the levels, those after the last one the nodes below them.
    """

    column: int
    cuts: pa.Array
    next: Ints


def decide(levels: Sequence[Level], nodes: int, most_cuts: int) -> tuple[Decision, ...] | None:
    """Return the diagram of consecutive levels, or None if there is none or it is too large.

    Args:
        levels: The levels.
        nodes: Number of nodes above them.
        most_cuts: Maximum number of distinct cuts of all columns.
    """
    found: dict[int, list[pa.Array]] = {}
    for level in levels:
        for each in level.by_column:
            found.setdefault(each.column, []).append(each.cuts)
    cuts = {column: rank(pa.concat_arrays(arrays)).distinct for column, arrays in found.items()}
    # columns with many cuts first, while states are few
    cuts = dict(sorted(cuts.items(), key=lambda item: -len(item[1])))
    if not 0 < sum(map(len, cuts.values())) <= most_cuts:
        return None
    return _pass_columns(cuts, *_boxes(levels, nodes, cuts), nodes)


def _boxes(levels: Sequence[Level], nodes: int, cuts: Mapping[int, pa.Array]) -> tuple[Ints, Ints]:
    """Return the lowest and the highest number in each node below, shape (columns, nodes).

    Both halves of a node without a cut are the whole node.
    """
    place = {column: at for at, column in enumerate(cuts)}
    low = np.zeros((len(cuts), nodes), np.int64)
    high = low + np.array([[len(each)] for each in cuts.values()])
    for level in levels:
        left, right = high.copy(), low.copy()
        for each in level.by_column:
            known = cuts[each.column]
            number = rank(pa.concat_arrays([known, each.cuts])).ranks[len(known) :]
            at, cut = place[each.column], np.flatnonzero(number)
            left[at, cut] = np.minimum(high[at, cut], number[cut] - 1)
            right[at, cut] = np.maximum(low[at, cut], number[cut])
        low, high = _side_by_side(low, right), _side_by_side(left, high)
    return low, high


def _side_by_side(left: Ints, right: Ints) -> Ints:
    return np.stack([left, right], axis=2).reshape(len(left), -1)


def _pass_columns(
    cuts: Mapping[int, pa.Array], low: Ints, high: Ints, nodes: int
) -> tuple[Decision, ...] | None:
    """Return the look-ups of the columns, or None if they have too many entries.

    Args:
        cuts: Cuts of each column.
        low: Lowest numbers (:func:`_boxes`).
        high: Highest numbers.
        nodes: Number of nodes above the levels.
    """
    leaves = low.shape[1] // nodes
    above, left = np.arange(nodes), np.packbits(np.ones((nodes, leaves), np.bool_), axis=1)
    passed, entries = list[Decision](), 0
    for at, (column, known) in enumerate(cuts.items()):
        numbers = np.arange(len(known) + 1)
        entries += len(above) * len(numbers)
        if entries > MOST_ENTRIES or len(above) * len(numbers) * left.shape[1] > MOST_BYTES:
            return None
        inside = (low[at] <= numbers[:, None]) & (numbers[:, None] <= high[at])
        inside = np.packbits(inside.reshape(len(numbers), nodes, leaves), axis=2)
        both = (left[:, None] & inside[:, above].swapaxes(0, 1)).reshape(-1, left.shape[1])
        of_state = np.repeat(above, len(numbers))
        states = np.concatenate([of_state.astype(">u4")[:, None].view(np.uint8), both], axis=1)
        _, first, state = np.unique(states, axis=0, return_index=True, return_inverse=True)
        passed.append(Decision(column, known, state.reshape(-1, len(numbers))))
        above, left = of_state[first], both[first]
    # of the halves of a node without a cut, both are left, and rows go to the first
    node = above * leaves + np.unpackbits(left, axis=1).argmax(axis=1)
    last = passed[-1]
    return (*passed[:-1], Decision(last.column, last.cuts, node[last.next]))
