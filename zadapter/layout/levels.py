"""Levels of a layout: the cuts of all nodes that are as far from the root.

Most levels compare one column. A level of a layout that was learned from filters may compare
another column in every node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.key_types import read_type, texts, values, write_type
from zadapter.base.ranks import Ints


@dataclass(frozen=True, slots=True)
class Level:
    """One bit of the z-value.

    Attributes:
        column: Index into the request's columns.
        cuts: One cut per node, of the column's type; null sends every row left.
        others: Levels of other columns, with cuts of nodes whose cut is null here. A node has at
            most one cut.
    """

    column: int
    cuts: pa.Array
    others: "tuple[Level, ...]" = ()

    @classmethod
    def of(cls, by_column: "Iterable[Level]") -> "Level":
        """Return one level of the cuts of several columns."""
        first, *others = by_column
        return cls(first.column, first.cuts, tuple(others))

    @property
    def by_column(self) -> "tuple[Level, ...]":
        """The level's cuts, column by column."""
        return (Level(self.column, self.cuts), *self.others)

    @property
    def is_cut(self) -> npt.NDArray[np.bool_]:
        """Whether each node has a cut."""
        valid = [each.cuts.is_valid().to_numpy(zero_copy_only=False) for each in self.by_column]
        return np.asarray(np.logical_or.reduce(valid), np.bool_)

    def only(self, nodes: npt.NDArray[np.bool_]) -> "Level":
        """Return the level with the cuts of some nodes; the others are not cut."""
        index = pa.array(np.arange(len(self.cuts)), mask=~nodes)
        return Level.of(Level(each.column, each.cuts.take(index)) for each in self.by_column)

    def cast(self, types: Sequence[pa.DataType]) -> "Level":
        """Return the level with cuts of the columns' types."""
        return Level.of(
            Level(each.column, each.cuts.cast(types[each.column])) for each in self.by_column
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the level as plain JSON values."""
        written = {
            "column": self.column,
            "type": write_type(self.cuts.type),
            "cuts": texts(self.cuts),
        }
        return written | (
            {"others": [each.to_dict() for each in self.others]} if self.others else {}
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Level":
        """Create a level from the result of :meth:`to_dict` or :func:`deduplicate_cuts`."""
        cuts = values(data["cuts"], read_type(data["type"]))
        cuts = cuts.take(pa.array(data["at"])) if "at" in data else cuts
        return cls(data["column"], cuts, tuple(map(cls.from_dict, data.get("others", ()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Levels that a tree begins with.

    Attributes:
        levels: The levels.
        node: Node of each sampled row below them.
        budget: Number of files of each node.
        first: First file of each node.
    """

    levels: tuple[Level, ...]
    node: Ints
    budget: Ints
    first: Ints


def deduplicate_cuts(level: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a level with repeated cuts written once, with indices."""
    others = [deduplicate_cuts(each) for each in level.get("others", ())]
    written = dict(level) | ({"others": others} if others else {})
    index_of = {text: at for at, text in enumerate(dict.fromkeys(level["cuts"]))}
    if 2 * len(index_of) > len(level["cuts"]):
        return written
    return written | {"cuts": list(index_of), "at": [index_of[text] for text in level["cuts"]]}


def pattern(weights: Sequence[float]) -> Iterator[int]:
    """Yield column indices without end, evenly spread and in proportion to the weights.

    With equal weights this is 0, 1, 2, …, 0, 1, 2, … (smooth weighted round-robin).
    """
    credit = [0.0] * len(weights)
    while True:
        credit = [balance + weight for balance, weight in zip(credit, weights, strict=True)]
        best = max(range(len(weights)), key=lambda i: (round(credit[i], 9), -i))
        credit[best] -= sum(weights)
        yield best
