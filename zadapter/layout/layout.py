"""A layout: the assignment of a table's rows to files, and their order.

Every curve is represented by a binary forest. A row starts at the root of its partition. At each
level it goes right iff ``column >= cut``: the level determines the column, and the node the cut
(null column or null cut: left). The path of bits is the row's z-value. Every prefix of it is a box,
and boxes never overlap. Arrays map each leaf to a file and to its position on the curve.

With r roots, level L holds ``r * 2**L`` cuts, and node n has the children 2n and 2n + 1.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from zadapter.base.names import NameParts, join, split
from zadapter.errors import UsageError
from zadapter.layout.filters import Filter, Keys
from zadapter.layout.levels import Level, deduplicate_cuts

Files = npt.NDArray[np.int32]

FORMAT, WITH_FILTERS, WITH_BLOOM_FILTERS = 2, 3, 4
"""Versions of the JSON that :meth:`Layout.to_json` writes. Since version 2, repeated cuts are
written once, with indices. Version 3 has filters, and levels of several columns; version 4 has
Bloom filters. All versions are read."""
ID = 16
"""Hex digits of the id of a request, with which those of its layouts begin."""
_TREE = 1
"""Version of the JSON that layout ids are digests of."""


class Curve(str, Enum):
    """Curve along which rows are ordered."""

    ADAPTIVE = "adaptive"
    """Z-order that cuts every box at a quantile of the rows still in the box."""
    ZORDER = "zorder"
    """Classic z-order of the columns' ranks (Morton 1966)."""
    HILBERT = "hilbert"
    """Hilbert curve over the columns' ranks (Skilling 2004)."""
    LINEAR = "linear"
    """Lexicographic order: by the first column, then the second, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Requested layout; runs with equal requests share layouts."""

    columns: tuple[NameParts, ...]
    """Key columns, as spelled in the table's schema."""
    weights: tuple[float, ...]
    """Number of levels of each column, relative to the others; all 1.0 is a plain cycle. With
    filters, these choose, but for columns above 1.0 (:mod:`zadapter.layout.learned`)."""
    curve: Curve = Curve.ADAPTIVE
    target_file_size: int
    """Target size of a written file, in bytes."""
    row_groups: int = 16
    """Target number of row groups in a written file."""
    filters: tuple[Filter, ...] = ()
    """Filters that the adaptive curve is fitted to, instead of cutting all columns in turn."""
    cold: bool = False
    """Whether this is the layout of the cold tier, with its larger files."""
    bloom_filters: tuple[NameParts, ...] = ()
    """Columns with a Bloom filter in each row group, in ascending order."""

    def __post_init__(self) -> None:
        names = [join(column) for column in self.columns]
        if not names:
            raise UsageError("no key columns; pass one to four columns that filters use")
        if len(set(names)) < len(names):
            raise UsageError(f"duplicate key columns: {', '.join(names)}; pass each column once")
        if len(self.weights) != len(names):
            raise UsageError(
                f"{len(names)} key columns require {len(names)} weights, not {self.weights}"
            )
        if not all(0 < weight < float("inf") for weight in self.weights):
            raise UsageError(f"weights must be positive numbers, not {self.weights}")
        if self.row_groups < 1:
            raise UsageError(f"row_groups must be at least 1, not {self.row_groups}")

    @property
    def id(self) -> str:
        """Sixteen hex digits; ids of all layouts fitted for this request start with them."""
        return _digest(self.to_dict())

    @property
    def keys(self) -> Keys:
        """The key columns with their weights, and the filters."""
        names = map(join, self.columns)
        return Keys(dict(zip(names, self.weights, strict=True)), self.filters)

    def has_keys_of(self, other: "Request") -> bool:
        """Return whether another request has the same key columns and curve."""
        return self.columns == other.columns and self.curve is other.curve

    def to_dict(self) -> dict[str, Any]:
        """Return the request as plain JSON values."""
        blooms = [join(column) for column in self.bloom_filters]
        return {
            "columns": [join(column) for column in self.columns],
            "weights": list(self.weights),
            "curve": self.curve.value,
            "target_file_size": self.target_file_size,
            "row_groups": self.row_groups,
            **({"filters": [each.to_dict() for each in self.filters]} if self.filters else {}),
            **({"cold": True} if self.cold else {}),
            **({"bloom_filters": blooms} if blooms else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Request":
        """Create a request from the result of :meth:`to_dict`."""
        return cls(
            columns=tuple(split(column) for column in data["columns"]),
            weights=tuple(data["weights"]),
            curve=Curve(data["curve"]),
            target_file_size=data["target_file_size"],
            row_groups=data["row_groups"],
            filters=tuple(map(Filter.from_dict, data.get("filters", ()))),
            cold=data.get("cold", False),
            bloom_filters=tuple(split(column) for column in data.get("bloom_filters", ())),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """A fitted layout. Its id identifies the tree, not the number of files."""

    request: Request
    roots: tuple[tuple[str | None, ...], ...]
    """Partition values of each root, as text; one empty tuple for an unpartitioned table."""
    levels: tuple[Level, ...]
    first_file: Files = field(repr=False)
    """First file of each leaf."""
    width: Files = field(repr=False)
    """Number of files that share the rows of each leaf: above 1 for a heavy value, 0 in a partition
    without files."""
    order: Files | None = field(default=None, repr=False)
    """Position of each leaf on its root's curve; None: leaves are in order already."""
    lasting: bool = True
    """Whether the cuts are stored with the table. Of other layouts only the request is stored."""
    run: str = ""
    """Identifies the rewrite that the layout was fitted for: two may have equal cuts."""
    of_part: bool = False
    """Whether the rewrite was meant for a part of the table, not for all of it in some calls."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    @classmethod
    def uncut(cls, request: Request) -> "Layout":
        """Return a layout without cuts, which holds the request alone."""
        one = np.ones(1, np.int32)
        return cls(request=request, roots=((),), levels=(), first_file=one - 1, width=one)

    @property
    def files(self) -> int:
        """Number of files of the layout."""
        return int((self.first_file + self.width).max(initial=0))

    @property
    def places(self) -> Files:
        """Position of each leaf among all leaves: by root, then along the curve."""
        leaf = np.arange(len(self.first_file), dtype=np.int32)
        if self.order is None:
            return leaf
        return np.asarray(leaf - leaf % (len(leaf) // len(self.roots)) + self.order, np.int32)

    def grain(self) -> Files:
        """Return the number of files of each root."""
        first = self.first_file.reshape(len(self.roots), -1).min(axis=1)
        last = (self.first_file + self.width).reshape(len(self.roots), -1).max(axis=1)
        return np.asarray(last - first, np.int32)

    @cached_property
    def id(self) -> str:
        """Thirty-two hex digits: the id of the request, then a digest of roots, cuts and run."""
        return self.request.id + _digest(self._tree())

    def _tree(self) -> dict[str, Any]:
        return {
            "format": _TREE,
            "request": self.request.to_dict(),
            "roots": self.roots,
            **({"run": self.run} if self.run else {}),
            "levels": [level.to_dict() for level in self.levels],
        }

    def to_json(self) -> str:
        """Return the layout as JSON for :meth:`from_json`; repeated cuts are written once."""
        order = None if self.order is None else self.order.tolist()
        files = {"first_file": self.first_file.tolist(), "width": self.width.tolist()}
        tree = self._tree()
        tree["levels"] = [deduplicate_cuts(level) for level in tree["levels"]]
        whole = tree | files | {"order": order, "format": _version(self.request)}
        whole |= {"of_part": True} if self.of_part else {}
        return json.dumps(whole, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Layout":
        """Create a layout from the result of :meth:`to_json`.

        Raises:
            UsageError: Another version of zadapter wrote the JSON in an unknown format.
        """
        data = json.loads(text)
        if data.get("format") not in {1, FORMAT, WITH_FILTERS, WITH_BLOOM_FILTERS}:
            raise UsageError(
                f"the table's layout has format {data.get('format')!r}, but this zadapter reads "
                f"formats up to {WITH_BLOOM_FILTERS}; upgrade zadapter, or pass force=True to fit "
                "a new layout"
            )
        order = data["order"]
        return cls(
            request=Request.from_dict(data["request"]),
            roots=tuple(tuple(root) for root in data["roots"]),
            levels=tuple(map(Level.from_dict, data["levels"])),
            first_file=np.array(data["first_file"], np.int32),
            width=np.array(data["width"], np.int32),
            order=None if order is None else np.array(order, np.int32),
            run=data.get("run", ""),
            of_part=data.get("of_part") is True,
        )

    def regrain(self, files: Sequence[int]) -> "Layout":
        """Cut the same tree into *files[i]* files for root i, by joining neighbouring files.

        A root gets at most as many files as it has. A root without files must have no rows.
        """
        leaves = self.first_file.reshape(len(self.roots), -1)
        start = leaves.min(axis=1, keepdims=True)
        old = np.maximum(self.grain(), 1)[:, None].astype(np.int64)
        new = np.minimum(np.array(files, np.int64)[:, None], old)
        joined = (leaves - start) * new // old
        shared = np.maximum(self.width, 1).reshape(leaves.shape)
        last = (leaves - start + shared - 1) * new // old
        offset = np.cumsum(new, axis=0) - new
        return replace(
            self,
            first_file=(joined + offset).astype(np.int32).ravel(),
            width=np.where(new > 0, last - joined + 1, 0).astype(np.int32).ravel(),
        )


class LayoutStore(Protocol):
    """Look-up of layouts by id, such as a mapping.

    The id of a request finds a layout without cuts.
    """

    def get(self, layout_id: str, /) -> "Layout | None":
        """Return the layout with an id, or None if there is none."""


def _version(request: Request) -> int:
    """Return the oldest version of the JSON that can hold a request."""
    if request.bloom_filters:
        return WITH_BLOOM_FILTERS
    return WITH_FILTERS if request.filters else FORMAT


def _dumps(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))


def _digest(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dumps(data).encode()).hexdigest()[:ID]
